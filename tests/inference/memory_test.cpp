// SPDX-License-Identifier: Apache-2.0
// What a model will take is known before it is loaded, and a window that cannot fit is refused with
// the numbers and with one that can.

#include <cmath>

#include <gtest/gtest.h>

#include "inference/model/model.h"
#include "tests/support/reference_dir.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace belvedere::testing {
namespace {

using namespace inference;

class MemoryTest : public ::testing::Test {
  protected:
    void SetUp() override {
        options_.n_threads = 2;
        add("inference/m3-tiny/model-BF16.gguf");
        add("inference/family-qwen3-moe/model-BF16.gguf");
        add("inference/family-qwen2/model-BF16.gguf");
        add("inference/family-llama-tied/model-BF16.gguf");
        requests_.push_back(requests_.back());
        requests_.back().adapters = {{dataPath("inference/adapter-llama-msa/adapter.gguf")}};
        TinyModelOptions quantized;
        requests_.push_back({dir_.write("q8.gguf", tinyModel(quantized)).string(), {}});
    }

    void add(const char* name) { requests_.push_back({dataPath(name).string(), {}}); }

    TempDir dir_;
    ModelOptions options_;
    std::vector<LoadRequest> requests_;
};

void expectNear(uint64_t estimate, uint64_t used, const std::string& what) {
    EXPECT_LE(std::abs(static_cast<double>(estimate) - static_cast<double>(used)),
              0.05 * static_cast<double>(used))
        << what << ": estimated " << estimate << ", used " << used;
}

TEST_F(MemoryTest, TheEstimateIsWhatIsThenUsed) {
    for (const Compute compute : {Compute::Exact, Compute::Fast}) {
        options_.compute = compute;
        for (const LoadRequest& request : requests_) {
            for (const size_t context : {size_t{200}, size_t{512}}) {
                options_.context_tokens = context;
                const auto model = Model::load(request, options_, nullptr, {});
                ASSERT_TRUE(model.has_value()) << model.error().message;
                const MemoryNeed& need = (*model)->info().memory;
                Backend& backend = (*model)->backend();
                expectNear(need.weights, backend.residentBytes(), request.model_path);
                expectNear(need.mapped, backend.mappedBytes(), request.model_path);
                expectNear(need.scratch, backend.scratchBytes(), request.model_path);
                EXPECT_GT(need.weights, 0U);
                EXPECT_GT(need.scratch, 0U);
                EXPECT_EQ(need.mapped > 0, compute == Compute::Exact) << request.model_path;
                const size_t n_pages = (context + kernels::kPageTokens - 1) / kernels::kPageTokens;
                EXPECT_EQ(need.cache, n_pages * backend.pageBytes());
                EXPECT_EQ(need.page_bytes,
                          (*model)->info().cache_bytes_per_token * kernels::kPageTokens);
            }
        }
    }
}

TEST_F(MemoryTest, TheEstimateOfImagesIsWhatTheLongestSegmentTakes) {
    options_.context_tokens = 512;
    const LoadRequest request = {dataPath("inference/m3-vl-tiny/model-BF16.gguf").string(), {}};
    const auto model = Model::load(request, options_, nullptr, {});
    ASSERT_TRUE(model.has_value()) << model.error().message;
    const MemoryNeed& need = (*model)->info().memory;
    Backend& backend = (*model)->backend();
    expectNear(need.scratch, backend.scratchBytes(), "before an image");

    VisionTower& tower = *(*model)->tower();
    const size_t n_pairs = tower.config().segment_pairs;
    const ImageSize size = {28 * 28, 28 * 27};  // 592,704 of the 602,112 pixels of a frame
    const std::vector<RgbImage> frames(
        2 * n_pairs, RgbImage{size, std::vector<uint8_t>(3 * size.width * size.height, 128)});
    const auto output = tower.encode(frames, TowerRows::Drop, {});
    ASSERT_TRUE(output.has_value()) << output.error().message;
    const size_t n_patches = n_pairs * size.width * size.height / (kPatchPixels * kPatchPixels);
    const uint64_t held =
        n_patches * kPatchValues * sizeof(float) + output->embeddings.size() * sizeof(float);
    expectNear(need.images, backend.mostScratchBytes() - need.scratch + held, "a segment");
    // What it keeps is what the next image takes.
    const uint64_t kept = backend.scratchBytes();
    EXPECT_LT(kept, backend.mostScratchBytes());
    ASSERT_TRUE(tower.encode(frames, TowerRows::Drop, {}).has_value());
    EXPECT_EQ(backend.scratchBytes(), kept);
}

TEST_F(MemoryTest, ThePageIsThatOfTheTypesAskedFor) {
    using kernels::CacheType;
    const LoadRequest& request = {dataPath("inference/m3-tiny/model-BF16.gguf").string(), {}};
    uint64_t before = UINT64_MAX;
    for (const CacheType type : {CacheType::F32, CacheType::F16, CacheType::Q8_0}) {
        options_.compute = Compute::Fast;
        options_.cache_type = type;
        options_.index_cache_type = type;
        const auto model = Model::load(request, options_, nullptr, {});
        ASSERT_TRUE(model.has_value()) << model.error().message;
        const ModelInfo& info = (*model)->info();
        EXPECT_EQ(info.memory.page_bytes, (*model)->backend().pageBytes());
        EXPECT_EQ(info.memory.page_bytes, info.cache_bytes_per_token * kernels::kPageTokens);
        EXPECT_LT(info.cache_bytes_per_token, before);
        EXPECT_EQ(info.cache_types,
                  fmt::format("{0}, index keys {0}", kernels::cacheTypeName(type)));
        before = info.cache_bytes_per_token;
    }
}

TEST_F(MemoryTest, AWindowThatDoesNotFitIsRefusedAndTheOneItNamesFits) {
    for (const LoadRequest& request : requests_) {
        options_.context_tokens = 200;
        options_.machine_bytes = 0;
        const MemoryNeed need = (*Model::load(request, options_, nullptr, {}))->info().memory;
        // Room for three pages, and a little.
        options_.context_tokens = 512;
        options_.max_pass_tokens = 200;
        const auto room = static_cast<double>(need.total() - need.cache + 3 * need.page_bytes);
        options_.machine_bytes = static_cast<uint64_t>(room * 1.02 / 0.9);
        const auto refused = Model::load(request, options_, nullptr, {});
        if (need.experts > 0) {
            EXPECT_TRUE(refused.has_value()) << "experts leave memory before the window shrinks";
            continue;
        }
        if (refused.has_value()) {
            // 2 % of the weights held a page more.
            EXPECT_GT(need.total(), 50 * need.page_bytes) << request.model_path;
            continue;
        }
        EXPECT_EQ(refused.error().code, ErrorCode::OutOfMemory);
        const std::string& message = refused.error().message;
        const size_t at = message.find("at most ");
        ASSERT_NE(at, std::string::npos) << message;
        options_.context_tokens = std::stoul(message.substr(at + 8));
        EXPECT_GE(options_.context_tokens, 3 * kernels::kPageTokens) << message;
        EXPECT_TRUE(Model::load(request, options_, nullptr, {}).has_value()) << message;
    }
}

TEST_F(MemoryTest, WeightsThatDoNotFitAreRefusedWhateverTheWindow) {
    options_.machine_bytes = 1000;
    for (const size_t context : {size_t{0}, size_t{1}}) {
        options_.context_tokens = context;
        const auto refused = Model::load(requests_.front(), options_, nullptr, {});
        ASSERT_FALSE(refused.has_value());
        EXPECT_EQ(refused.error().code, ErrorCode::OutOfMemory);
        EXPECT_NE(refused.error().message.find("smaller weights"), std::string::npos);
    }
}

TEST_F(MemoryTest, ExpertsThatDoNotFitStayInTheFile) {
    for (const LoadRequest& request : {requests_[0], requests_[1]}) {
        options_.context_tokens = 256;
        options_.machine_bytes = 0;
        const MemoryNeed need = (*Model::load(request, options_, nullptr, {}))->info().memory;
        ASSERT_GT(need.experts, 0U);
        const uint64_t room = need.total() - need.experts / 2;
        options_.machine_bytes = static_cast<uint64_t>(static_cast<double>(room) / 0.9);
        const auto model = Model::load(request, options_, nullptr, {});
        ASSERT_TRUE(model.has_value()) << model.error().message;
        const ModelInfo& info = (*model)->info();
        EXPECT_LE(info.memory.total(), room);
        EXPECT_LE(info.resident_bytes, info.memory.weights);
        EXPECT_GT(info.resident_bytes, need.weights - need.experts);
        EXPECT_EQ(info.context_tokens, 256U);
        ASSERT_FALSE(info.notices.empty());
        EXPECT_NE(info.notices.front().find("experts are held in memory"), std::string::npos)
            << info.notices.front();
    }
}

TEST_F(MemoryTest, TheModelsOwnWindowShrinksToWhatFits) {
    const LoadRequest& request = requests_.back();
    const MemoryNeed need = (*Model::load(request, options_, nullptr, {}))->info().memory;
    const auto room = static_cast<double>(need.total() - need.cache + 2 * need.page_bytes);
    options_.machine_bytes = static_cast<uint64_t>(room * 1.001 / 0.9);
    const auto model = Model::load(request, options_, nullptr, {});
    ASSERT_TRUE(model.has_value()) << model.error().message;
    EXPECT_EQ((*model)->info().context_tokens, 2 * kernels::kPageTokens);
    EXPECT_FALSE((*model)->info().notices.empty());
}

}  // namespace
}  // namespace belvedere::testing
