// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the forward pass calls. A backend owns the memory that a pass touches (weights, activations,
// cache pages) wherever it likes; callers hold handles. Steps are submitted in order and may run
// later: only await() promises that they are done, and a pass needs it once. One thread at a time
// (the engine thread), except where a function says otherwise.
//
// Three steps are enough for a dense decoder, because each takes along what surrounds it:
//     embed     rows of the embedding
//     project   [RMS norm | SwiGLU] -> products with several matrices (low-rank parts and biases
//     included) -> [+ residual] attend    [norm of each head] -> RoPE -> cache -> attention
// MSA adds its index heads to `attend`, MoE a list of matrices chosen per token to `project`.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/result.h"
#include "kernels/formats.h"

namespace belvedere::inference {

/// A matrix [n_rows, n_cols] = [out, in] in a model file; does not own.
struct MatrixView {
    kernels::WeightType type = kernels::WeightType::F32;
    const void* data = nullptr;
    size_t n_rows = 0;
    size_t n_cols = 0;

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

/// Activations [n_tokens, width] in f32 where the backend keeps them.
class DeviceBuffer {
  public:
    virtual ~DeviceBuffer() = default;
};

/// kPageTokens tokens of K and V of every layer. A page number; the backend knows the memory.
using PageId = uint32_t;

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
};

/// One run of tokens of one sequence.
struct PassView {
    size_t n_tokens = 0;
    size_t first_pos = 0;
    std::span<const PageId> pages;  ///< cover positions [0, first_pos + n_tokens)
};

enum class Prologue { None, RmsNorm, SwiGlu };

struct ProjectOutput {
    const DeviceLinear* linear = nullptr;
    DeviceBuffer* out = nullptr;
    bool add = false;  ///< out += y instead of out = y
};

/// Rows [first_row, first_row + n_rows) of input, prepared by the prologue, times each matrix, into
/// rows [0, n_rows) of each output (or the same rows, where it adds to them).
struct ProjectStep {
    const DeviceBuffer* input = nullptr;
    size_t first_row = 0;
    size_t n_rows = 0;
    Prologue prologue = Prologue::None;
    const DeviceVector* norm = nullptr;  ///< RmsNorm: its weight
    float eps = 0.0F;
    const DeviceBuffer* up = nullptr;  ///< SwiGlu: silu(input) * up
    std::span<const ProjectOutput> outputs;
};

struct AttendStep {
    size_t layer = 0;
    DeviceBuffer* q = nullptr;  ///< [n_tokens, n_heads * head_dim], changed in place
    DeviceBuffer* k = nullptr;  ///< [n_tokens, n_kv_heads * head_dim], changed in place
    const DeviceBuffer* v = nullptr;
    const DeviceVector* q_norm = nullptr;  ///< [head_dim], nullptr: none
    const DeviceVector* k_norm = nullptr;
    float eps = 0.0F;
    DeviceBuffer* out = nullptr;  ///< [n_tokens, n_heads * head_dim]
};

class Backend {
  public:
    virtual ~Backend() = default;

    // Memory. Errors: OutOfMemory.
    virtual Result<std::unique_ptr<DeviceLinear>> addLinear(const LinearView& view) = 0;
    virtual Result<std::unique_ptr<DeviceVector>> addVector(std::span<const float> values) = 0;
    virtual Result<std::unique_ptr<DeviceBuffer>> addBuffer(size_t n_tokens, size_t width) = 0;

    // Cache pages. The content of a new page is undefined.
    virtual Result<PageId> allocatePage() = 0;
    virtual void freePage(PageId page) = 0;
    /// The first n_tokens tokens of every layer.
    virtual void copyPage(PageId from, PageId to, size_t n_tokens) = 0;
    [[nodiscard]] virtual size_t pageBytes() const = 0;

    // A pass. beginPass() states the run that the steps up to the next one belong to.
    virtual void beginPass(const PassView& pass) = 0;
    virtual void embed(const DeviceLinear& table,
                       std::span<const int32_t> tokens,
                       DeviceBuffer& out) = 0;
    virtual void project(const ProjectStep& step) = 0;
    virtual void attend(const AttendStep& step) = 0;
    /// Waits for everything submitted. Errors: Internal with what the device reports.
    virtual Result<void> await() = 0;
    /// Rows of a buffer after await(); valid until the next step. The values may be changed in
    /// place by the caller.
    virtual std::span<float> read(DeviceBuffer& buffer, size_t n_rows) = 0;

    /// While busy, workers may spin between steps. Off when the program is idle.
    virtual void setBusy(bool busy) = 0;

    /// Bytes of weights this backend holds beside the mapped file.
    [[nodiscard]] virtual uint64_t residentBytes() const = 0;
    [[nodiscard]] virtual std::string description() const = 0;
    [[nodiscard]] virtual size_t threadCount() const = 0;
};

}  // namespace belvedere::inference
