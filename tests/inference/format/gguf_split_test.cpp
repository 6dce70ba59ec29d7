// SPDX-License-Identifier: Apache-2.0
// A GGUF in parts is the same model as in one; parts that do not belong together are refused.
#include <gtest/gtest.h>

#include "inference/format/gguf.h"
#include "inference/inspect.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace belvedere::testing {
namespace {

using namespace inference;

class GgufSplitTest : public ::testing::Test {
  protected:
    static constexpr uint16_t kParts = 3;

    void SetUp() override {
        whole_ = tinyModel();
        const auto file = GgufFile::parse(std::as_bytes(std::span(whole_)), "whole");
        ASSERT_TRUE(file.has_value());
        TinyModelOptions without_weights;
        without_weights.weights = false;
        parts_[0] = tinyModelBuilder(without_weights);
        parts_[1] = parts_[2] = GgufBuilder();
        size_t next = 0;
        for (const ModelTensor& tensor : file->tensors()) {
            const auto* bytes = reinterpret_cast<const char*>(tensor.bytes.data());
            parts_[1 + next++ % 2].addTensor(
                tensor.name, tensor.type->id,
                {tensor.dims.begin(), tensor.dims.begin() + static_cast<long>(tensor.n_dims)},
                {bytes, tensor.bytes.size()});
        }
        n_tensors_ = file->tensors().size();
        for (uint16_t i = 0; i < kParts; ++i) {
            number_[i] = i;
        }
    }

    std::string pathOf(size_t part) {
        return (dir_.path() / fmt::format("m-{:05}-of-{:05}.gguf", part, kParts)).string();
    }

    /// Writes the parts; returns the path of the first.
    std::string write() {
        for (size_t i = 0; i < kParts; ++i) {
            GgufBuilder part = parts_[i];
            part.addRaw("split.no", 2, rawBytes(number_[i]));
            part.addRaw("split.count", 2, rawBytes(kParts));
            part.addRaw("split.tensors.count", 5, rawBytes(static_cast<int32_t>(n_tensors_)));
            dir_.write(pathOf(i + 1), part.build());
        }
        return pathOf(1);
    }

    std::string refusal(const std::string& path) {
        const auto file = GgufFile::open(path);
        EXPECT_FALSE(file.has_value()) << "was read";
        return file.has_value() ? "" : file.error().message;
    }

    std::vector<float> logits(const std::string& path) {
        LogitsRequest request;
        request.load.model_path = path;
        request.ids = {1, 2, 3, 4};
        const auto computed = computeLogits(request, {});
        EXPECT_TRUE(computed.has_value()) << (computed.has_value() ? "" : computed.error().message);
        return computed.has_value() ? computed->values : std::vector<float>();
    }

    TempDir dir_;
    std::string whole_;
    GgufBuilder parts_[kParts];
    uint16_t number_[kParts];
    size_t n_tensors_ = 0;
};

TEST_F(GgufSplitTest, AnyPartOpensTheWholeModel) {
    const std::vector<float> expected = logits(dir_.write("whole.gguf", whole_).string());
    write();
    for (size_t part = 1; part <= kParts; ++part) {
        EXPECT_EQ(logits(pathOf(part)), expected);
    }
    const auto file = GgufFile::open(pathOf(2));
    ASSERT_TRUE(file.has_value()) << file.error().message;
    EXPECT_EQ(file->tensors().size(), n_tensors_);
    EXPECT_GT(file->fileBytes(), whole_.size());
    EXPECT_TRUE(file->checkWhole().has_value());
    std::filesystem::resize_file(pathOf(3), 100);
    EXPECT_FALSE(file->checkWhole().has_value());
}

TEST_F(GgufSplitTest, PartsThatDoNotBelongTogetherAreRefused) {
    const std::string first = write();
    std::filesystem::remove(pathOf(3));
    EXPECT_NE(refusal(first).find(pathOf(3)), std::string::npos);
    number_[2] = 1;
    EXPECT_NE(refusal(write()).find("expected split.no 2 and split.count 3, found 1 and 3"),
              std::string::npos);
    number_[2] = 2;
    parts_[0].addTensorF32("output_norm.weight", {32}, std::vector<float>(32));
    EXPECT_NE(refusal(write()).find("tensor output_norm.weight is in another part too"),
              std::string::npos);
    SetUp();
    ++n_tensors_;
    EXPECT_NE(refusal(write()).find("split.tensors.count: expected"), std::string::npos);
}

TEST_F(GgufSplitTest, PartsAreFoundByTheNameThatWasOpened) {
    const std::string first = write();
    const auto renamed = dir_.path() / "renamed.gguf";
    std::filesystem::copy_file(first, renamed);
    EXPECT_NE(refusal(renamed.string()).find("must end in -00001-of-0000N.gguf"),
              std::string::npos);
    for (const char* name :
         {"a.gguf", "-00001-of-00003.gguf", "a-00000-of-00003.gguf", "a-00004-of-00003.gguf",
          "a-0000x-of-00003.gguf", "a-00001-of-00003.bin", "a-00001_of-00003.gguf"}) {
        EXPECT_FALSE(parseSplitName(name)) << name;
    }
    const auto name = parseSplitName("../a-00002-of-00010.gguf");
    ASSERT_TRUE(name);
    EXPECT_EQ(name->pathOf(7), "../a-00007-of-00010.gguf");
}

}  // namespace
}  // namespace belvedere::testing
