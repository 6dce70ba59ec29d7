// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the forward pass calls. A backend owns the memory that a pass touches (weights, activations,
// cache pages) wherever it likes; callers hold handles. Steps are submitted in order and may run
// later: only await() promises that they are done, and a pass needs it once. One thread at a time
// (the engine thread), except where a function says otherwise.
//
// Four steps are enough for a decoder, because each takes along what surrounds it:
//     embed     rows of the embedding
//     project   [norm | activation] -> products with several matrices (low-rank parts and biases
//               included) -> [+ residual]
//     attend    [norm of heads] -> RoPE -> cache -> [index branch: choice of blocks] -> attention
//     experts   RMS norm -> router -> the chosen experts -> + residual
// A vision tower, whose rows see each other in both directions, has `attendSegment` for `attend`,
// and `normalize` before its first layer.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/result.h"
#include "kernels/formats.h"

namespace belvedere::inference {

/// A matrix [n_rows, n_cols] = [out, in] in a model file; does not own. MXFP8 stands in two places,
/// until a backend joins them to blocks.
struct MatrixView {
    kernels::WeightType type = kernels::WeightType::F32;
    const void* data = nullptr;
    size_t n_rows = 0;
    size_t n_cols = 0;
    const void* scales = nullptr;  ///< MXFP8: E8M0 [n_rows, n_cols / 32]; `data` is all E4M3
    std::string_view name = {};    ///< for messages

    [[nodiscard]] size_t bytes() const { return n_rows * kernels::rowBytes(type, n_cols); }
};

/// scale * B A, added to a matrix: A [rank, in], B [out, rank].
struct LowRankView {
    MatrixView a;
    MatrixView b;
    float scale = 1.0F;
};

/// y = W x + sum of scale B (A x) + bias. Views stay valid as long as the linear made from them.
struct LinearView {
    MatrixView weight;
    std::vector<LowRankView> low_rank;
    std::vector<float> bias;  ///< [n_rows], or empty
};

/// A router and the MLPs among which it chooses.
struct ExpertsView {
    MatrixView router;               ///< [n_experts, dim], read in f32
    std::vector<float> choice_bias;  ///< [n_experts], or empty
    std::vector<MatrixView> gate;    ///< [n_experts] of [ff_dim, dim]
    std::vector<MatrixView> up;
    std::vector<MatrixView> down;  ///< [n_experts] of [dim, ff_dim]
};

/// A linear map where the backend keeps it.
class DeviceLinear {
  public:
    virtual ~DeviceLinear() = default;
};

/// Floats where the backend keeps them: norm weights.
class DeviceVector {
  public:
    virtual ~DeviceVector() = default;
};

class DeviceExperts {
  public:
    virtual ~DeviceExperts() = default;
};

/// Activations [n_tokens, width] in f32 where the backend keeps them.
class DeviceBuffer {
  public:
    virtual ~DeviceBuffer() = default;
};

/// kPageTokens tokens of K and V of every layer. A page number; the backend knows the memory.
using PageId = uint32_t;

/// What a page holds of a layer: K and V [2, n_kv_heads, kPageTokens, head_dim]; index keys
/// [kPageTokens, head_dim of the index] where the layer has an index branch.
enum class PagePart { KeysAndValues, IndexKeys };

/// Sizes of a page.
struct PageShape {
    size_t n_layers = 0;
    size_t n_kv_heads = 0;
    size_t head_dim = 0;
    kernels::CacheType cache_type = kernels::CacheType::F16;
    size_t index_head_dim = 0;
    kernels::CacheType index_cache_type = kernels::CacheType::BF16;
    std::vector<bool> index_layers;  ///< [n_layers], or empty: none has one

    bool operator==(const PageShape&) const = default;

    [[nodiscard]] bool has(PagePart part, size_t layer) const {
        return part == PagePart::KeysAndValues || (!index_layers.empty() && index_layers[layer]);
    }

    /// One token of a head.
    [[nodiscard]] size_t rowBytes(PagePart part) const {
        return part == PagePart::KeysAndValues
                   ? kernels::cacheRowBytes(cache_type, head_dim)
                   : kernels::cacheRowBytes(index_cache_type, index_head_dim);
    }

    /// Of rows [kPageTokens, ...] that stand one behind the other: heads of K, then of V.
    [[nodiscard]] size_t headCount(PagePart part) const {
        return part == PagePart::KeysAndValues ? 2 * n_kv_heads : 1;
    }

