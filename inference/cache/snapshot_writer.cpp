// SPDX-License-Identifier: Apache-2.0
// Writes a snapshot: room for header and tables, then the parts in the order of the file, then,
// with their checksums known, header and tables in front.
#include <cstring>

#include "inference/cache/snapshot.h"
#include "inference/cache/snapshot_header.h"
#include "inference/format/partial_file.h"
#include "kernels/base/check.h"

namespace belvedere::inference {
namespace {

using kernels::kPageTokens;

class SnapshotWriter {
  public:
    SnapshotWriter(const std::string& path,
                   const SnapshotKey& key,
                   const SnapshotContent& content,
                   SnapshotLayout layout,
                   Backend& backend)
        : key_(key),
          content_(content),
          layout_(std::move(layout)),
          backend_(backend),
          file_(path, PartialFile::Readers::User),
          tables_(layout_.tables_end) {}

    [[nodiscard]] Result<void> write(const std::stop_token& stop) {
        BV_TRY(file_.open(layout_.file_bytes));
        for (const PagePart part : {PagePart::IndexKeys, PagePart::KeysAndValues}) {
            for (size_t layer = 0; layer < key_.shape.n_layers; ++layer) {
                if (key_.shape.has(part, layer)) {
                    BV_TRY(writeParts(part, layer, stop));
                }
            }
        }
        fillTables();
        BV_TRY(file_.write(tables_, 0));
        return file_.finish(layout_.file_bytes);
    }

  private:
    [[nodiscard]] Result<void> writeParts(PagePart part,
                                          size_t layer,
                                          const std::stop_token& stop) {
        const size_t n_bytes = key_.shape.partBytes(part);
        const size_t list = SnapshotLayout::listOf(part, layer);
        std::vector<std::byte> last;
        for (size_t page = 0; page < layout_.n_pages; ++page) {
            if (stop.stop_requested()) {
                return fail(ErrorCode::Cancelled, "stopped in layer {}", layer);
            }
            std::span<const std::byte> bytes =
                BV_TRY(backend_.readPage(content_.pages[page], part, layer));
            const size_t n_rows = layout_.n_tokens - page * kPageTokens;
            if (n_rows < kPageTokens) {
                last = withoutRest(bytes, part, n_rows);
                bytes = last;
            }
            put(layout_.sums_begin + (list * layout_.n_pages + page) * sizeof(uint64_t),
                checksumOf(bytes));
            BV_TRY(file_.write(bytes, layout_.parts_begin[list] + page * n_bytes));
        }
        return {};
    }

    /// A part whose rows from n_rows on are zeros: what stands there was never written.
    [[nodiscard]] std::vector<std::byte> withoutRest(std::span<const std::byte> bytes,
                                                     PagePart part,
                                                     size_t n_rows) const {
        std::vector<std::byte> result(bytes.size());
        key_.shape.copyRows(part, bytes.data(), result.data(), n_rows);
        return result;
    }

    template <class T>
    void put(size_t begin, const T& value) {
        std::memcpy(tables_.data() + begin, &value, sizeof value);
    }

    template <class T>
    void putAll(size_t begin, const std::vector<T>& values) {
        if (!values.empty()) {
            std::memcpy(tables_.data() + begin, values.data(), values.size() * sizeof(T));
        }
    }

    void fillTables() {
        putAll(layout_.tokens_begin, content_.tokens);
        putAll(layout_.banned_begin, content_.ban.blocks);
        for (size_t layer = 0; layer < key_.shape.n_layers; ++layer) {
            tables_[layout_.layers_begin + layer] =
                std::byte{key_.shape.has(PagePart::IndexKeys, layer)};
        }
        const PageShape& shape = key_.shape;
        SnapshotHeader header{};
        kSnapshotMagic.copy(header.magic, sizeof header.magic);
        header.version = kSnapshotVersion;
        header.header_bytes = sizeof header;
        header.file_bytes = layout_.file_bytes;
        header.model_low = key_.model.low;
        header.model_high = key_.model.high;
        header.cache_type = static_cast<uint32_t>(shape.cache_type);
        header.index_cache_type = static_cast<uint32_t>(shape.index_cache_type);
        header.n_layers = static_cast<uint32_t>(shape.n_layers);
        header.n_kv_heads = static_cast<uint32_t>(shape.n_kv_heads);
        header.head_dim = static_cast<uint32_t>(shape.head_dim);
        header.index_head_dim = static_cast<uint32_t>(shape.index_head_dim);
        header.page_tokens = kPageTokens;
        header.n_banned = static_cast<uint32_t>(layout_.n_banned);
        header.n_tokens = layout_.n_tokens;
        header.ban_begin = content_.ban.begin;
        header.tables_sum = checksumOf(std::span<const std::byte>(tables_).subspan(sizeof header));
        key_.name.copy(header.name, sizeof header.name - 1);
        put(0, header);
        put(offsetof(SnapshotHeader, header_sum),
            checksumOf(
                std::span<const std::byte>(tables_).first(offsetof(SnapshotHeader, header_sum))));
    }

    const SnapshotKey& key_;
    const SnapshotContent& content_;
    const SnapshotLayout layout_;
    Backend& backend_;
    PartialFile file_;
    std::vector<std::byte> tables_;  ///< the header before them
};

}  // namespace

Result<uint64_t> writeSnapshot(const std::string& path,
                               const SnapshotKey& key,
                               const SnapshotContent& content,
                               Backend& backend,
                               const std::stop_token& stop) {
    std::optional<SnapshotLayout> layout =
        SnapshotLayout::of(key.shape, content.tokens.size(), content.ban.blocks.size());
    BV_CHECK(layout && !content.tokens.empty() && content.pages.size() >= layout->n_pages);
    const uint64_t n_bytes = layout->file_bytes;
    SnapshotWriter writer(path, key, content, std::move(*layout), backend);
    BV_TRY(writer.write(stop));
    return n_bytes;
}

}  // namespace belvedere::inference
