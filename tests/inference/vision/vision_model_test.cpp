// SPDX-License-Identifier: Apache-2.0
// A whole multimodal model against transformers, on every instruction set: two images and a clip in
// one prompt, from a GGUF with its mmproj file and from the checkpoint of the same weights.

#include <filesystem>

#include <gtest/gtest.h>

#include "inference/format/safetensors.h"
#include "inference/inspect.h"
#include "tests/inference/logits_compare.h"
#include "tests/support/reference_dir.h"
#include "tests/support/temp_dir.h"

namespace belvedere::testing {
namespace {

using namespace belvedere::inference;
using kernels::Isa;

namespace fs = std::filesystem;

constexpr double kTolerance = 1e-3;
constexpr size_t kTowerDim = 160;
constexpr size_t kDim = 96;
constexpr size_t kVocabulary = 320;

std::string file(const std::string& name) {
    return (dataPath("inference/m3-vl-tiny") / name).string();
}

std::shared_ptr<const Media> still(const std::string& path) {
    return std::make_shared<const Media>(*readStill(path));
}

/// A folder with the frames of the clip alone.
std::string clipFolder(const TempDir& dir) {
    const fs::path folder = dir.path() / "clip";
    fs::create_directories(folder);
    for (int i = 0; i < 11; ++i) {
        const std::string name = fmt::format("frame{:02}.png", i);
        fs::copy_file(file(name), folder / name, fs::copy_options::skip_existing);
    }
    return folder.string();
}

class VisionModel : public ::testing::Test {
  protected:
    void SetUp() override {
        request_.load.model_path = file("model-BF16.gguf");
        request_.ids = expectedIds(file("expected.safetensors"));
        request_.n_threads = 2;
        const auto image = readStill(file("image0.png"));
        ASSERT_TRUE(image.has_value()) << image.error().message;
        request_.media = {still(file("image0.png")), still(file("image1.png")),
                          std::make_shared<const Media>(*readFrameFolder(clipFolder(dir_)))};
    }

    TempDir dir_;
    LogitsRequest request_;
};

class VisionModelOn : public VisionModel, public ::testing::WithParamInterface<Isa> {
  protected:
    void SetUp() override {
        request_.kernels = kernels::tableFor(GetParam());
        if (request_.kernels == nullptr) {
            GTEST_SKIP() << "no kernels here for " << kernels::isaName(GetParam());
        }
        VisionModel::SetUp();
    }