    /// Of one layer.
    [[nodiscard]] size_t partBytes(PagePart part) const {
        return headCount(part) * kernels::kPageTokens * rowBytes(part);
    }

    /// The first n_tokens rows of each head of a part.
    void copyRows(PagePart part, const std::byte* from, std::byte* to, size_t n_tokens) const {
        const size_t head_bytes = kernels::kPageTokens * rowBytes(part);
        for (size_t head = 0; head < headCount(part); ++head) {
            std::memcpy(to + head * head_bytes, from + head * head_bytes,
                        n_tokens * rowBytes(part));
        }
    }
};

/// Pages that stand in a file, read-only, in parts that are checked before they are first read. Any
/// thread.
class StoredPages {
  public:
    virtual ~StoredPages() = default;

    /// That part of all pages, partBytes() apart; aligned to 64 bytes.
    [[nodiscard]] virtual const std::byte* parts(PagePart part, size_t layer) const = 0;
    [[nodiscard]] virtual bool isChecked(PagePart part, size_t layer, size_t page) const = 0;
    /// Reads the part; false: it is not what was written. What it found is remembered.
    virtual bool check(PagePart part, size_t layer, size_t page) = 0;
    [[nodiscard]] virtual bool isDamaged(size_t page) const = 0;
    /// What check() found: the file, the layer and the tokens.
    [[nodiscard]] virtual std::string damage(PagePart part, size_t layer, size_t page) const = 0;
    /// Errors: Corrupt where the file was shortened since it was opened; then every page is
    /// damaged.
    [[nodiscard]] virtual Result<void> checkWhole() = 0;
};

/// Index branches: index keys stand in the pages beside K and V, and live and die with them.
struct IndexShape {
    size_t n_heads = 0;
    size_t head_dim = 0;
    size_t block_tokens = 0;
    size_t top_k = 0;
    size_t n_init = 0;
    size_t n_local = 1;
    kernels::CacheType cache_type = kernels::CacheType::BF16;
    std::vector<bool> layers;  ///< [n_layers], true: has one; empty: none has
    size_t max_blocks = 0;     ///< of the longest sequence
};

/// What a backend must know before weights arrive.
struct BackendShape {
    size_t n_layers = 0;
    size_t n_heads = 0;
    size_t n_kv_heads = 0;
    size_t head_dim = 0;
    kernels::CacheType cache_type = kernels::CacheType::F16;
    size_t max_tokens = 0;  ///< of one pass
    size_t step_width =
        0;  ///< largest sum of output rows of a step that adds or has low-rank parts
    bool rope_adjacent = false;
    std::vector<float> rope_frequency;  ///< radians per position of each pair; its size is the
                                        ///< number of rotated pairs
    float attention_scale = 1.0F;
    IndexShape index;
    size_t n_experts_used = 0;  ///< of a token; 0: no experts
    /// Of experts in the backend's own layout; beyond it they are read from the file when they are
    /// chosen. 0: no limit.
    uint64_t expert_budget_bytes = 0;
    /// Nothing is allocated or moved, only added up: residentBytes(), scratchBytes() and
    /// pageBytes() are those of a backend that holds it all, and no pass may be run.
    bool is_measured = false;
};

/// One run of tokens of one sequence. The rows of a pass are those of its runs, one behind the
/// other. With kernels::kIndependentTokens rows or fewer, no row depends on which others there are.
struct PassRun {
    size_t n_tokens = 0;
    size_t first_pos = 0;
    std::span<const PageId> pages;  ///< cover positions [0, first_pos + n_tokens)
    /// MSA blocks that may not be chosen (not 0: banned); empty: none. A token's own block always
    /// is.
    std::span<const uint8_t> banned_blocks = {};
};

/// Whether a pass computes tokens that are given or tokens that are being generated (drafts of them
/// too). Many tokens at once pay in another way than few, and a backend may round otherwise in one
/// than in the other: by the kind, and not by how many tokens a cut of the prompt leaves.
enum class PassKind { Prompt, Generation };

enum class Prologue { None, RmsNorm, LayerNorm, SwiGlu, SwiGluOai, Gelu };

/// Of SwiGluOai.
struct ActivationLimits {
    float alpha = 0.0F;
    float limit = 0.0F;
};

struct ProjectOutput {
    const DeviceLinear* linear = nullptr;
    DeviceBuffer* out = nullptr;
    bool add = false;  ///< out += y instead of out = y
};

/// Rows [first_row, first_row + n_rows) of input, prepared by the prologue, times each matrix, into
/// rows [out_row, out_row + n_rows) of each output.
struct ProjectStep {
    const DeviceBuffer* input = nullptr;
    size_t first_row = 0;
    size_t n_rows = 0;
    Prologue prologue = Prologue::None;
    const DeviceVector* norm = nullptr;       ///< RmsNorm, LayerNorm: its weight
    const DeviceVector* norm_bias = nullptr;  ///< LayerNorm
    float eps = 0.0F;
    const DeviceBuffer* up = nullptr;  ///< SwiGlu: silu(input) * up; SwiGluOai likewise
    ActivationLimits limits = {};
    size_t out_row = 0;
    /// Rows of the buffer that make up one row of the input: [n, width] read as [n / joined_rows,
    /// joined_rows * width]. Not with a norm.
    size_t joined_rows = 1;
    std::span<const ProjectOutput> outputs;
};

/// Rows [0, n_rows) of a buffer in place: layer norm.
struct NormalizeStep {
    DeviceBuffer* rows = nullptr;
    size_t n_rows = 0;
    const DeviceVector* weight = nullptr;
    const DeviceVector* bias = nullptr;
    float eps = 0.0F;
};

/// Pairs (first + i, first + n_pairs + i), i < n_pairs, of each head turn by the angles of a row.
struct SegmentRotation {
    size_t first = 0;
    size_t n_pairs = 0;
    std::span<const float> cos;  ///< [n_rows, n_pairs]
    std::span<const float> sin;
};

/// Attention of rows [0, n_rows) to each other, all to all; q and k turn before.
struct SegmentStep {
    size_t n_rows = 0;
    size_t n_heads = 0;
    size_t head_dim = 0;
    float scale = 1.0F;
    std::span<const SegmentRotation> rotations;
    DeviceBuffer* q = nullptr;  ///< [n_rows, n_heads * head_dim], changed in place
    DeviceBuffer* k = nullptr;  ///< likewise
    const DeviceBuffer* v = nullptr;
    DeviceBuffer* out = nullptr;
};

/// The index branch of a layer.
struct IndexStep {
    DeviceBuffer* q = nullptr;  ///< [n_tokens, n_heads * head_dim] of the index, changed in place
    DeviceBuffer* k = nullptr;  ///< [n_tokens, head_dim], changed in place
    const DeviceVector* q_norm = nullptr;  ///< [head_dim]
    const DeviceVector* k_norm = nullptr;
};

struct AttendStep {
    size_t layer = 0;
    DeviceBuffer* q = nullptr;  ///< [n_tokens, n_heads * head_dim], changed in place
    DeviceBuffer* k = nullptr;  ///< [n_tokens, n_kv_heads * head_dim], changed in place
    const DeviceBuffer* v = nullptr;
    /// nullptr: none; [head_dim]: each head by itself; [n_heads * head_dim]: all heads of a token.
    const DeviceVector* q_norm = nullptr;
    const DeviceVector* k_norm = nullptr;
    float eps = 0.0F;
    const IndexStep* index = nullptr;  ///< nullptr: attend to every position
    DeviceBuffer* out = nullptr;       ///< [n_tokens, n_heads * head_dim]
};

/// hidden += scale * sum over the chosen experts of weight * expert(norm(hidden)). The weights are
/// the router's scores of the chosen ones, made to sum to 1; scores are softmax or sigmoid of the
/// logits; chosen are the n_experts_used largest of score + choice bias, lower ids on ties.
struct ExpertsStep {
    DeviceExperts* experts = nullptr;  ///< the backend may move their matrices
    size_t n_tokens = 0;
    DeviceBuffer* hidden = nullptr;
    const DeviceVector* norm = nullptr;
    float eps = 0.0F;
    bool router_is_sigmoid = false;  ///< else softmax
    float scale = 1.0F;
    Prologue activation = Prologue::SwiGlu;
    ActivationLimits limits = {};
};

/// What a router chose in the last pass.
struct ChosenExperts {
    std::span<const int32_t> ids;    ///< [n_tokens, n_experts_used], ascending
    std::span<const float> weights;  ///< the same shape; the sum of each token's is 1
};

class Backend {
  public:
    virtual ~Backend() = default;

