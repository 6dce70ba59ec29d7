// SPDX-License-Identifier: Apache-2.0
#include "tests/inference/cache/snapshot_probe.h"

#include <cstring>

#include "inference/cache/snapshot_header.h"

namespace belvedere::testing {

using namespace inference;  // the file is about it

namespace {

template <class T>
void put(std::span<std::byte> bytes, size_t begin, T value) {
    std::memcpy(bytes.data() + begin, &value, sizeof value);
}

}  // namespace

SnapshotKey probeKey() {
    SnapshotKey key;
    key.model = {0x0123456789ABCDEF, 42};
    key.name = "probe";
    key.shape = {2, 1, 4, kernels::CacheType::F16, 4, kernels::CacheType::BF16, {false, true}};
    key.max_tokens = 1000;
    key.vocab_size = 100;
    return key;
}

std::vector<std::byte> probeSnapshot(size_t n_tokens, size_t n_banned) {
    const PageShape shape = probeKey().shape;
    const SnapshotLayout layout = *SnapshotLayout::of(shape, n_tokens, n_banned);
    std::vector<std::byte> bytes(layout.file_bytes);
    SnapshotHeader header{};
    header.n_banned = static_cast<uint32_t>(n_banned);
    header.n_tokens = n_tokens;
    header.ban_begin = n_banned > 0 ? 3 : UINT64_MAX;
    put(bytes, 0, header);
    for (size_t i = 0; i < n_tokens; ++i) {
        put(bytes, layout.tokens_begin + 4 * i, static_cast<int32_t>(i * 7 % 100));
    }
    for (size_t i = 0; i < n_banned; ++i) {
        put(bytes, layout.banned_begin + 4 * i, static_cast<uint32_t>(2 * i));
    }
    bytes[layout.layers_begin + 1] = std::byte{1};
    for (size_t layer = 0; layer < shape.n_layers; ++layer) {
        for (const PagePart part : {PagePart::KeysAndValues, PagePart::IndexKeys}) {
            const size_t n_bytes = shape.partBytes(part);
            for (size_t page = 0; page < layout.n_pages && shape.has(part, layer); ++page) {
                const size_t list = SnapshotLayout::listOf(part, layer);
                const auto place =
                    std::span(bytes).subspan(layout.parts_begin[list] + page * n_bytes, n_bytes);
                for (size_t i = 0; i < n_bytes; ++i) {
                    place[i] = static_cast<std::byte>(i * 31 + layer * 5 + page);
                }
                put(bytes, layout.sums_begin + 8 * (list * layout.n_pages + page),
                    checksumOf(place));
            }
        }
    }
    repair(bytes);
    return bytes;
}

void repair(std::span<std::byte> bytes) {
    SnapshotHeader header{};
    if (bytes.size() < sizeof header) {
        return;
    }
    std::memcpy(&header, bytes.data(), sizeof header);
    const SnapshotKey key = probeKey();
    kSnapshotMagic.copy(header.magic, sizeof header.magic);
    header.version = kSnapshotVersion;
    header.header_bytes = sizeof header;
    header.file_bytes = bytes.size();
    header.model_low = key.model.low;
    header.model_high = key.model.high;
    header.cache_type = static_cast<uint32_t>(key.shape.cache_type);
    header.index_cache_type = static_cast<uint32_t>(key.shape.index_cache_type);
    header.n_layers = static_cast<uint32_t>(key.shape.n_layers);
    header.n_kv_heads = static_cast<uint32_t>(key.shape.n_kv_heads);
    header.head_dim = static_cast<uint32_t>(key.shape.head_dim);
    header.index_head_dim = static_cast<uint32_t>(key.shape.index_head_dim);
    header.page_tokens = kernels::kPageTokens;
    const auto layout = SnapshotLayout::of(key.shape, header.n_tokens, header.n_banned);
    if (layout && layout->tables_end <= bytes.size()) {
        header.tables_sum =
            checksumOf(bytes.subspan(sizeof header, layout->tables_end - sizeof header));
    }
    put(bytes, 0, header);
    put(bytes, offsetof(SnapshotHeader, header_sum),
        checksumOf(bytes.first(offsetof(SnapshotHeader, header_sum))));
}

Result<void> readSnapshot(std::span<const std::byte> bytes) {
    const SnapshotKey key = probeKey();
    const auto snapshot = BV_TRY(SnapshotFile::parse(bytes, "probe", key));
    bool is_whole = true;
    for (size_t layer = 0; layer < key.shape.n_layers; ++layer) {
        for (const PagePart part : {PagePart::KeysAndValues, PagePart::IndexKeys}) {
            for (size_t page = 0; page < snapshot->pageCount(); ++page) {
                is_whole =
                    (!key.shape.has(part, layer) || snapshot->check(part, layer, page)) && is_whole;
            }
        }
    }
    return is_whole ? Result<void>() : fail(ErrorCode::Corrupt, "probe: a part is damaged");
}

}  // namespace belvedere::testing
