// SPDX-License-Identifier: Apache-2.0
#pragma once

// A sequence of the KV cache in a file: its tokens, and the pages as the backend had them. Opening
// reads the tables; a part of a page (K and V of one layer, or its index keys) is read where the
// file is mapped when a pass first needs it, and its checksum is compared then.
//
// Nothing in the file says where something stands. The shape comes from the model at hand and must
// be the file's; what is left free are three counts, from which, with the shape, follow all offsets
// and the length of the file, and that must be the file's own. Numbers are little-endian.
//
//      0   8  "BVSNAPSH"
//      8   4  version of this format: 1
//     12   4  bytes of this header: 256
//     16   8  bytes of the file
//     24  16  digest of the model: weights and all else that K, V and index keys depend on
//     40   4  element type of K and V (kernels::CacheType)
//     44   4  element type of index keys
//     48   4  layers
//     52   4  KV heads
//     56   4  head_dim
//     60   4  head_dim of the index
//     64   4  tokens of a page: 128
//     68   4  banned blocks
//     72   8  tokens
//     80   8  begin of the ban (engine.h); all ones: none
//     88   8  checksum of the tables
//     96  64  name of the model, UTF-8, zeros behind it
//    160  88  zeros
//    248   8  checksum of bytes [0, 248)
//    256      tables, each at a multiple of 64: token ids, int32 [tokens];
//             banned blocks, uint32 [banned blocks]; layers with an index, uint8 [layers];
//             checksums, uint64 [layers, K and V | index keys, pages], 0 where there is none
//             parts, each list at a multiple of 4096: for each layer with an index, [pages] of
//             index keys; then for each layer, [pages] of K and V (PageShape)
//
// In the last page, rows behind the last token are zeros.

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "inference/backend/backend.h"
#include "inference/cache/digest.h"
#include "inference/engine.h"
#include "inference/format/mapped_file.h"

namespace belvedere::inference {

/// What a snapshot must have been made with.
struct SnapshotKey {
    Digest model;
    std::string name;  ///< for messages
    PageShape shape;
    size_t max_tokens = 0;  ///< of the window
    size_t vocab_size = 0;
};

/// Where everything stands in the file.
struct SnapshotLayout {
    size_t n_tokens = 0;
    size_t n_banned = 0;
    size_t n_pages = 0;
    size_t tokens_begin = 0;
    size_t banned_begin = 0;
    size_t layers_begin = 0;
    size_t sums_begin = 0;
    size_t tables_end = 0;
    std::vector<size_t> parts_begin;  ///< [layers, K and V | index keys]; 0: none
    size_t file_bytes = 0;

    /// nullopt where the numbers are beyond any file.
    [[nodiscard]] static std::optional<SnapshotLayout> of(const PageShape& shape,
                                                          uint64_t n_tokens,
                                                          uint64_t n_banned);

    /// In parts_begin, and in the checksums as a list of `n_pages`.
    [[nodiscard]] static size_t listOf(PagePart part, size_t layer) {
        return 2 * layer + (part == PagePart::IndexKeys ? 1 : 0);
    }
};

class SnapshotFile final : public StoredPages {
  public:
    /// Errors: NotFound, Io; InvalidArgument where the file is no snapshot or was made with another
    /// model, other types of the cache or for a longer window; Unsupported for another version;
    /// Corrupt where it is damaged.
    [[nodiscard]] static Result<std::unique_ptr<SnapshotFile>> open(const std::string& path,
                                                                    const SnapshotKey& key);
    /// Of bytes that outlive the result, aligned to 64.
    [[nodiscard]] static Result<std::unique_ptr<SnapshotFile>> parse(
        std::span<const std::byte> bytes, const std::string& name, const SnapshotKey& key);

    [[nodiscard]] const std::vector<TokenId>& tokens() const { return tokens_; }

    [[nodiscard]] const BlockBan& ban() const { return ban_; }

    [[nodiscard]] size_t pageCount() const { return layout_.n_pages; }

    [[nodiscard]] const std::byte* parts(PagePart part, size_t layer) const override {
        return bytes_.data() + layout_.parts_begin[SnapshotLayout::listOf(part, layer)];
    }

    [[nodiscard]] bool isChecked(PagePart part, size_t layer, size_t page) const override {
        return states_[stateOf(part, layer, page)].load(std::memory_order_acquire) == State::Whole;
    }

    bool check(PagePart part, size_t layer, size_t page) override;

    [[nodiscard]] bool isDamaged(size_t page) const override {
        return is_short_.load(std::memory_order_acquire) ||
               damaged_[page].load(std::memory_order_acquire);
    }

    [[nodiscard]] std::string damage(PagePart part, size_t layer, size_t page) const override;
    [[nodiscard]] Result<void> checkWhole() override;

  private:
    enum class State : uint8_t { Unknown, Whole, Damaged };

    SnapshotFile(std::string name, std::span<const std::byte> bytes, PageShape shape)
        : name_(std::move(name)), bytes_(bytes), shape_(std::move(shape)) {}

    [[nodiscard]] Result<void> readTables(const SnapshotKey& key, uint64_t expected);

    [[nodiscard]] size_t stateOf(PagePart part, size_t layer, size_t page) const {
        return SnapshotLayout::listOf(part, layer) * layout_.n_pages + page;
    }

    const std::string name_;
    std::unique_ptr<MappedFile> file_;  ///< nullptr: bytes of somebody else
    const std::span<const std::byte> bytes_;
    const PageShape shape_;
    SnapshotLayout layout_;
    std::vector<TokenId> tokens_;
    BlockBan ban_;
    std::vector<uint64_t> sums_;              ///< by stateOf()
    std::vector<std::atomic<State>> states_;  ///< likewise
    std::vector<std::atomic<bool>> damaged_;  ///< by page
    std::atomic<bool> is_short_ = false;
};

/// What goes into a snapshot.
struct SnapshotContent {
    std::vector<TokenId> tokens;
    BlockBan ban;
    std::vector<PageId> pages;  ///< of the tokens
};

/// Puts a sequence into a file, which is there whole or not at all: it is written beside its place,
/// brought to the disk and then renamed. Only the user may read it. Returns its bytes. The thread
/// that may touch pages. Errors: Io; Corrupt where a page comes from a damaged snapshot; Cancelled.
[[nodiscard]] Result<uint64_t> writeSnapshot(const std::string& path,
                                             const SnapshotKey& key,
                                             const SnapshotContent& content,
                                             Backend& backend,
                                             const std::stop_token& stop);

}  // namespace belvedere::inference