    void check(const std::string& model_path, const std::string& mmproj_path) {
        SCOPED_TRACE(model_path);
        request_.load.model_path = model_path;
        request_.load.mmproj_path = mmproj_path;
        const auto logits = computeLogits(request_, {});
        ASSERT_TRUE(logits.has_value()) << logits.error().message;
        const auto expected = *SafetensorsFile::open(file("expected.safetensors"));
        const auto reference = *expected.readF32("logits");
        ASSERT_EQ(logits->values.size(), reference.size());
        EXPECT_LT(compareLogits(logits->values, reference, kVocabulary, 0.0).largest, kTolerance);
        for (const auto& [name, width] :
             {std::pair("tower_images", kTowerDim), std::pair("projected_images", kDim),
              std::pair("tower_video", kTowerDim), std::pair("projected_video", kDim)}) {
            const auto found =
                std::find_if(logits->observed.begin(), logits->observed.end(),
                             [&](const OutputTensor& tensor) { return tensor.name == name; });
            ASSERT_NE(found, logits->observed.end()) << name;
            const auto& values = std::get<std::vector<float>>(found->values);
            const auto rows = *expected.readF32(name);
            ASSERT_EQ(found->shape, (std::vector{rows.size() / width, width})) << name;
            EXPECT_LT(compareLogits(values, rows, width, 0.0).largest, kTolerance) << name;
        }
    }
};

TEST_P(VisionModelOn, ComputesWhatTheReferenceComputesFromGgufAndMmproj) {
    check(file("model-BF16.gguf"), "");
    check(file("model-BF16.gguf"), file("mmproj-BF16.gguf"));
}

TEST_P(VisionModelOn, ChunksThatCutAnImageChangeNothing) {
    for (const size_t chunk : std::initializer_list<size_t>{7, 64}) {
        request_.chunk = chunk;
        check(file("model-BF16.gguf"), "");
    }
}

TEST_P(VisionModelOn, ComputesWhatTheReferenceComputesFromTheOriginalFiles) {
    const auto folder = referenceDir();
    if (!folder) {
        GTEST_SKIP() << kNoReference;
    }
    const fs::path original = *folder / "m3-vl-tiny";
    check((original / "model-BF16.gguf").string(), "");
    check(original.string(), "");
}

TEST_P(VisionModelOn, FastStaysCloseToTheReference) {
    request_.compute = Compute::Fast;
    const auto logits = computeLogits(request_, {});
    ASSERT_TRUE(logits.has_value()) << logits.error().message;
    const auto reference = expectedLogits(file("expected.safetensors"));
    EXPECT_LT(compareLogits(logits->values, reference, kVocabulary, 0.3).nmse, 3e-2);
    EXPECT_NEAR(meanLoss(logits->values, request_.ids, kVocabulary) /
                    meanLoss(reference, request_.ids, kVocabulary),
                1.0, 0.005);
}

INSTANTIATE_TEST_SUITE_P(Isa,
                         VisionModelOn,
                         ::testing::Values(Isa::Scalar, Isa::Avx2, Isa::Avx512, Isa::Amx),
                         [](const auto& isa) { return std::string(kernels::isaName(isa.param)); });

TEST_F(VisionModel, PlaceholdersThatDoNotFitTheImagesAreRefusedWithTheNumbers) {
    std::swap(request_.ids[20], request_.ids[31]);  // one of image 0 stands behind it
    request_.ids.pop_back();
    request_.media.erase(request_.media.begin());
    const auto logits = computeLogits(request_, {});
    ASSERT_FALSE(logits.has_value());
    EXPECT_EQ(logits.error().code, ErrorCode::InvalidArgument);
    EXPECT_NE(logits.error().message.find("the images take 10 tokens"), std::string::npos)
        << logits.error().message;
}

TEST_F(VisionModel, ATextModelRefusesImages) {
    const TempDir alone;
    fs::copy_file(file("model-BF16.gguf"), alone.path() / "model.gguf");
    request_.load.model_path = (alone.path() / "model.gguf").string();
    const auto logits = computeLogits(request_, {});
    ASSERT_FALSE(logits.has_value());
    EXPECT_EQ(logits.error().code, ErrorCode::InvalidArgument);
    EXPECT_NE(logits.error().message.find("reads text only"), std::string::npos)
        << logits.error().message;
}

TEST_F(VisionModel, ATowerOfAnotherModelIsNotTakenByItselfAndRefusedWhenNamed) {
    const std::string other = dataPath("inference/m3-tiny/model-BF16.gguf").string();
    const TempDir beside;
    fs::copy_file(other, beside.path() / "model.gguf");
    fs::copy_file(file("mmproj-BF16.gguf"), beside.path() / "mmproj.gguf");
    const auto info = inspectModel((beside.path() / "model.gguf").string());
    ASSERT_TRUE(info.has_value()) << info.error().message;
    EXPECT_EQ(info->vision, "");
    ASSERT_FALSE(info->notices.empty());
    EXPECT_NE(info->notices.front().find("rows of 96, the model takes rows of 128"),
              std::string::npos)
        << info->notices.front();

    request_.load = {other, {}, file("mmproj-BF16.gguf")};
    const auto logits = computeLogits(request_, {});
    ASSERT_FALSE(logits.has_value());
    EXPECT_EQ(logits.error().code, ErrorCode::InvalidArgument);

    const auto own = inspectModel(file("model-BF16.gguf"));
    ASSERT_TRUE(own.has_value()) << own.error().message;
    EXPECT_EQ(own->vision, "mmproj-BF16.gguf: 2 layers");
}

}  // namespace
}  // namespace belvedere::testing