    // Memory. Errors: OutOfMemory.
    virtual Result<std::unique_ptr<DeviceLinear>> addLinear(const LinearView& view) = 0;
    virtual Result<std::unique_ptr<DeviceExperts>> addExperts(const ExpertsView& view) = 0;
    virtual Result<std::unique_ptr<DeviceVector>> addVector(std::span<const float> values) = 0;
    virtual Result<std::unique_ptr<DeviceBuffer>> addBuffer(size_t n_tokens, size_t width) = 0;

    // Cache pages. The content of a new page is undefined.
    virtual Result<PageId> allocatePage() = 0;
    /// Page `index` of some that stand in a file: is read there, and is never written.
    virtual PageId addStoredPage(std::shared_ptr<StoredPages> pages, size_t index) = 0;
    virtual void freePage(PageId page) = 0;
    /// The first n_tokens tokens of every layer. Errors: Corrupt where `from` is a damaged page of
    /// a file.
    virtual Result<void> copyPage(PageId from, PageId to, size_t n_tokens) = 0;
    /// The bytes of a part, as pageShape() says; valid until the page is written or freed. Errors:
    /// as copyPage.
    virtual Result<std::span<const std::byte>> readPage(PageId page,
                                                        PagePart part,
                                                        size_t layer) = 0;
    [[nodiscard]] virtual bool isDamaged(PageId page) const = 0;
    [[nodiscard]] virtual const PageShape& pageShape() const = 0;
    [[nodiscard]] virtual size_t pageBytes() const = 0;

