// SPDX-License-Identifier: Apache-2.0
// A checkpoint damaged in a thousand ways, the same on every machine: each is refused with a
// message, or it loads and computes. The address sanitizer watches.
#include <cstdio>
#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "inference/inspect.h"
#include "tests/inference/checkpoint_twin.h"
#include "tests/inference/format/safetensors_probe.h"
#include "tests/support/temp_dir.h"

namespace belvedere::testing {
namespace {

using namespace inference;

class SafetensorsMutationTest : public ::testing::Test {
  protected:
    void SetUp() override {
        folder_ = checkpoint_.write(dir_.path() / "model");
        file_ = readFile(dir_.path() / "model/model.safetensors");
        uint64_t n_header = 0;
        std::memcpy(&n_header, file_.data(), sizeof(n_header));
        header_end_ = sizeof(n_header) + n_header;
    }

    /// The claim of this file, for damaged tensors.
    void tryFile(const std::string& bytes, const std::string& what) {
        SCOPED_TRACE(what);
        const std::vector<char> exact(bytes.begin(), bytes.end());
        const auto read = readSafetensors(std::as_bytes(std::span(exact)));
        if (!read.has_value()) {
            expectRefusal(read.error());
            ++n_refused_;
            return;
        }
        dir_.write("model/model.safetensors", bytes);
        tryFolder();
    }

    void tryConfig(const std::string& text) {
        SCOPED_TRACE(text);
        dir_.write("model/config.json", text);
        tryFolder();
    }

    void tryFolder() {
        LogitsRequest request;
        request.load.model_path = folder_;
        request.ids = {0, 1, 2};
        request.n_threads = 1;
        const auto logits = computeLogits(request, {});
        if (!logits.has_value()) {
            expectRefusal(logits.error());
            // A window too short for the ids is no fault of the file.
            EXPECT_TRUE(logits.error().code == ErrorCode::InvalidArgument ||
                        logits.error().message.find(folder_) != std::string::npos)
                << logits.error().message;
        }
        ++(logits.has_value() ? n_computed_ : n_refused_);
    }

    static void expectRefusal(const Error& error) {
        EXPECT_TRUE(error.code == ErrorCode::Corrupt || error.code == ErrorCode::Unsupported ||
                    error.code == ErrorCode::OutOfMemory || error.code == ErrorCode::NotFound ||
                    error.code == ErrorCode::InvalidArgument)
            << errorCodeName(error.code) << ": " << error.message;
        EXPECT_FALSE(error.message.empty());
    }

    void TearDown() override {
        std::printf("%zu refused, %zu computed\n", n_refused_, n_computed_);
        EXPECT_GT(n_refused_, 0U);
    }

