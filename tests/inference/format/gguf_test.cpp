// SPDX-License-Identifier: Apache-2.0
// The GGUF reader against hostile files: the published patterns by name, then hundreds of seeded
// mutations of a whole model, which are refused with a message or load and run. Meant for the
// address sanitizer; the bytes stand in a buffer of exactly their size.

#include "inference/format/gguf.h"

#include <cstring>
#include <functional>
#include <random>

#include <gtest/gtest.h>

#include "inference/engine.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace belvedere::testing {
namespace {

using inference::GgufFile;

/// Bytes on the heap without room behind them.
class ExactBytes {
  public:
    explicit ExactBytes(std::string_view text)
        : size_(text.size()), bytes_(std::make_unique<std::byte[]>(text.size())) {
        std::memcpy(bytes_.get(), text.data(), text.size());
    }

    [[nodiscard]] std::span<const std::byte> span() const { return {bytes_.get(), size_}; }

  private:
    size_t size_;
    std::unique_ptr<std::byte[]> bytes_;
};

Result<GgufFile> parse(const std::string& bytes) {
    const ExactBytes exact(bytes);
    return GgufFile::parse(exact.span(), "test.gguf");
}

void expectRefused(const std::string& bytes, ErrorCode code = ErrorCode::Corrupt) {
    const auto file = parse(bytes);
    ASSERT_FALSE(file.has_value());
    EXPECT_EQ(file.error().code, code) << file.error().message;
    EXPECT_NE(file.error().message.find("test.gguf"), std::string::npos) << file.error().message;
}

/// magic, version, number of tensors, number of keys.
std::string header(uint64_t n_tensors, uint64_t n_keys, uint32_t version = 3) {
    return "GGUF" + rawBytes(version) + rawBytes(n_tensors) + rawBytes(n_keys);
}

std::string text(std::string_view content) {
    return rawBytes(uint64_t{content.size()}) + std::string(content);
}

std::string tensorInfo(std::string_view name,
                       const std::vector<uint64_t>& dims,
                       uint32_t type,
                       uint64_t offset) {
    std::string info = text(name) + rawBytes(static_cast<uint32_t>(dims.size()));
    for (const uint64_t dim : dims) {
        info += rawBytes(dim);
    }
    return info + rawBytes(type) + rawBytes(offset);
}

constexpr uint32_t kF32 = 0;
constexpr uint32_t kQ4_0 = 2;
constexpr uint64_t kHuge = uint64_t{1} << 61;

TEST(Gguf, ReadsVersionsTwoAndThree) {
    for (const uint32_t version : {2U, 3U}) {
        GgufBuilder builder;
        builder.version = version;
        builder.addUint32("a.b", 7);
        builder.addString("name", "x");
        builder.addTensorF32("t", {2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
        const std::string bytes = builder.build();
        const ExactBytes exact(bytes);
        const auto file = GgufFile::parse(exact.span(), "test.gguf");
        ASSERT_TRUE(file.has_value()) << file.error().message;
        EXPECT_EQ(*file->requiredUint("a.b"), 7U);
        ASSERT_NE(file->findTensor("t"), nullptr);
        EXPECT_EQ(file->findTensor("t")->dims[1], 3U);
        EXPECT_EQ(file->findTensor("t")->bytes.size(), 24U);
    }
}

TEST(Gguf, OtherVersionsAndByteOrdersAreNamed) {
    expectRefused(header(0, 0, 1), ErrorCode::Unsupported);
    expectRefused(header(0, 0, 4), ErrorCode::Unsupported);
    expectRefused(header(0, 0, 0x03000000U), ErrorCode::Unsupported);  // big-endian
}

// The patterns of published reports.

TEST(GgufPatterns, KeyCountTimesSizeWraps) {  // CVE-2024-23605
    for (const uint64_t n : {kHuge, kHuge + 3, UINT64_MAX, uint64_t{1} << 32}) {
        expectRefused(header(0, n));
    }
}

TEST(GgufPatterns, TensorCountTimesSizeWraps) {  // CVE-2024-21836
    for (const uint64_t n : {uint64_t{1} << 60, UINT64_MAX, uint64_t{200'000}}) {
        expectRefused(header(n, 0));
    }
}

TEST(GgufPatterns, StringLengthPlusOneWraps) {  // CVE-2024-23496
    for (const uint64_t n : {UINT64_MAX, UINT64_MAX - 7, kHuge, uint64_t{1} << 30}) {
        expectRefused(header(0, 1) + rawBytes(n) + "key");
        expectRefused(header(0, 1) + text("k") + rawBytes(uint32_t{8}) + rawBytes(n) + "value");
    }
}

TEST(GgufPatterns, ArrayCountTimesElementSizeWraps) {  // CVE-2024-21825
    for (const uint32_t element : {0U, 4U, 8U, 12U}) {
        for (const uint64_t n : {kHuge, UINT64_MAX, uint64_t{1} << 40}) {
            expectRefused(header(0, 1) + text("k") + rawBytes(uint32_t{9}) + rawBytes(element) +
                          rawBytes(n) + std::string(64, '\0'));
        }
    }
}

TEST(GgufPatterns, NestedArraysAndUnknownTypes) {
    expectRefused(header(0, 1) + text("k") + rawBytes(uint32_t{9}) + rawBytes(uint32_t{9}) +
                      rawBytes(uint64_t{1}) + std::string(64, '\0'),
                  ErrorCode::Unsupported);
    for (const uint32_t type : {13U, 255U, UINT32_MAX}) {
        const auto file = parse(header(0, 1) + text("k") + rawBytes(type) + std::string(64, '\0'));
        EXPECT_FALSE(file.has_value()) << type;
    }
}

TEST(GgufPatterns, MoreDimensionsThanTheArrayHolds) {  // CVE-2024-21802
    for (const uint32_t n_dims : {0U, 5U, 64U, UINT32_MAX}) {
        expectRefused(header(1, 0) + text("t") + rawBytes(n_dims) + std::string(400, '\1'));
    }
}

TEST(GgufPatterns, SumOfPaddedSizesWraps) {  // CVE-2025-53630, CVE-2026-27940
    std::string infos;
    for (int i = 0; i < 8; ++i) {
        infos += tensorInfo("t" + std::to_string(i), {uint64_t{1} << 60}, kF32,
                            static_cast<uint64_t>(i) << 62);
    }
    expectRefused(header(8, 0) + infos + std::string(64, '\0'));
    expectRefused(header(1, 0) + tensorInfo("t", {UINT64_MAX / 4 - 2}, kF32, 0) +
                  std::string(64, '\0'));
}

TEST(GgufPatterns, TensorBytesWrap) {  // CVE-2026-33298
    const uint64_t side = uint64_t{1} << 31;
    for (const auto& dims :
         {std::vector<uint64_t>{side, side}, std::vector<uint64_t>{side, side, 4},
          std::vector<uint64_t>{side, side, side, side},
          std::vector<uint64_t>{32, uint64_t{1} << 59}}) {
        for (const uint32_t type : {kF32, kQ4_0}) {
            expectRefused(header(1, 0) + tensorInfo("t", dims, type, 0) + std::string(4096, '\0'));
        }
    }
}

TEST(GgufPatterns, ZeroDimensions) {
    for (const auto& dims : {std::vector<uint64_t>{0}, std::vector<uint64_t>{32, 0},
                             std::vector<uint64_t>{32, 1, 0, 1}}) {
        expectRefused(header(1, 0) + tensorInfo("t", dims, kF32, 0) + std::string(256, '\0'));
    }
}

TEST(GgufPatterns, RowsThatAreNoWholeBlocks) {
    expectRefused(header(1, 0) + tensorInfo("t", {33}, kQ4_0, 0) + std::string(256, '\0'));
}

TEST(GgufPatterns, DataBehindTheEndOfTheFile) {  // CVE-2026-7482
    for (const uint64_t offset : {uint64_t{32}, uint64_t{1} << 20, UINT64_MAX - 31, kHuge}) {
        expectRefused(header(1, 0) + tensorInfo("t", {8}, kF32, offset) + std::string(60, '\0'));
    }
}

TEST(GgufPatterns, OffsetsThatAreNotAligned) {
    expectRefused(header(1, 0) + tensorInfo("t", {8}, kF32, 4) + std::string(256, '\0'));
}

TEST(GgufPatterns, TensorsThatOverlap) {
    expectRefused(header(2, 0) + tensorInfo("a", {64}, kF32, 0) + tensorInfo("b", {64}, kF32, 32) +
                  std::string(1024, '\0'));
}

TEST(GgufPatterns, RemovedAndUnknownTensorTypesAreNamed) {
    for (const uint32_t type : {4U, 5U, 31U, 33U, 36U, 43U, 1000U, UINT32_MAX}) {
        const auto file =
            parse(header(1, 0) + tensorInfo("t", {32}, type, 0) + std::string(4096, '\0'));
        ASSERT_FALSE(file.has_value()) << type;
        EXPECT_NE(file.error().message.find("t"), std::string::npos);
    }
}

TEST(GgufPatterns, AlignmentsThatAreNone) {
    for (const uint32_t alignment : {0U, 3U, 33U, 0x80000000U, UINT32_MAX}) {
        GgufBuilder builder;
        builder.addUint32("general.alignment", alignment);
        const auto file = parse(builder.build());
        EXPECT_FALSE(file.has_value()) << alignment;
    }
    GgufBuilder builder;
    builder.addString("general.alignment", "32");
    expectRefused(builder.build());
}

TEST(GgufPatterns, DuplicateKeysAndNames) {
    GgufBuilder keys;
    keys.addUint32("a", 1);
    keys.addUint32("a", 2);
    expectRefused(keys.build());
    GgufBuilder names;
    const std::vector<float> values(8, 0.0F);
    names.addTensorF32("t", {8}, values);
    names.addTensorF32("t", {8}, values);
    expectRefused(names.build());
}

TEST(GgufPatterns, BooleansThatAreNeither) {
    GgufBuilder builder;
    builder.addRaw("b", 7, std::string(1, '\2'));
    expectRefused(builder.build());
}

TEST(GgufPatterns, FilesOfFewBytes) {  // CVE-2024-39720
    const std::string whole = header(0, 0);
    for (size_t n = 0; n < whole.size(); ++n) {
        const auto file = parse(whole.substr(0, n));
        EXPECT_FALSE(file.has_value()) << n;
    }
}

TEST(GgufPatterns, EveryTruncationIsRefused) {  // CVE-2024-12055
    const std::string whole = tinyModel();
    const ExactBytes exact(whole);
    ASSERT_TRUE(GgufFile::parse(exact.span(), "test.gguf").has_value());
    std::mt19937_64 random(1);
    for (int i = 0; i < 300; ++i) {
        const size_t n = i < 100 ? static_cast<size_t>(i) * 97 % whole.size()
                                 : static_cast<size_t>(random() % whole.size());
        const auto file = parse(whole.substr(0, n));
        EXPECT_FALSE(file.has_value()) << n;
    }
}

/// Loads a model file and generates with it; an error is as good.
void loadAndRun(const std::filesystem::path& file) {
    inference::EngineConfig config;
    config.n_threads = 1;
    auto engine = inference::Engine::load({file.string(), {}}, config, nullptr, {});
    if (!engine.has_value()) {
        EXPECT_FALSE(engine.error().message.empty());
        return;
    }

    struct Sink : inference::GenerationSink {
        void onPrefill(size_t, size_t) override {}

        void onText(std::string_view, std::span<const inference::TokenId>) override {}
    } sink;

    inference::GenerateRequest request;
    request.sequence = (*engine)->openSequence();
    request.prompt = (*engine)->tokenizer().encode("ab c", inference::SpecialTokens::Plain);
    request.max_tokens = 3;
    if (request.prompt.empty()) {
        return;
    }
    const auto stats = (*engine)->generate(request, sink, {});
    EXPECT_TRUE(stats.has_value() || !stats.error().message.empty());
}

/// Numbers that metadata should not hold: each numeric key of the model in turn.
TEST(GgufMutations, OddNumbersInEveryKeyAreRefusedOrRun) {  // CVE-2025-0317 and its like
    const TempDir dir;
    const std::string whole = tinyModel();
    const ExactBytes exact(whole);
    const auto file = *GgufFile::parse(exact.span(), "test.gguf");
    size_t n_tried = 0;
    for (const std::string_view key : file.keys()) {
        const auto* value = file.findValue(key);
        if (value->type != inference::GgufType::U32 && value->type != inference::GgufType::F32) {
            continue;
        }
        const size_t at = whole.find(key) + key.size() + 4;  // behind the type
        for (const uint32_t odd : {0U, 1U, 3U, 7U, 0x7fffffffU, 0x80000000U, UINT32_MAX}) {
            std::string changed = whole;
            std::memcpy(changed.data() + at, &odd, sizeof(odd));
            loadAndRun(dir.write("odd.gguf", changed));
            ++n_tried;
        }
        // The same key as text.
        std::string changed = whole;
        const uint32_t text_type = 8;
        std::memcpy(changed.data() + at - 4, &text_type, sizeof(text_type));
        loadAndRun(dir.write("odd.gguf", changed));
    }
    EXPECT_GT(n_tried, 60U);
}

TEST(GgufMutations, FlippedBitsAreRefusedOrRun) {
    const TempDir dir;
    const std::string whole = tinyModel();
    std::mt19937_64 random(2);
    // The header and metadata are where a flip means most; weights are only numbers.
    const size_t n_header = std::min<size_t>(whole.size(), 24'000);
    for (int i = 0; i < 240; ++i) {
        std::string changed = whole;
        const int n_flips = 1 + i % 4;
        for (int flip = 0; flip < n_flips; ++flip) {
            const size_t range = i % 3 == 0 ? whole.size() : n_header;
            changed[random() % range] ^= static_cast<char>(1U << (random() % 8));
        }
        loadAndRun(dir.write("flipped.gguf", changed));
    }
}

TEST(GgufMutations, SplicedBytesAreRefusedOrRun) {
    const TempDir dir;
    const std::string whole = tinyModel();
    std::mt19937_64 random(3);
    for (int i = 0; i < 120; ++i) {
        std::string changed = whole;
        const size_t at = random() % std::min<size_t>(whole.size(), 24'000);
        const size_t n = 1 + random() % 64;
        switch (i % 3) {
            case 0:
                changed.erase(at, n);
                break;
            case 1:
                changed.insert(at, n, static_cast<char>(random()));
                break;
            default:
                changed.replace(at, std::min(n, whole.size() - at), n, '\xff');
                break;
        }
        loadAndRun(dir.write("spliced.gguf", changed));
    }
}

TEST(GgufFiles, WhatIsNoModelIsNamed) {
    const TempDir dir;
    const auto load = [](const std::filesystem::path& file) {
        return inference::Engine::load({file.string(), {}}, {}, nullptr, {}).error();
    };
    EXPECT_EQ(load(dir.path() / "absent.gguf").code, ErrorCode::NotFound);
    const Error empty = load(dir.write("empty.gguf", ""));
    EXPECT_EQ(empty.code, ErrorCode::Corrupt) << empty.message;
    const Error foreign =
        load(dir.write("photo.gguf", std::string("\x89PNG\r\n\x1a\n", 8) + std::string(5000, 'x')));
    EXPECT_EQ(foreign.code, ErrorCode::Corrupt);
    EXPECT_NE(foreign.message.find("photo.gguf"), std::string::npos);
    GgufBuilder other;
    other.addString("general.architecture", "mamba");
    const Error architecture = load(dir.write("mamba.gguf", other.build()));
    EXPECT_EQ(architecture.code, ErrorCode::Unsupported);
    EXPECT_NE(architecture.message.find("mamba"), std::string::npos) << architecture.message;
    EXPECT_NE(architecture.message.find("llama"), std::string::npos) << "says what is supported";
    EXPECT_EQ(load(dir.path()).code, ErrorCode::InvalidArgument) << "a folder is no file";
}

TEST(GgufFiles, ATensorTypeThatIsNotComputedWithIsNamed) {
    const TempDir dir;
    std::string whole = tinyModel();
    const std::string name = "blk.0.attn_q.weight";
    const size_t at = whole.find(name) + name.size() + 4 + 2 * 8;  // behind n_dims and dims
    const uint32_t iq4_nl = 20;  // known blocks of 32, 18 bytes: fewer than Q8_0's 34
    std::memcpy(whole.data() + at, &iq4_nl, sizeof(iq4_nl));
    const auto engine =
        inference::Engine::load({dir.write("m.gguf", whole).string(), {}}, {}, nullptr, {});
    ASSERT_FALSE(engine.has_value());
    EXPECT_EQ(engine.error().code, ErrorCode::Unsupported) << engine.error().message;
    EXPECT_NE(engine.error().message.find("IQ4_NL"), std::string::npos) << engine.error().message;
    EXPECT_NE(engine.error().message.find(name), std::string::npos) << engine.error().message;
}

}  // namespace
}  // namespace belvedere::testing
