// SPDX-License-Identifier: Apache-2.0
// What a GGUF says is what its reader says, in both layouts; a file that is none is refused with
// the reason.
#include "inference/format/gguf.h"

#include <array>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/gguf_builder.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace belvedere::testing {
namespace {

using namespace inference;

Result<GgufFile> parse(const std::string& bytes) {
    return GgufFile::parse(std::as_bytes(std::span(bytes)), "file.gguf");
}

/// The message of a refusal; "" where the file was read.
std::string refusal(const std::string& bytes) {
    const auto file = parse(bytes);
    return file.has_value() ? "" : file.error().message;
}

/// Seven values of one tensor, and every kind of key.
GgufBuilder everything() {
    GgufBuilder builder;
    builder.addRaw("t.u8", 0, rawBytes(uint8_t{200}));
    builder.addRaw("t.i8", 1, rawBytes(int8_t{-100}));
    builder.addRaw("t.u16", 2, rawBytes(uint16_t{60'000}));
    builder.addRaw("t.i16", 3, rawBytes(int16_t{-30'000}));
    builder.addUint32("t.u32", 4'000'000'000);
    builder.addRaw("t.i32", 5, rawBytes(int32_t{7}));
    builder.addFloat("t.f32", 0.5F);
    builder.addBool("t.bool", true);
    builder.addString("t.string", "h\xC3\xA9llo");
    builder.addUint64("t.u64", uint64_t{1} << 63);
    builder.addRaw("t.i64", 11, rawBytes(int64_t{-5}));
    builder.addRaw("t.f64", 12, rawBytes(1e300));
    builder.addStrings("t.strings", {"a", "", "ccc"});
    const int32_t ints[] = {-1, 2};
    builder.addInts("t.ints", ints);
    const std::vector<float> values = {1, 2, 3, 4, 5, 6};
    builder.addTensorF32("first", {6}, std::span(values).first(6));
    builder.addTensorF32("second", {3, 2}, values);
    return builder;
}

class GgufVersionTest : public ::testing::TestWithParam<uint32_t> {};

TEST_P(GgufVersionTest, EveryKindOfValueIsRead) {
    GgufBuilder builder = everything();
    builder.version = GetParam();
    const std::string bytes = builder.build();
    const auto file = parse(bytes);
    ASSERT_TRUE(file.has_value()) << file.error().message;
    EXPECT_EQ(*file->requiredUint("t.u8"), 200U);
    EXPECT_EQ(*file->requiredUint("t.u16"), 60'000U);
    EXPECT_EQ(*file->requiredUint("t.u32"), 4'000'000'000U);
    EXPECT_EQ(*file->requiredUint("t.u64"), uint64_t{1} << 63);
    EXPECT_EQ(*file->requiredUint("t.i32"), 7U);
    EXPECT_EQ(std::get<int64_t>(file->findValue("t.i8")->value), -100);
    EXPECT_EQ(std::get<int64_t>(file->findValue("t.i16")->value), -30'000);
    EXPECT_EQ(std::get<int64_t>(file->findValue("t.i64")->value), -5);
    EXPECT_EQ(*file->requiredFloat("t.f32"), 0.5);
    EXPECT_EQ(*file->requiredFloat("t.f64"), 1e300);
    EXPECT_EQ(**file->findBool("t.bool"), true);
    EXPECT_EQ(*file->requiredString("t.string"), "h\xC3\xA9llo");
    const GgufArray* strings = *file->findArray("t.strings", GgufType::String);
    EXPECT_EQ(strings->strings, (std::vector<std::string_view>{"a", "", "ccc"}));
    EXPECT_EQ((*file->findArray("t.ints", GgufType::I32))->n_elements, 2U);
    EXPECT_EQ(file->keys().size(), 14U);
    EXPECT_EQ(file->keys().front(), "t.u8");
}

TEST_P(GgufVersionTest, TensorsAreWhereTheFilePutsThem) {
    GgufBuilder builder = everything();
    builder.version = GetParam();
    const std::string bytes = builder.build();
    const auto file = parse(bytes);
    ASSERT_TRUE(file.has_value()) << file.error().message;
    ASSERT_EQ(file->tensors().size(), 2U);
    const ModelTensor* second = file->findTensor("second");
    ASSERT_NE(second, nullptr);
    EXPECT_STREQ(second->type->name, "F32");
    EXPECT_EQ(second->n_dims, 2U);
    EXPECT_EQ(second->dims, (std::array<uint64_t, 4>{3, 2, 1, 1}));
    EXPECT_EQ(second->elementCount(), 6U);
    ASSERT_EQ(second->bytes.size(), 24U);
    // The last tensor ends the file; the first stands on the 32-byte border before it.
    EXPECT_EQ(second->bytes.data() + 24, std::as_bytes(std::span(bytes)).data() + bytes.size());
    EXPECT_EQ(file->findTensor("first")->bytes.data() + 32, second->bytes.data());
    EXPECT_EQ(file->findTensor("third"), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Version,
                         GgufVersionTest,
                         ::testing::Values(2, 3),
                         ::testing::PrintToStringParamName());

TEST(Gguf, OtherVersionsAreRefusedByNumber) {
    GgufBuilder builder = everything();
    for (const uint32_t version : std::initializer_list<uint32_t>{0, 1, 4, 0xFFFFFFFF}) {
        builder.version = version;
        const auto file = parse(builder.build());
        ASSERT_FALSE(file.has_value()) << version;
        EXPECT_EQ(file.error().code, ErrorCode::Unsupported);
        EXPECT_NE(file.error().message.find(std::to_string(version)), std::string::npos);
    }
    builder.version = 0x03000000;
    EXPECT_NE(refusal(builder.build()).find("big-endian"), std::string::npos);
}

TEST(Gguf, AValueOfAnotherTypeIsAnErrorThatNamesTheKey) {
    const std::string bytes = everything().build();
    const auto file = parse(bytes);
    const auto expectNamed = [](const auto& result, const char* key) {
        ASSERT_FALSE(result.has_value()) << key;
        EXPECT_EQ(result.error().code, ErrorCode::Corrupt);
        EXPECT_NE(result.error().message.find(key), std::string::npos) << result.error().message;
        EXPECT_NE(result.error().message.find("file.gguf"), std::string::npos);
    };
    expectNamed(file->requiredUint("t.string"), "t.string");
    expectNamed(file->requiredUint("t.i64"), "t.i64");
    expectNamed(file->requiredUint("t.f32"), "t.f32");
    expectNamed(file->requiredUint("absent"), "absent");
    expectNamed(file->requiredFloat("t.u32"), "t.u32");
    expectNamed(file->requiredString("t.ints"), "t.ints");
    expectNamed(file->findBool("t.u8"), "t.u8");
    expectNamed(file->findArray("t.ints", GgufType::F32), "t.ints");
    expectNamed(file->findArray("t.u8", GgufType::I32), "t.u8");
    EXPECT_FALSE(file->findUint("absent")->has_value());
    EXPECT_EQ(*file->findArray("absent", GgufType::I32), nullptr);
}

TEST(Gguf, AlignmentMovesTheData) {
    for (const uint32_t alignment : std::initializer_list<uint32_t>{8, 64, 4096}) {
        GgufBuilder builder;
        builder.alignment = alignment;
        builder.addUint32("general.alignment", alignment);
        const std::vector<float> values = {1, 2};
        builder.addTensorF32("a", {2}, values);
        builder.addTensorF32("b", {2}, values);
        const std::string bytes = builder.build();
        const auto file = parse(bytes);
        ASSERT_TRUE(file.has_value()) << file.error().message;
        const auto* begin = std::as_bytes(std::span(bytes)).data();
        EXPECT_EQ((file->findTensor("a")->bytes.data() - begin) % alignment, 0);
        EXPECT_EQ(file->findTensor("b")->bytes.data() - file->findTensor("a")->bytes.data(),
                  alignment);
    }
}

TEST(Gguf, AVocabularyWithoutTensorsIsAFile) {
    TinyModelOptions options;
    options.weights = false;
    const std::string bytes = tinyModel(options);
    const auto file = parse(bytes);
    ASSERT_TRUE(file.has_value()) << file.error().message;
    EXPECT_TRUE(file->tensors().empty());
}

TEST(Gguf, ForeignFilesAreToldWhatTheyAre) {
    EXPECT_NE(refusal("").find("not a GGUF file"), std::string::npos);
    EXPECT_NE(refusal("PK\x03\x04 a zip archive").find("not a GGUF file"), std::string::npos);
    EXPECT_NE(refusal("version https://git-lfs.github.com/spec/v1\n").find("Git LFS"),
              std::string::npos);
    EXPECT_EQ(refusal("GGUG").rfind("file.gguf: ", 0), 0U);
}

TEST(Gguf, AFileThatCannotBeOpenedIsNamedWithTheReason) {
    const TempDir dir;
    const std::string missing = (dir.path() / "missing.gguf").string();
    const auto absent = GgufFile::open(missing);
    ASSERT_FALSE(absent.has_value());
    EXPECT_EQ(absent.error().code, ErrorCode::NotFound);
    EXPECT_NE(absent.error().message.find(missing), std::string::npos);

    const auto folder = GgufFile::open(dir.path().string());
    ASSERT_FALSE(folder.has_value());
    EXPECT_NE(folder.error().message.find("not a regular file"), std::string::npos);

    const std::string pipe = (dir.path() / "pipe").string();
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    EXPECT_FALSE(GgufFile::open(pipe).has_value());  // and does not wait for a writer

    EXPECT_FALSE(GgufFile::open(dir.write("empty.gguf", "").string()).has_value());
}

TEST(Gguf, OnePartOfASplitModelIsRefused) {
    GgufBuilder builder = everything();
    builder.addRaw("split.count", 2, rawBytes(uint16_t{3}));
    const auto file = parse(builder.build());
    ASSERT_FALSE(file.has_value());
    EXPECT_EQ(file.error().code, ErrorCode::Unsupported);
    EXPECT_NE(file.error().message.find("3 parts"), std::string::npos);
}

TEST(Gguf, MessagesHoldNoControlCharactersOfTheFile) {
    GgufBuilder builder;
    builder.addRaw("\x1b[2Jkey\n", 99, "");
    EXPECT_NE(refusal(builder.build()).find("?[2Jkey?"), std::string::npos);
}

TEST(Gguf, AFileThatShrinksWhileMappedIsNoticed) {
    const TempDir dir;
    const auto path = dir.write("tiny.gguf", tinyModel());
    const auto file = GgufFile::open(path.string());
    ASSERT_TRUE(file.has_value());
    EXPECT_TRUE(file->checkWhole().has_value());
    std::filesystem::resize_file(path, 1000);
    const auto check = file->checkWhole();
    ASSERT_FALSE(check.has_value());
    EXPECT_NE(check.error().message.find("1000"), std::string::npos);
}

}  // namespace
}  // namespace belvedere::testing
