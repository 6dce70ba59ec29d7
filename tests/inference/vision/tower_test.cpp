// SPDX-License-Identifier: Apache-2.0
// The vision tower and its projector against transformers, on every instruction set, from an mmproj
// file and from a checkpoint.

#include <algorithm>

#include <gtest/gtest.h>

#include "inference/backend/cpu_backend.h"
#include "inference/format/safetensors.h"
#include "inference/model/vision_tower.h"
#include "inference/vision/image.h"
#include "tests/inference/logits_compare.h"
#include "tests/support/reference_dir.h"

namespace belvedere::testing {
namespace {

using namespace belvedere::inference;
using kernels::Isa;

constexpr double kTolerance = 1e-3;
constexpr size_t kDim = 160;
constexpr size_t kOutDim = 96;

std::string file(const std::string& name) {
    return (dataPath("inference/m3-vl-tiny") / name).string();
}

/// As the image processor hands it on.
RgbImage prepared(const std::string& name, const ResizeLimits& limits) {
    const RgbImage image = *readImage(file(name));
    return resample(image, *resizedSize(image.size, limits));
}

std::vector<RgbImage> clip() {
    std::vector<RgbImage> frames;
    for (int i = 0; i < 11; ++i) {
        frames.push_back(prepared(fmt::format("frame{:02}.png", i), kVideoLimits));
    }
    return frames;
}

/// A tower and the backend it runs on.
struct Scene {
    std::unique_ptr<ModelSource> source;
    std::unique_ptr<CpuBackend> backend;
    std::unique_ptr<VisionTower> tower;
};

Scene makeScene(const std::string& path,
                const kernels::KernelTable& table,
                Precision precision,
                size_t chunk) {
    Scene scene;
    scene.source = *openModel(path);
    const VisionConfig config = **scene.source->visionConfig();
    BackendShape shape;
    shape.n_heads = shape.n_kv_heads = 1;
    shape.head_dim = 32;
    shape.max_tokens = chunk;
    shape.step_width = config.dim;
    scene.backend = *CpuBackend::create(shape, precision, table, 2);
    auto weights = loadVisionWeights(*scene.source, config, *scene.backend);
    EXPECT_TRUE(weights.has_value()) << weights.error().message;
    scene.tower = std::make_unique<VisionTower>(config, std::move(*weights), *scene.backend, chunk);
    return scene;
}

struct Case {
    Isa isa;
    size_t chunk;
};

class Tower : public ::testing::TestWithParam<Case> {
  protected:
    void SetUp() override {
        table_ = kernels::tableFor(GetParam().isa);
        if (table_ == nullptr) {
            GTEST_SKIP() << "no kernels here for " << kernels::isaName(GetParam().isa);
        }
        const auto image = readImage(file("image0.png"));
        ASSERT_TRUE(image.has_value()) << image.error().message;
        expected_ =
            std::make_unique<SafetensorsFile>(*SafetensorsFile::open(file("expected.safetensors")));
    }

    /// Both images, one behind the other as in the reference, and the clip.
    void check(const std::string& path) {
        const Scene scene = makeScene(path, *table_, Precision::Exact, GetParam().chunk);
        TowerOutput images;
        for (const char* name : {"image0.png", "image1.png"}) {
            const RgbImage image = prepared(name, {});
            const TowerOutput one = *scene.tower->encode({&image, 1}, TowerRows::Keep, {});
            images.rows.insert(images.rows.end(), one.rows.begin(), one.rows.end());
            images.embeddings.insert(images.embeddings.end(), one.embeddings.begin(),
                                     one.embeddings.end());
        }
        compare(images.rows, "tower_images", kDim);
        compare(images.embeddings, "projected_images", kOutDim);
        const TowerOutput video = *scene.tower->encode(clip(), TowerRows::Keep, {});
        compare(video.rows, "tower_video", kDim);
        compare(video.embeddings, "projected_video", kOutDim);
    }

