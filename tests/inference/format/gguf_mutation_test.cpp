// SPDX-License-Identifier: Apache-2.0
// A model file damaged in a thousand ways, the same on every machine: each is refused with a
// message that names the file, or it loads and decodes a token. The address sanitizer watches.
#include <algorithm>
#include <cstdio>
#include <random>

#include <gtest/gtest.h>

#include "tests/inference/format/gguf_layout.h"
#include "tests/inference/format/model_probe.h"
#include "tests/inference/format/sparse_model.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace belvedere::testing {
namespace {

class GgufMutationTest : public ::testing::Test {
  protected:
    /// The claim of this file, for one damaged file.
    void tryFile(const std::string& bytes, const std::string& what) {
        SCOPED_TRACE(what);
        const std::vector<char> exact(bytes.begin(), bytes.end());
        const auto read = readModel(std::as_bytes(std::span(exact)));
        if (!read.has_value()) {
            expectRefusal(read.error());
            // The program must come to the same end; that it does is tried for some, as it is slow.
            if (n_refused_++ % 16 != 0) {
                return;
            }
        }
        const std::string path = dir_.write("mutated.gguf", bytes).string();
        const auto decoded = decodeOneToken(path);
        EXPECT_TRUE(read.has_value() || !decoded.has_value());
        if (!decoded.has_value()) {
            expectRefusal(decoded.error());
            EXPECT_NE(decoded.error().message.find(path), std::string::npos)
                << decoded.error().message;
        }
        n_decoded_ += decoded.has_value() ? 1U : 0U;
    }

    static void expectRefusal(const Error& error) {
        EXPECT_TRUE(error.code == ErrorCode::Corrupt || error.code == ErrorCode::Unsupported ||
                    error.code == ErrorCode::OutOfMemory)
            << errorCodeName(error.code) << ": " << error.message;
        EXPECT_FALSE(error.message.empty());
    }

    void TearDown() override {
        std::printf("%zu refused, %zu decoded a token\n", n_refused_, n_decoded_);
    }

    TempDir dir_;
    size_t n_refused_ = 0;
    size_t n_decoded_ = 0;
};

TinyModelOptions smallModel(bool quantized) {
    TinyModelOptions options;
    options.quantized = quantized;
    options.context_tokens = 64;
    return options;
}

/// The 264 lengths of an array's texts are all alike: the first and the last will do.
bool isTypical(const GgufField& field) {
    const size_t element = field.name.find("length of element ");
    if (element == std::string::npos) {
        return true;
    }
    const std::string index = field.name.substr(element + 18);
    return index == "0" || index == "1" || index == "4" || index == "263";
}

/// A dense model of quantized weights, one of floats, one with experts and chosen blocks.
std::string modelOfKind(uint64_t kind) {
    return kind % 3 == 2 ? sparseModel() : tinyModel(smallModel(kind % 3 == 0));
}

class EveryNumberTest : public GgufMutationTest, public ::testing::WithParamInterface<uint64_t> {};

TEST_P(EveryNumberTest, SetToEveryBoundary) {
    const std::string whole = modelOfKind(GetParam());
    const GgufLayout layout(whole);
    for (const GgufField& field : layout.fields()) {
        if (!isTypical(field)) {
            continue;
        }
        const uint64_t value = readField(whole, field);
        const uint64_t top = uint64_t{1} << (field.n_bytes * 8 - 1);
        for (const uint64_t other : {uint64_t{0}, uint64_t{1}, value + 1, value - 1, value * 2,
                                     value / 2, top - 1, top, 2 * top - 1}) {
            if (other == value) {
                continue;
            }
            std::string file = whole;
            writeField(file, field, other);
            tryFile(file, field.name + " = " + std::to_string(other));
        }
    }
    EXPECT_GT(n_refused_, 500U);
    EXPECT_GT(n_decoded_, 20U);
}

TEST_P(EveryNumberTest, ThatIsATypeSetToEveryOther) {
    const std::string whole = modelOfKind(GetParam());
    const GgufLayout layout(whole);
    for (const GgufField& field : layout.fields()) {
        if (!field.name.ends_with("type")) {
            continue;
        }
        for (uint64_t type = 0; type <= 44; ++type) {
            std::string file = whole;
            writeField(file, field, type);
            tryFile(file, field.name + " = " + std::to_string(type));
        }
    }
    EXPECT_GT(n_refused_, 200U);
    EXPECT_GT(n_decoded_, 20U);
}

std::string kindName(const ::testing::TestParamInfo<uint64_t>& info) {
    constexpr const char* kNames[] = {"quantized", "floats", "sparse"};
    return kNames[info.param];
}

INSTANTIATE_TEST_SUITE_P(Model, EveryNumberTest, ::testing::Values(0, 1, 2), kindName);

TEST_F(GgufMutationTest, CutAtEveryNumberAndInTheData) {
    const std::string whole = tinyModel(smallModel(true));
    const GgufLayout layout(whole);
    std::vector<size_t> ends = {whole.size() - 1, layout.dataBegin(), layout.dataBegin() + 1};
    for (const GgufField& field : layout.fields()) {
        if (isTypical(field)) {
            ends.insert(ends.end(),
                        {field.position, field.position + 1, field.position + field.n_bytes});
        }
    }
    for (size_t end = layout.dataBegin(); end < whole.size(); end += 1021) {
        ends.push_back(end);
    }
    for (const size_t end : ends) {
        tryFile(whole.substr(0, end), "cut at byte " + std::to_string(end));
    }
    EXPECT_EQ(n_refused_, ends.size());
}

/// A seed chooses a model, a damage and its places.
class SeededMutationTest : public GgufMutationTest {
  protected:
    size_t below(size_t n) { return random_() % n; }