    const CheckpointBuilder checkpoint_ = sparseCheckpoint();
    TempDir dir_;
    std::string folder_;
    std::string file_;
    size_t header_end_ = 0;
    size_t n_refused_ = 0;
    size_t n_computed_ = 0;
};

TEST_F(SafetensorsMutationTest, CutAnywhere) {
    for (size_t n = 0; n < file_.size(); n += n < 64 ? 1 : 97) {
        tryFile(file_.substr(0, n), "cut at " + std::to_string(n));
    }
    tryFile(file_ + "x", "one byte more");
    EXPECT_EQ(n_computed_, 0U);
}

TEST_F(SafetensorsMutationTest, EveryHeaderLength) {
    for (const uint64_t n :
         {uint64_t{0}, uint64_t{1}, uint64_t{8}, header_end_ - 9, uint64_t{header_end_ - 7},
          uint64_t{file_.size()}, uint64_t{100'000'000}, uint64_t{100'000'001}, uint64_t{1} << 32,
          uint64_t{1} << 62, ~uint64_t{0}, ~uint64_t{0} - 8}) {
        std::string bytes = file_;
        std::memcpy(bytes.data(), &n, sizeof(n));
        tryFile(bytes, "header of " + std::to_string(n));
    }
    EXPECT_EQ(n_computed_, 0U);
}

/// Single bytes of the header: names, types, shapes, offsets and the JSON between them.
TEST_F(SafetensorsMutationTest, EveryKindOfByteInTheHeader) {
    std::mt19937_64 random(3);  // its sequence is part of the standard
    constexpr std::string_view kBytes = "0129-.eE{}[]\",: \\u/xBFU8\x01\xff";
    for (int i = 0; i < 800; ++i) {
        std::string bytes = file_;
        const size_t at = 8 + random() % (header_end_ - 8);
        bytes[at] = kBytes[random() % kBytes.size()];
        tryFile(bytes, "byte " + std::to_string(at) + " of header as " + bytes[at]);
    }
    EXPECT_GT(n_refused_, 700U);
}

/// Numbers of one entry, in a header that is sound otherwise.
TEST_F(SafetensorsMutationTest, ShapesAndOffsetsThatDoNotFit) {
    using Json = nlohmann::json;
    const Json header = Json::parse(file_.substr(8, header_end_ - 8));
    const Json values[] = {0,     1,    -1,   1.5, uint64_t{1} << 32, uint64_t{1} << 63,
                           ~0ULL, "16", true, {},  Json::array(),     Json::array({16, 16})};
    const auto tryHeader = [&](const Json& changed, const std::string& what) {
        std::string text = changed.dump();
        text.resize((text.size() + 7) / 8 * 8, ' ');
        const uint64_t n = text.size();
        tryFile(
            std::string(reinterpret_cast<const char*>(&n), 8) + text + file_.substr(header_end_),
            what);
    };
    size_t n_names = 0;
    for (const auto& [name, entry] : header.items()) {
        if (n_names++ % 6 != 0) {
            continue;
        }
        for (const Json& value : values) {
            for (const char* field : {"shape", "data_offsets"}) {
                Json changed = header;
                changed[name][field][0] = value;
                tryHeader(changed, name + " " + field + " " + value.dump());
                changed[name][field] = value;
                tryHeader(changed, name + " " + field + " all " + value.dump());
            }
            Json changed = header;
            changed[name]["dtype"] = value;
            tryHeader(changed, name + " dtype " + value.dump());
        }
        Json overlapping = header;
        overlapping[name]["data_offsets"] = header.begin().value()["data_offsets"];
        if (name != header.begin().key()) {
            tryHeader(overlapping, name + " overlaps");
        }
    }
    EXPECT_GT(n_refused_, 300U);
}

TEST_F(SafetensorsMutationTest, EveryKeyOfTheConfig) {
    using Json = nlohmann::json;
    const Json values[] = {
        0,         1,     -1,   0.5,     uint64_t{1} << 40, ~0ULL,         1e300,
        "sigmoid", false, true, nullptr, Json::object(),    Json::array(), Json::array({1, 1})};
    const auto tryKeys = [&](const Json::json_pointer& at) {
        const Json keys = checkpoint_.config.at(at);
        for (const auto& [key, old] : keys.items()) {
            for (const Json& value : values) {
                Json changed = checkpoint_.config;
                changed.at(at)[key] = value;
                tryConfig(changed.dump());
            }
            Json without = checkpoint_.config;
            without.at(at).erase(key);
            tryConfig(without.dump());
        }
    };
    tryKeys(Json::json_pointer(""));
    tryKeys(Json::json_pointer("/text_config"));
    tryKeys(Json::json_pointer("/text_config/sparse_attention_config"));
    EXPECT_GT(n_computed_, 0U);
}

TEST_F(SafetensorsMutationTest, BytesOfTheConfig) {
    std::mt19937_64 random(5);
    const std::string config = checkpoint_.config.dump();
    for (int i = 0; i < 200; ++i) {
        std::string text = config;
        text[random() % text.size()] = static_cast<char>(random());
        tryConfig(text);
    }
}

}  // namespace
}  // namespace belvedere::testing
