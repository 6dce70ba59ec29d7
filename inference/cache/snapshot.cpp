// SPDX-License-Identifier: Apache-2.0
#include "inference/cache/snapshot.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "inference/cache/snapshot_header.h"
#include "inference/format/byte_cursor.h"
#include "inference/format/printable.h"
#include "kernels/base/check.h"

namespace belvedere::inference {
namespace {

using kernels::CacheType;
using kernels::kPageTokens;

constexpr size_t kTableAlignment = 64;
constexpr size_t kPartsAlignment = 4096;

/// Adds up sizes of a file; once they pass what a file can have, the sum is lost.
class SizeSum {
  public:
    explicit SizeSum(uint64_t begin) : sum_(begin) {}

    /// Room for n * size bytes at the next multiple of alignment; returns where it begins.
    size_t add(uint64_t n, uint64_t size, uint64_t alignment) {
        const auto begin = sum_ ? checkedAlign(*sum_, alignment) : std::nullopt;
        const auto bytes = checkedMul(n, size);
        sum_ = begin && bytes ? checkedAdd(*begin, *bytes) : std::nullopt;
        return begin.value_or(0);
    }

    [[nodiscard]] std::optional<uint64_t> value() const {
        return sum_ && *sum_ <= uint64_t{INT64_MAX} ? sum_ : std::nullopt;
    }