    // A pass. beginPass() states the runs that the steps up to the next one belong to. Runs write
    // to different pages; they may read the same ones. The kind holds up to await(); steps outside
    // a pass are those of a prompt.
    virtual void beginPass(std::span<const PassRun> runs, PassKind kind) = 0;
    /// Rows of ids below 0 are left as they are: for write().
    virtual void embed(const DeviceLinear& table,
                       std::span<const int32_t> tokens,
                       DeviceBuffer& out) = 0;
    virtual void project(const ProjectStep& step) = 0;
    virtual void attend(const AttendStep& step) = 0;
    virtual void experts(const ExpertsStep& step) = 0;
    // Outside a pass; max_tokens does not limit their rows.
    virtual void normalize(const NormalizeStep& step) = 0;
    virtual void attendSegment(const SegmentStep& step) = 0;
    /// The working memory of a segment of n_rows, which attendSegment() takes when it is first
    /// needed. Errors: OutOfMemory.
    virtual Result<void> reserveSegment(size_t n_rows, size_t n_heads, size_t head_dim) = 0;
    // Inside and outside.
    /// Whole rows of a buffer from first_row on.
    virtual void write(std::span<const float> rows, size_t first_row, DeviceBuffer& buffer) = 0;
    /// Waits for everything submitted. Errors: Internal with what the device reports; OutOfMemory
    /// where experts or the keys of a segment did not fit; Corrupt where a page of a file that the
    /// pass read is damaged.
    virtual Result<void> await() = 0;
    /// Rows of a buffer after await(); valid until the next step. The values may be changed in
    /// place by the caller.
    virtual std::span<float> read(DeviceBuffer& buffer, size_t n_rows) = 0;

    /// Blocks that the index branch of a layer chose in the last pass: [n_tokens, n_heads, top_k],
    /// ids ascending, -1 behind them. After await(), until the next pass.
    [[nodiscard]] virtual std::span<const int32_t> chosenBlocks(size_t layer) const = 0;
    /// The last `experts` step's choice; after await(), until the next one.
    [[nodiscard]] virtual ChosenExperts chosenExperts() const = 0;

    /// While busy, workers may spin between steps. Off when the program is idle.
    virtual void setBusy(bool busy) = 0;

    /// Bytes of weights this backend holds beside the mapped file.
    [[nodiscard]] virtual uint64_t residentBytes() const = 0;
    /// Of these, experts.
    [[nodiscard]] virtual uint64_t expertBytes() const = 0;
    /// Bytes of weights that are read where they stand in the file, experts left out.
    [[nodiscard]] virtual uint64_t mappedBytes() const = 0;
    /// Bytes of activations and working memory.
    [[nodiscard]] virtual uint64_t scratchBytes() const = 0;
    /// The most they have been.
    [[nodiscard]] virtual uint64_t mostScratchBytes() const = 0;
    [[nodiscard]] virtual std::string description() const = 0;
    [[nodiscard]] virtual size_t threadCount() const = 0;
};

}  // namespace belvedere::inference