    size_t somewhere(const std::string& file) {
        // As often in the short metadata as in the long data.
        return below(below(2) == 0 ? file.size() : GgufLayout(whole_).dataBegin());
    }

    void flipBits(std::string& file) {
        for (size_t n = 1 + below(3); n > 0; --n) {
            const size_t at = somewhere(file);
            file[at] = static_cast<char>(static_cast<unsigned char>(file[at]) ^ 1U << below(8));
        }
    }

    void spoilNumbers(std::string& file) {
        const GgufLayout layout(whole_);
        for (size_t n = 2 + below(3); n > 0; --n) {
            const GgufField& field = layout.fields()[below(layout.fields().size())];
            const uint64_t bits = random_() >> below(64);
            writeField(file, field, below(2) == 0 ? bits : readField(file, field) + below(5) - 2);
        }
    }

    void moveBytes(std::string& file) {
        const size_t from = somewhere(file);
        const std::string piece = file.substr(from, 1 + below(200));
        switch (below(3)) {
            case 0:
                file.erase(from, piece.size());
                break;
            case 1:
                file.insert(somewhere(file), piece);
                break;
            default:
                const size_t to = somewhere(file);
                file.replace(to, std::min(piece.size(), file.size() - to), piece);
        }
    }

    std::mt19937_64 random_;  // its sequence is part of the standard
    std::string whole_;
};

TEST_F(SeededMutationTest, ThreeHundredSixtySeeds) {
    for (uint64_t seed = 0; seed < 360; ++seed) {
        random_.seed(seed);
        whole_ = modelOfKind(seed);
        std::string file = whole_;
        switch (seed / 3 % 3) {
            case 0:
                flipBits(file);
                break;
            case 1:
                spoilNumbers(file);
                break;
            default:
                moveBytes(file);
        }
        tryFile(file, "seed " + std::to_string(seed));
    }
    EXPECT_GT(n_refused_, 50U);
    EXPECT_GT(n_decoded_, 50U);
}

}  // namespace
}  // namespace belvedere::testing
