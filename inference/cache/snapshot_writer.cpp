// SPDX-License-Identifier: Apache-2.0
// Writes a snapshot: room for header and tables, then the parts in the order of the file, then,
// with their checksums known, header and tables in front.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "inference/cache/snapshot.h"
#include "inference/cache/snapshot_header.h"
#include "kernels/base/check.h"

namespace belvedere::inference {
namespace {

using kernels::kPageTokens;

/// A file beside the one it will replace; removed unless it did. Only the user may read it.
class PartialFile {
  public:
    explicit PartialFile(std::string target)
        : target_(std::move(target)), path_(target_ + ".XXXXXX") {}

    ~PartialFile() {
        if (descriptor_ >= 0) {
            ::close(descriptor_);
            ::unlink(path_.c_str());
        }
    }

    PartialFile(const PartialFile&) = delete;
    PartialFile& operator=(const PartialFile&) = delete;

    [[nodiscard]] Result<void> open(uint64_t n_bytes) {
        descriptor_ = ::mkostemp(path_.data(), O_CLOEXEC);
        if (descriptor_ < 0) {
            return failed();
        }
        // Whoever fills a disk should hear of it before and not after minutes of writing.
        struct statvfs disk{};
        if (::fstatvfs(descriptor_, &disk) == 0 && disk.f_bavail * disk.f_frsize < n_bytes) {
            return fail(ErrorCode::Io, "{}: {} bytes are needed, {} are free", target_, n_bytes,
                        disk.f_bavail * disk.f_frsize);
        }
        return {};
    }

    [[nodiscard]] Result<void> write(std::span<const std::byte> bytes, uint64_t begin) {
        while (!bytes.empty()) {
            const ssize_t n =
                ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(begin));
            if (n < 0 && errno == EINTR) {
                continue;
            }
            if (n <= 0) {
                return failed();
            }
            bytes = bytes.subspan(static_cast<size_t>(n));
            begin += static_cast<uint64_t>(n);
        }
        return {};
    }

    [[nodiscard]] Result<void> finish(uint64_t n_bytes) {
        if (::ftruncate(descriptor_, static_cast<off_t>(n_bytes)) != 0 ||
            ::fsync(descriptor_) != 0 || ::rename(path_.c_str(), target_.c_str()) != 0) {
            return failed();
        }
        ::close(descriptor_);
        descriptor_ = -1;
        // The name is on the disk when its folder is.
        const std::filesystem::path folder = std::filesystem::path(target_).parent_path();
        const int directory =
            ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (directory >= 0) {
            ::fsync(directory);
            ::close(directory);
        }
        return {};
    }

  private:
    [[nodiscard]] tl::unexpected<Error> failed() const {
        return fail(ErrorCode::Io, "writing {}: {}", target_, std::strerror(errno));
    }

    const std::string target_;
    std::string path_;
    int descriptor_ = -1;
};

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
          file_(path),
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
        const size_t row_bytes = key_.shape.rowBytes(part);
        for (size_t head = 0; head < key_.shape.headCount(part); ++head) {
            const size_t begin = head * kPageTokens * row_bytes;
            std::memcpy(result.data() + begin, bytes.data() + begin, n_rows * row_bytes);
        }
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
