// SPDX-License-Identifier: Apache-2.0
// The published vulnerabilities of GGUF readers, each as a file that ours refuses. Those that are
// about something else (prompt lengths, an HTTP field, saved cache states) have no file.
// Sources: the CVE entries named; the others are issues of llama.cpp without a number.
#include <limits>

#include <gtest/gtest.h>

#include "inference/format/gguf.h"
#include "tests/inference/format/gguf_layout.h"
#include "tests/inference/format/model_probe.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/tiny_model.h"

namespace belvedere::testing {
namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

/// Reads a copy that ends where the block ends, so that the sanitizer sees a read beyond it. The
/// message of the refusal; "" where the model was read.
std::string refusal(const std::string& bytes) {
    const std::vector<char> exact(bytes.begin(), bytes.end());
    const auto result = readModel(std::as_bytes(std::span(exact)));
    if (result.has_value()) {
        return "";
    }
    EXPECT_TRUE(result.error().code == ErrorCode::Corrupt ||
                result.error().code == ErrorCode::Unsupported)
        << errorCodeName(result.error().code) << ": " << result.error().message;
    return result.error().message;
}

/// The tiny model with one of its numbers changed.
std::string spoiled(std::string_view field, uint64_t value) {
    std::string file = tinyModel();
    GgufLayout(file).set(file, field, value);
    return file;
}

::testing::AssertionResult refusedWith(const std::string& bytes, const std::string& words) {
    const std::string message = refusal(bytes);
    if (message.empty()) {
        return ::testing::AssertionFailure() << "was read";
    }
    if (message.find(words) == std::string::npos) {
        return ::testing::AssertionFailure()
               << "refused with \"" << message << "\", not with \"" << words << '"';
    }
    return ::testing::AssertionSuccess();
}

TEST(GgufPatterns, TheModelTheyStartFromIsRead) {
    EXPECT_EQ(refusal(tinyModel()), "");
}

TEST(GgufPatterns, Cve2024_23605_KeyCountTimesStructSizeWraps) {
    for (const uint64_t n : {(uint64_t{1} << 61) + 3, kMax, uint64_t{1} << 32, uint64_t{70'000}}) {
        EXPECT_TRUE(refusedWith(spoiled("n_keys", n), "metadata keys in a file of"));
    }
}

TEST(GgufPatterns, Cve2024_21836_TensorCountTimesStructSizeWraps) {
    for (const uint64_t n : {uint64_t{1} << 60, kMax, uint64_t{1} << 32, uint64_t{100'001}}) {
        EXPECT_TRUE(refusedWith(spoiled("n_tensors", n), "tensors in a file of"));
    }
}

TEST(GgufPatterns, Cve2024_23496_StringLengthPlusOneWraps) {
    const char* fields[] = {"key general.architecture length", "key general.architecture value",
                            "key tokenizer.ggml.tokens length of element 0",
                            "key tokenizer.ggml.tokens length of element 263",
                            "tensor output.weight length"};
    for (const char* field : fields) {
        for (const uint64_t n : {kMax, kMax - 7, uint64_t{1} << 63, uint64_t{1} << 31}) {
            EXPECT_TRUE(refusedWith(spoiled(field, n), "bytes, more than")) << field;
        }
    }
}

TEST(GgufPatterns, Cve2024_21825_ArrayCountTimesElementSizeWraps) {
    for (const uint64_t n : {uint64_t{1} << 61, (uint64_t{1} << 62) + 1, kMax, uint64_t{1} << 33}) {
        EXPECT_TRUE(refusedWith(spoiled("key tokenizer.ggml.tokens count", n), "array of"));
        EXPECT_TRUE(refusedWith(spoiled("key tokenizer.ggml.token_type count", n), "array of"));
    }
    for (uint32_t type = 0; type <= 12; ++type) {
        GgufBuilder builder;
        builder.addRaw("numbers", 9, rawBytes(type) + rawBytes(uint64_t{1} << 61) + rawBytes(1.0));
        EXPECT_TRUE(refusedWith(builder.build(), "array of")) << type;
    }
}

TEST(GgufPatterns, Cve2024_21802_MoreDimensionsThanTheArrayHolds) {
    for (const uint64_t n : std::initializer_list<uint64_t>{0, 5, 6, 1000, 0xFFFFFFFF}) {
        EXPECT_TRUE(refusedWith(spoiled("tensor output.weight n_dims", n),
                                std::to_string(n) + " dimensions"));
    }
}

TEST(GgufPatterns, Cve2025_53630_SumOfPaddedTensorSizesWraps) {
    GgufBuilder builder;
    for (int i = 0; i < 8; ++i) {
        builder.addTensor("t" + std::to_string(i), 0, {(uint64_t{1} << 60) - 8}, "");
    }
    EXPECT_TRUE(refusedWith(builder.build(), "the file is truncated"));
}

TEST(GgufPatterns, Cve2026_27940_OverheadPlusTotalSizeWraps) {
    for (const uint64_t missing : std::initializer_list<uint64_t>{1, 31, 32, 255}) {
        GgufBuilder builder;
        builder.addTensor("t", 24, {kMax - missing}, "");  // I8: bytes = elements
        EXPECT_TRUE(refusedWith(builder.build(), "the file is truncated"));
    }
}

TEST(GgufPatterns, Cve2026_33298_TensorByteSizeWraps) {
    const uint64_t half = uint64_t{1} << 31;
    for (const uint32_t type : std::initializer_list<uint32_t>{0, 2, 8, 12, 30, 39}) {
        GgufBuilder builder;
        builder.addTensor("t", type, {half, half, 4, 4}, std::string(4096, '\0'));
        EXPECT_TRUE(refusedWith(builder.build(), "overflows")) << type;
    }
    // Bytes that wrap to a small number while the count of elements does not, and the reverse.
    GgufBuilder bytes_wrap;
    bytes_wrap.addTensor("t", 0, {uint64_t{1} << 62}, std::string(64, '\0'));
    EXPECT_TRUE(refusedWith(bytes_wrap.build(), "overflows"));
    GgufBuilder elements_wrap;
    elements_wrap.addTensor("t", 41, {uint64_t{1} << 63, 2}, std::string(64, '\0'));
    EXPECT_TRUE(refusedWith(elements_wrap.build(), "overflows"));
}

TEST(GgufPatterns, Cve2025_49847_TokenTextLongerThanItsBuffer) {
    GgufBuilder builder;
    builder.addString("general.architecture", "llama");
    builder.addString("tokenizer.ggml.model", "gpt2");
    builder.addString("tokenizer.ggml.pre", "gpt-2");
    builder.addStrings("tokenizer.ggml.tokens", {"a", std::string(70'000, 'x')});
    EXPECT_TRUE(refusedWith(builder.build(), "tokens[1]: 70000 bytes"));
    // A text of 2 GiB and more is refused by its length alone.
    for (const uint64_t n : {uint64_t{1} << 31, uint64_t{1} << 32, (uint64_t{1} << 32) + 5}) {
        EXPECT_TRUE(refusedWith(spoiled("key tokenizer.ggml.tokens length of element 7", n),
                                "bytes, more than"));
    }
}

TEST(GgufPatterns, Cve2026_7482_TensorDataBeyondTheFile) {
    for (const uint64_t offset : {uint64_t{1} << 20, uint64_t{1} << 40, kMax - 31, kMax - 63}) {
        EXPECT_TRUE(
            refusedWith(spoiled("tensor output.weight offset", offset), "the file is truncated"));
    }
    const std::string whole = tinyModel();
    const size_t data = GgufLayout(whole).dataBegin();
    for (const size_t n : {whole.size() - 1, whole.size() - 32, data + 1, data}) {
        EXPECT_TRUE(refusedWith(whole.substr(0, n), "the file is truncated"));
    }
    EXPECT_TRUE(refusedWith(whole.substr(0, data - 1), "before its tensor data"));
    // A shape that asks for more than the file holds.
    EXPECT_TRUE(refusedWith(spoiled("tensor output.weight dim 1", 1 << 24), "truncated"));
}

TEST(GgufPatterns, Cve2024_12055_TruncatedInEveryField) {
    const std::string whole = tinyModel();
    const GgufLayout layout(whole);
    for (const GgufField& field : layout.fields()) {
        for (size_t inside = 0; inside <= field.n_bytes; ++inside) {
            EXPECT_NE(refusal(whole.substr(0, field.position + inside)), "") << field.name;
        }
    }
}

TEST(GgufPatterns, TruncatedAtEveryByteOfTheFirst4KiB) {
    const std::string whole = tinyModel();
    for (size_t n = 0; n < 4096; ++n) {
        EXPECT_NE(refusal(whole.substr(0, n)), "") << n;
    }
}

TEST(GgufPatterns, Cve2025_0317_NumbersThatDivideByZero) {
    const char* keys[] = {"block_count",         "context_length",       "embedding_length",
                          "feed_forward_length", "attention.head_count", "attention.head_count_kv",
                          "rope.dimension_count"};
    for (const char* key : keys) {
        EXPECT_TRUE(refusedWith(spoiled("key llama." + std::string(key) + " value", 0),
                                "llama." + std::string(key) + " is 0"));
    }
}

TEST(GgufPatterns, Cve2025_0317_NumbersOfAnotherType) {
    const char* keys[] = {"block_count",
                          "context_length",
                          "embedding_length",
                          "feed_forward_length",
                          "attention.head_count",
                          "attention.head_count_kv",
                          "attention.layer_norm_rms_epsilon",
                          "rope.freq_base",
                          "rope.dimension_count"};
    for (const char* key : keys) {
        const std::string name = "llama." + std::string(key);
        const bool is_float = name.ends_with("epsilon") || name.ends_with("base");
        // Both take four bytes, so the rest of the file stays in place.
        EXPECT_TRUE(refusedWith(spoiled("key " + name + " type", is_float ? 4 : 6), name));
    }
    EXPECT_TRUE(refusedWith(spoiled("key tokenizer.ggml.bos_token_id type", 6), "bos_token_id"));
    EXPECT_TRUE(refusedWith(spoiled("key tokenizer.ggml.eos_token_id value", 264), "264"));
}

TEST(GgufPatterns, Cve2024_39720_FilesOfTheMagicAlone) {
    EXPECT_TRUE(refusedWith("GGUF", "ends at byte 4"));
    EXPECT_TRUE(refusedWith("GGUF" + rawBytes(uint32_t{3}), "ends at byte 8"));
    EXPECT_TRUE(refusedWith("GGUF" + rawBytes(uint32_t{3}) + rawBytes(uint64_t{0}), "ends at"));
}

TEST(GgufPatterns, PaddingOfASizeNearTheLargestNumber) {
    // Rounding 2^64 - 1 up to the alignment gives 0.
    for (const uint64_t offset : {kMax, kMax - 1, kMax - 30}) {
        EXPECT_TRUE(refusedWith(spoiled("tensor output.weight offset", offset),
                                "no multiple of the alignment"));
    }
}

TEST(GgufPatterns, AlignmentIsASmallPowerOfTwo) {
    for (const uint32_t alignment :
         std::initializer_list<uint32_t>{0, 3, 33, 0x80000000, 0x7FFFFFFF, 0xFFFFFFFF, 1U << 21}) {
        GgufBuilder builder = tinyModelBuilder();
        builder.addUint32("general.alignment", alignment);
        EXPECT_TRUE(refusedWith(builder.build(), "general.alignment")) << alignment;
    }
    GgufBuilder text = tinyModelBuilder();
    text.addString("general.alignment", "32");
    EXPECT_TRUE(refusedWith(text.build(), "general.alignment is string"));
    GgufBuilder wide = tinyModelBuilder();
    wide.addUint64("general.alignment", 32);
    EXPECT_TRUE(refusedWith(wide.build(), "general.alignment is u64"));
}

TEST(GgufPatterns, DimensionsOfZeroAndRowsThatFillNoBlock) {
    EXPECT_TRUE(refusedWith(spoiled("tensor output.weight dim 0", 0), "dimension 0 is 0"));
    EXPECT_TRUE(refusedWith(spoiled("tensor output.weight dim 1", 0), "dimension 1 is 0"));
    EXPECT_TRUE(refusedWith(spoiled("tensor output.weight dim 0", 33), "do not fill blocks"));
}

TEST(GgufPatterns, TensorsThatOverlapOrStandBetweenBorders) {
    EXPECT_TRUE(refusedWith(spoiled("tensor output.weight offset", 0), "overlap"));
    EXPECT_TRUE(refusedWith(spoiled("tensor output.weight offset", 32), "overlap"));
    EXPECT_TRUE(refusedWith(spoiled("tensor output.weight offset", 8), "alignment"));
}

TEST(GgufPatterns, TensorsInAnyOrderAreNoFault) {
    // A reader that asks for contiguous data would refuse these; ours needs only that none overlap.
    std::string file = tinyModel();
    const GgufLayout layout(file);
    const GgufField& first = layout.at("tensor blk.0.attn_norm.weight offset");
    const GgufField& second = layout.at("tensor blk.0.ffn_norm.weight offset");
    const uint64_t offset = readField(file, first);
    writeField(file, first, readField(file, second));
    writeField(file, second, offset);
    EXPECT_EQ(refusal(file), "");
}

TEST(GgufPatterns, NamesThatOccurTwice) {
    GgufBuilder keys = tinyModelBuilder();
    keys.addUint32("llama.block_count", 2);
    EXPECT_TRUE(refusedWith(keys.build(), "llama.block_count occurs twice"));
    GgufBuilder tensors = tinyModelBuilder();
    tensors.addTensorF32("output_norm.weight", {32}, std::vector<float>(32));
    EXPECT_TRUE(refusedWith(tensors.build(), "output_norm.weight occurs twice"));
}

TEST(GgufPatterns, NamesThatAreEmptyTooLongOrHoldAZeroByte) {
    const auto withKey = [](std::string_view key) {
        GgufBuilder builder = tinyModelBuilder();
        builder.addUint32(key, 1);
        return builder.build();
    };
    EXPECT_TRUE(refusedWith(withKey(""), "empty"));
    EXPECT_TRUE(refusedWith(withKey(std::string_view("a\0b", 3)), "zero byte"));
    EXPECT_TRUE(refusedWith(withKey(std::string(1025, 'k')), "more than 1024"));
    const auto withTensor = [](std::string_view name) {
        GgufBuilder builder = tinyModelBuilder();
        builder.addTensorF32(name, {1}, std::vector<float>(1));
        return builder.build();
    };
    EXPECT_TRUE(refusedWith(withTensor(""), "empty"));
    EXPECT_TRUE(refusedWith(withTensor(std::string_view("a\0b", 3)), "zero byte"));
    EXPECT_TRUE(refusedWith(withTensor(std::string(64, 't')), "more than 63"));
}

TEST(GgufPatterns, TypesThatDoNotExist) {
    for (const uint64_t type :
         std::initializer_list<uint64_t>{13, 14, 255, 0x80000000, 0xFFFFFFFF}) {
        EXPECT_TRUE(refusedWith(spoiled("key llama.block_count type", type), "unknown type"));
        EXPECT_TRUE(
            refusedWith(spoiled("key tokenizer.ggml.tokens element_type", type), "unknown type"));
    }
    for (const uint64_t type : std::initializer_list<uint64_t>{4, 5, 31, 32, 33, 36, 37, 38, 43,
                                                               0x80000000, 0xFFFFFFFF}) {
        EXPECT_TRUE(refusedWith(spoiled("tensor output.weight type", type),
                                "unknown type " + std::to_string(type)));
    }
    GgufBuilder boolean;
    boolean.addRaw("flag", 7, "\x02");
    EXPECT_TRUE(refusedWith(boolean.build(), "2 is no boolean"));
}

TEST(GgufPatterns, ArraysOfArrays) {
    GgufBuilder builder;
    std::string nested;
    for (int depth = 0; depth < 100'000; ++depth) {
        nested += rawBytes(uint32_t{9}) + rawBytes(uint64_t{1});
    }
    builder.addRaw("deep", 9, nested);
    EXPECT_TRUE(refusedWith(builder.build(), "an array of arrays"));
}

TEST(GgufPatterns, LayerCountsAboveAnyArray) {
    for (const uint64_t n : std::initializer_list<uint64_t>{3, 512, 513, 1024}) {
        EXPECT_TRUE(refusedWith(spoiled("key llama.block_count value", n), "blk.2."));
    }
    for (const uint64_t n : std::initializer_list<uint64_t>{1025, 0x7FFFFFFF, 0xFFFFFFFF}) {
        EXPECT_TRUE(refusedWith(spoiled("key llama.block_count value", n), "llama.block_count"));
    }
    // Fewer layers than tensors: what is left over is named.
    EXPECT_TRUE(refusedWith(spoiled("key llama.block_count value", 1), "blk.1."));
}

TEST(GgufPatterns, VocabularyArraysOfOtherLengthsAndTypes) {
    EXPECT_TRUE(
        refusedWith(spoiled("key tokenizer.ggml.token_type element_type", 6), "token_type"));
    const auto with = [](const char* key, uint32_t element_type, size_t n, size_t element_bytes) {
        GgufBuilder builder = tinyModelBuilder();
        builder.addRaw(
            key, 9,
            rawBytes(element_type) + rawBytes(uint64_t{n}) + std::string(n * element_bytes, '\1'));
        return builder.build();
    };
    EXPECT_TRUE(refusedWith(with("tokenizer.ggml.scores", 0, 264, 1), "array of u8, not of f32"));
    EXPECT_TRUE(refusedWith(with("tokenizer.ggml.scores", 6, 263, 4), "263 elements for 264"));
    EXPECT_TRUE(refusedWith(with("tokenizer.ggml.scores", 6, 1, 4), "1 elements for 264"));
}

TEST(GgufPatterns, ByteTokensAndMergesThatMeanNothing) {
    const auto vocabulary = [](const std::string& byte_token) {
        GgufBuilder builder;
        builder.addString("tokenizer.ggml.model", "llama");
        builder.addStrings("tokenizer.ggml.tokens", {"<unk>", byte_token});
        builder.addRaw("tokenizer.ggml.scores", 9,
                       rawBytes(uint32_t{6}) + rawBytes(uint64_t{2}) + std::string(8, '\0'));
        const int32_t types[] = {2, 6};
        builder.addInts("tokenizer.ggml.token_type", types);
        builder.addUint32("tokenizer.ggml.unknown_token_id", 0);
        return builder.build();
    };
    for (const char* token : {"<0x-1>", "<0xG0>", "<0x100>", "<0x>", "", "<0x00"}) {
        EXPECT_TRUE(refusedWith(vocabulary(token), "tokens[1]")) << token;
    }
    for (const char* merge : {"", " ", "t", "t ", " t", "t h e", "t zzz"}) {
        GgufBuilder builder;
        builder.addString("tokenizer.ggml.model", "gpt2");
        builder.addString("tokenizer.ggml.pre", "gpt-2");
        builder.addStrings("tokenizer.ggml.tokens", {"t", "h", "th"});
        builder.addStrings("tokenizer.ggml.merges", {"t h", merge});
        EXPECT_TRUE(refusedWith(builder.build(), "merges[1]")) << merge;
    }
}

TEST(GgufPatterns, ATemplateThatDoesNotCompileLeavesTheModel) {
    TinyModelOptions options;
    options.chat_template = false;
    GgufBuilder builder = tinyModelBuilder(options);
    builder.addString("tokenizer.chat_template", "{% for " + std::string(50'000, '('));
    EXPECT_EQ(refusal(builder.build()), "");
}

}  // namespace
}  // namespace belvedere::testing