  private:
    std::optional<uint64_t> sum_;
};

std::string typeName(uint32_t type) {
    const kernels::CacheTypeInfo* info = kernels::findCacheType(type);
    return info != nullptr ? info->name : fmt::format("type {}", type);
}

std::string modelName(const char (&name)[64]) {
    return printable(std::string_view(name, strnlen(name, sizeof name)));
}

/// One number of the shape, in the file and here.
struct ShapeFact {
    const char* what;
    uint64_t found;
    uint64_t expected;
};

/// Errors: InvalidArgument naming what the model at hand has otherwise.
Result<void> compareShape(const std::string& name,
                          const SnapshotHeader& header,
                          const SnapshotKey& key) {
    if (Digest{header.model_low, header.model_high} != key.model) {
        return fail(ErrorCode::InvalidArgument,
                    "{}: made with other weights or settings of {} ({:016x}); here is {} ({:016x})",
                    name, modelName(header.name), header.model_low, key.name, key.model.low);
    }
    const PageShape& shape = key.shape;
    if (header.cache_type != static_cast<uint32_t>(shape.cache_type) ||
        (!shape.index_layers.empty() &&
         header.index_cache_type != static_cast<uint32_t>(shape.index_cache_type))) {
        return fail(ErrorCode::InvalidArgument,
                    "{}: its cache is of {} with index keys of {}; here it is of {} and {}", name,
                    typeName(header.cache_type), typeName(header.index_cache_type),
                    kernels::cacheTypeName(shape.cache_type),
                    kernels::cacheTypeName(shape.index_cache_type));
    }
    const ShapeFact facts[] = {
        {"layers", header.n_layers, shape.n_layers},
        {"KV heads", header.n_kv_heads, shape.n_kv_heads},
        {"elements of a head", header.head_dim, shape.head_dim},
        {"elements of an index head", header.index_head_dim, shape.index_head_dim},
        {"tokens of a page", header.page_tokens, kPageTokens}};
    for (const ShapeFact& fact : facts) {
        if (fact.found != fact.expected) {
            return fail(ErrorCode::InvalidArgument, "{}: {} {}, the model here has {}", name,
                        fact.found, fact.what, fact.expected);
        }
    }
    return {};
}

Result<SnapshotHeader> readHeader(const std::string& name, std::span<const std::byte> bytes) {
    SnapshotHeader header{};
    if (bytes.size() < sizeof header) {
        return fail(ErrorCode::InvalidArgument,
                    "{}: no snapshot: {} bytes, the header alone has {}", name, bytes.size(),
                    sizeof header);
    }
    std::memcpy(&header, bytes.data(), sizeof header);
    if (std::string_view(header.magic, sizeof header.magic) != kSnapshotMagic) {
        return fail(ErrorCode::InvalidArgument, "{}: no snapshot of a sequence", name);
    }
    if (header.version != kSnapshotVersion || header.header_bytes != sizeof header) {
        return fail(ErrorCode::Unsupported, "{}: a snapshot of version {}, this program reads {}",
                    name, header.version, kSnapshotVersion);
    }
    if (header.header_sum != checksumOf(bytes.first(offsetof(SnapshotHeader, header_sum)))) {
        return fail(ErrorCode::Corrupt, "{}: the header is damaged", name);
    }
    return header;
}

template <class T>
std::vector<T> readTable(std::span<const std::byte> bytes, size_t begin, size_t n) {
    std::vector<T> table(n);
    if (n > 0) {
        std::memcpy(table.data(), bytes.data() + begin, n * sizeof(T));
    }
    return table;
}

}  // namespace

std::optional<SnapshotLayout> SnapshotLayout::of(const PageShape& shape,
                                                 uint64_t n_tokens,
                                                 uint64_t n_banned) {
    SnapshotLayout layout;
    layout.n_tokens = n_tokens;
    layout.n_banned = n_banned;
    layout.n_pages = n_tokens / kPageTokens + (n_tokens % kPageTokens > 0 ? 1 : 0);
    SizeSum sum(sizeof(SnapshotHeader));
    layout.tokens_begin = sum.add(n_tokens, sizeof(TokenId), kTableAlignment);
    layout.banned_begin = sum.add(n_banned, sizeof(uint32_t), kTableAlignment);
    layout.layers_begin = sum.add(shape.n_layers, 1, kTableAlignment);
    layout.sums_begin =
        sum.add(layout.n_pages, 2 * shape.n_layers * sizeof(uint64_t), kTableAlignment);
    layout.tables_end = sum.value().value_or(0);
    layout.parts_begin.assign(2 * shape.n_layers, 0);
    for (const PagePart part : {PagePart::IndexKeys, PagePart::KeysAndValues}) {
        for (size_t layer = 0; layer < shape.n_layers; ++layer) {
            if (shape.has(part, layer)) {
                layout.parts_begin[listOf(part, layer)] =
                    sum.add(layout.n_pages, shape.partBytes(part), kPartsAlignment);
            }
        }
    }
    if (!sum.value()) {
        return std::nullopt;
    }
    layout.file_bytes = *sum.value();
    return layout;
}

Result<std::unique_ptr<SnapshotFile>> SnapshotFile::open(const std::string& path,
                                                         const SnapshotKey& key) {
    std::unique_ptr<MappedFile> file = BV_TRY(MappedFile::open(path));
    std::unique_ptr<SnapshotFile> snapshot = BV_TRY(parse(file->bytes(), path, key));
    snapshot->file_ = std::move(file);
    return snapshot;
}

Result<std::unique_ptr<SnapshotFile>> SnapshotFile::parse(std::span<const std::byte> bytes,
                                                          const std::string& name,
                                                          const SnapshotKey& key) {
    const SnapshotHeader header = BV_TRY(readHeader(name, bytes));
    BV_TRY(compareShape(name, header, key));
    if (header.n_tokens == 0 || header.n_tokens > key.max_tokens) {
        return fail(ErrorCode::InvalidArgument, "{}: holds {} tokens, the window here {}", name,
                    header.n_tokens, key.max_tokens);
    }
    std::optional<SnapshotLayout> layout =
        SnapshotLayout::of(key.shape, header.n_tokens, header.n_banned);
    if (!layout || layout->file_bytes != bytes.size() || header.file_bytes != bytes.size()) {
        return fail(ErrorCode::Corrupt, "{}: {} bytes, expected {} for {} tokens", name,
                    bytes.size(), layout ? layout->file_bytes : header.file_bytes, header.n_tokens);
    }
    std::unique_ptr<SnapshotFile> snapshot(new SnapshotFile(name, bytes, key.shape));
    snapshot->layout_ = std::move(*layout);
    snapshot->ban_.begin = header.ban_begin;
    BV_TRY(snapshot->readTables(key, header.tables_sum));
    return snapshot;
}

Result<void> SnapshotFile::readTables(const SnapshotKey& key, uint64_t expected) {
    const auto tables =
        bytes_.subspan(sizeof(SnapshotHeader), layout_.tables_end - sizeof(SnapshotHeader));
    if (checksumOf(tables) != expected) {
        return fail(ErrorCode::Corrupt, "{}: the tables are damaged", name_);
    }
    tokens_ = readTable<TokenId>(bytes_, layout_.tokens_begin, layout_.n_tokens);
    for (size_t i = 0; i < tokens_.size(); ++i) {
        // Below 0 are rows of images.
        if (tokens_[i] >= 0 && static_cast<size_t>(tokens_[i]) >= key.vocab_size) {
            return fail(ErrorCode::Corrupt, "{}: token {} has id {}, the vocabulary {}", name_, i,
                        tokens_[i], key.vocab_size);
        }
    }
    ban_.blocks = readTable<uint32_t>(bytes_, layout_.banned_begin, layout_.n_banned);
    // As the cache compares bans: sorted, and without blocks there is none.
    const bool is_ascending = std::adjacent_find(ban_.blocks.begin(), ban_.blocks.end(),
                                                 std::greater_equal<>()) == ban_.blocks.end();
    if (!is_ascending || ban_.blocks.empty() != (ban_.begin == BlockBan::kAnswer)) {
        return fail(ErrorCode::Corrupt, "{}: the banned blocks contradict each other", name_);
    }
    const auto layers = readTable<uint8_t>(bytes_, layout_.layers_begin, shape_.n_layers);
    for (size_t layer = 0; layer < layers.size(); ++layer) {
        if (layers[layer] != (shape_.has(PagePart::IndexKeys, layer) ? 1 : 0)) {
            return fail(ErrorCode::InvalidArgument,
                        "{}: layer {} has {}index keys, in the model here it is otherwise", name_,
                        layer, layers[layer] != 0 ? "" : "no ");
        }
    }
    sums_ = readTable<uint64_t>(bytes_, layout_.sums_begin, 2 * shape_.n_layers * layout_.n_pages);
    states_ = std::vector<std::atomic<State>>(sums_.size());
    damaged_ = std::vector<std::atomic<bool>>(layout_.n_pages);
    return {};
}

bool SnapshotFile::check(PagePart part, size_t layer, size_t page) {
    const size_t i = stateOf(part, layer, page);
    State state = states_[i].load(std::memory_order_acquire);
    if (state == State::Unknown) {
        const size_t n_bytes = shape_.partBytes(part);
        const bool is_whole =
            !is_short_ && checksumOf({parts(part, layer) + page * n_bytes, n_bytes}) == sums_[i];
        state = is_whole ? State::Whole : State::Damaged;
        if (!is_whole) {
            damaged_[page].store(true, std::memory_order_release);
        }
        states_[i].store(state, std::memory_order_release);
    }
    return state == State::Whole;
}

std::string SnapshotFile::damage(PagePart part, size_t layer, size_t page) const {
    return fmt::format("{}: {} of layer {} are damaged for tokens {} to {}", name_,
                       part == PagePart::IndexKeys ? "the index keys" : "keys and values", layer,
                       page * kPageTokens,
                       std::min((page + 1) * kPageTokens, layout_.n_tokens) - 1);
}

Result<void> SnapshotFile::checkWhole() {
    const Result<void> whole = file_ != nullptr ? file_->checkWhole() : Result<void>();
    if (!whole.has_value()) {
        is_short_.store(true, std::memory_order_release);
        return fail(ErrorCode::Corrupt, "{}", whole.error().message);
    }
    return {};
}

}  // namespace belvedere::inference