    void compare(const std::vector<float>& actual, const char* name, size_t width) {
        const std::vector<float> reference = *expected_->readF32(name);
        ASSERT_EQ(actual.size(), reference.size()) << name;
        EXPECT_LT(compareLogits(actual, reference, width, 0.0).largest, kTolerance) << name;
    }

    const kernels::KernelTable* table_ = nullptr;
    std::unique_ptr<SafetensorsFile> expected_;
};

TEST_P(Tower, ComputesWhatTheReferenceComputesFromMmproj) {
    check(file("mmproj-BF16.gguf"));
}

TEST_P(Tower, ComputesWhatTheReferenceComputesFromTheOriginalFiles) {
    const auto folder = referenceDir();
    if (!folder) {
        GTEST_SKIP() << kNoReference;
    }
    check((*folder / "m3-vl-tiny/mmproj-F32.gguf").string());
    check((*folder / "m3-vl-tiny").string());
}

TEST_P(Tower, FastIsCloseToExact) {
    const RgbImage image = prepared("image0.png", {});
    const std::string path = file("mmproj-BF16.gguf");
    const Scene exact = makeScene(path, *table_, Precision::Exact, 512);
    const Scene fast = makeScene(path, *table_, Precision::Fast, GetParam().chunk);
    EXPECT_LT(compareLogits(fast.tower->encode({&image, 1}, TowerRows::Drop, {})->embeddings,
                            exact.tower->encode({&image, 1}, TowerRows::Drop, {})->embeddings,
                            kOutDim, 0.0)
                  .nmse,
              1e-3);
}

INSTANTIATE_TEST_SUITE_P(Isa,
                         Tower,
                         ::testing::Values(Case{Isa::Scalar, 512},
                                           Case{Isa::Avx2, 512},
                                           Case{Isa::Avx512, 512},
                                           Case{Isa::Avx512, 7},
                                           Case{Isa::Amx, 512}),
                         [](const auto& parameter) {
                             return fmt::format("{}_{}", kernels::isaName(parameter.param.isa),
                                                parameter.param.chunk);
                         });

/// Eleven frames are six pairs: four that attend to each other, then two.
TEST(TowerSegments, DoNotSeeEachOther) {
    const Scene scene =
        makeScene(file("mmproj-BF16.gguf"), kernels::active(), Precision::Exact, 512);
    const std::vector<RgbImage> frames = clip();
    const auto whole = scene.tower->encode(frames, TowerRows::Drop, {})->embeddings;
    auto parts = scene.tower->encode(std::span(frames).first(8), TowerRows::Drop, {})->embeddings;
    const auto rest =
        scene.tower->encode(std::span(frames).subspan(8), TowerRows::Drop, {})->embeddings;
    parts.insert(parts.end(), rest.begin(), rest.end());
    EXPECT_EQ(whole, parts);
}

TEST(TowerCancellation, LeavesBetweenLayers) {
    const Scene scene =
        makeScene(file("mmproj-BF16.gguf"), kernels::active(), Precision::Exact, 512);
    std::stop_source stop;
    stop.request_stop();
    const auto result = scene.tower->encode(clip(), TowerRows::Drop, stop.get_token());
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, ErrorCode::Cancelled);
}

TEST(TowerOperations, OfAScreenshotAreKnownBeforehand) {
    const VisionConfig published = {
        .n_layers = 32, .dim = 1280, .n_heads = 16, .ff_dim = 5120, .out_dim = 6144};
    // 2,304 patches: 39.3 MFLOP a layer and patch in products (2.9 TFLOP), 27.2 GFLOP a layer in
    // attention (0.9), and the projector (0.4).
    const double count = VisionTower::operationCount(published, {1, 36, 64});
    EXPECT_NEAR(count / 1e12, 4.20, 0.01);
}

}  // namespace
}  // namespace belvedere::testing
