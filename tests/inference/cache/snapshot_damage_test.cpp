// SPDX-License-Identifier: Apache-2.0
// Snapshots that are cut, damaged or hostile: each is refused with a message that names the file,
// or read; nothing is read outside of it. The address sanitizer watches.
#include <algorithm>
#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "inference/cache/snapshot_header.h"
#include "tests/inference/cache/snapshot_probe.h"
#include "tests/support/temp_dir.h"

namespace belvedere::testing {
namespace {

using namespace inference;

constexpr size_t kTokens = 300;
constexpr size_t kBanned = 3;

void expectRefusal(std::span<const std::byte> bytes, const std::string& what) {
    const std::vector<std::byte> exact(bytes.begin(), bytes.end());
    const auto read = readSnapshot(exact);
    ASSERT_FALSE(read.has_value()) << what;
    EXPECT_TRUE(read.error().code == ErrorCode::Corrupt ||
                read.error().code == ErrorCode::InvalidArgument ||
                read.error().code == ErrorCode::Unsupported)
        << what;
    EXPECT_EQ(read.error().message.rfind("probe: ", 0), 0U) << read.error().message;
}

SnapshotLayout layoutOf(size_t n_tokens, size_t n_banned) {
    return *SnapshotLayout::of(probeKey().shape, n_tokens, n_banned);
}

template <class T>
void put(std::vector<std::byte>& bytes, size_t begin, T value) {
    std::memcpy(bytes.data() + begin, &value, sizeof value);
}

TEST(SnapshotDamage, WhatIsWholeIsRead) {
    for (const size_t n_tokens : std::initializer_list<size_t>{1, 127, 128, 129, 300, 1000}) {
        EXPECT_TRUE(readSnapshot(probeSnapshot(n_tokens, 0)).has_value()) << n_tokens;
        EXPECT_TRUE(readSnapshot(probeSnapshot(n_tokens, 3)).has_value()) << n_tokens;
    }
}

TEST(SnapshotDamage, EveryLengthButItsOwnIsRefused) {
    const std::vector<std::byte> whole = probeSnapshot(kTokens, kBanned);
    const SnapshotLayout layout = layoutOf(kTokens, kBanned);
    std::vector<size_t> lengths = {0, 1, 7, 8, 16, 255, 256, 257, whole.size() - 1};
    for (const size_t begin : {layout.tokens_begin, layout.banned_begin, layout.layers_begin,
                               layout.sums_begin, layout.tables_end}) {
        lengths.insert(lengths.end(), {begin - 1, begin, begin + 1});
    }
    for (const size_t begin : layout.parts_begin) {
        if (begin > 0) {
            lengths.insert(lengths.end(), {begin - 1, begin, begin + 1, begin + 1024});
        }
    }
    for (const size_t length : lengths) {
        std::vector<std::byte> cut(whole.begin(),
                                   whole.begin() + static_cast<std::ptrdiff_t>(length));
        expectRefusal(cut, fmt::format("{} bytes", length));
        repair(cut);
        expectRefusal(cut, fmt::format("{} bytes, repaired", length));
    }
    std::vector<std::byte> longer = whole;
    longer.push_back(std::byte{0});
    expectRefusal(longer, "one byte more");
    repair(longer);
    expectRefusal(longer, "one byte more, repaired");
}

TEST(SnapshotDamage, EveryBitBeforeThePartsIsGuarded) {
    const std::vector<std::byte> whole = probeSnapshot(kTokens, kBanned);
    const size_t n_bytes = layoutOf(kTokens, kBanned).tables_end;
    for (size_t i = 0; i < n_bytes; ++i) {
        std::vector<std::byte> damaged = whole;
        damaged[i] ^= static_cast<std::byte>(1U << (i % 8));
        expectRefusal(damaged, fmt::format("byte {}", i));
    }
}

TEST(SnapshotDamage, EveryByteOfAPartIsGuardedByItself) {
    const std::vector<std::byte> whole = probeSnapshot(kTokens, 0);
    const SnapshotLayout layout = layoutOf(kTokens, 0);
    const SnapshotKey key = probeKey();
    for (size_t layer = 0; layer < key.shape.n_layers; ++layer) {
        for (const PagePart part : {PagePart::KeysAndValues, PagePart::IndexKeys}) {
            if (!key.shape.has(part, layer)) {
                continue;
            }
            const size_t n_bytes = key.shape.partBytes(part);
            for (size_t i = 0; i < layout.n_pages * n_bytes; i += 13) {
                std::vector<std::byte> damaged = whole;
                const size_t list = SnapshotLayout::listOf(part, layer);
                damaged[layout.parts_begin[list] + i] ^= static_cast<std::byte>(1U << (i % 8));
                const auto file = SnapshotFile::parse(damaged, "probe", key);
                ASSERT_TRUE(file.has_value()) << "only tables are read";
                const size_t page = i / n_bytes;
                EXPECT_FALSE((*file)->check(part, layer, page));
                EXPECT_TRUE((*file)->isDamaged(page));
                EXPECT_FALSE((*file)->isDamaged((page + 1) % layout.n_pages));
                EXPECT_TRUE((*file)->check(part, layer, (page + 1) % layout.n_pages));
                EXPECT_TRUE((*file)->check(PagePart::KeysAndValues, (layer + 1) % 2, page));
            }
        }
    }
}

/// Numbers that would be read outside the file, were they believed.
TEST(SnapshotDamage, CountsAreNotBelieved) {
    const uint64_t counts[] = {0,
                               2,
                               1001,
                               uint64_t{1} << 31,
                               uint64_t{1} << 32,
                               (uint64_t{1} << 61) - 1,
                               uint64_t{1} << 63,
                               UINT64_MAX - 127,
                               UINT64_MAX};
    for (const uint64_t count : counts) {
        std::vector<std::byte> bytes = probeSnapshot(1, 0);
        put(bytes, offsetof(SnapshotHeader, n_tokens), count + (count == 2 ? 127 : 0));
        repair(bytes);
        expectRefusal(bytes, fmt::format("{} tokens", count));
        bytes = probeSnapshot(1, 0);
        put(bytes, offsetof(SnapshotHeader, n_banned), static_cast<uint32_t>(count | 1));
        repair(bytes);
        expectRefusal(bytes, fmt::format("{} banned blocks", count));
    }
    EXPECT_FALSE(SnapshotLayout::of(probeKey().shape, UINT64_MAX, 0));
    EXPECT_FALSE(SnapshotLayout::of(probeKey().shape, uint64_t{1} << 60, 0));
}

TEST(SnapshotDamage, TablesMustMakeSense) {
    const SnapshotLayout layout = layoutOf(kTokens, kBanned);
    const auto with = [&](size_t begin, auto value) {
        std::vector<std::byte> bytes = probeSnapshot(kTokens, kBanned);
        put(bytes, begin, value);
        repair(bytes);
        return bytes;
    };
    expectRefusal(with(layout.tokens_begin + 4 * (kTokens - 1), int32_t{100}), "id too large");
    expectRefusal(with(layout.banned_begin, uint32_t{2}), "twice the same block");
    expectRefusal(with(layout.banned_begin + 8, uint32_t{1}), "not ascending");
    expectRefusal(with(layout.layers_begin, uint8_t{1}), "an index where there is none");
    expectRefusal(with(layout.layers_begin + 1, uint8_t{0}), "none where there is one");
    expectRefusal(with(layout.layers_begin + 1, uint8_t{2}), "neither");
    expectRefusal(with(offsetof(SnapshotHeader, ban_begin), UINT64_MAX), "blocks without a begin");
}

TEST(SnapshotDamage, RandomDamageIsRefusedOrHarmless) {
    std::mt19937_64 random(7);
    for (int round = 0; round < 3000; ++round) {
        std::vector<std::byte> bytes = probeSnapshot(1 + random() % 300, random() % 8);
        for (uint64_t n = random() % 4 + 1; n > 0; --n) {
            bytes[random() % 2 == 0 ? random() % 256 : random() % bytes.size()] =
                static_cast<std::byte>(random());
        }
        if (random() % 4 == 0) {
            bytes.resize(random() % bytes.size());
        }
        if (random() % 4 != 0) {
            repair(bytes);
        }
        const std::vector<std::byte> exact = bytes;
        const auto read = readSnapshot(exact);
        EXPECT_TRUE(read.has_value() || !read.error().message.empty());
    }
}

TEST(SnapshotDamage, WhatIsNoFileIsNoSnapshot) {
    const TempDir dir;
    const auto missing = SnapshotFile::open((dir.path() / "none").string(), probeKey());
    ASSERT_FALSE(missing.has_value());
    EXPECT_EQ(missing.error().code, ErrorCode::NotFound);
    const auto folder = SnapshotFile::open(dir.path().string(), probeKey());
    ASSERT_FALSE(folder.has_value());
    EXPECT_EQ(folder.error().code, ErrorCode::InvalidArgument);
    const auto text =
        SnapshotFile::open(dir.write("text", std::string(500, 'x')).string(), probeKey());
    ASSERT_FALSE(text.has_value());
    EXPECT_EQ(text.error().code, ErrorCode::InvalidArgument);
}

}  // namespace
}  // namespace belvedere::testing
