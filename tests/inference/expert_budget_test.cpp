// SPDX-License-Identifier: Apache-2.0
// A model whose experts do not all fit in memory computes the same, only slower.

#include <algorithm>

#include <gtest/gtest.h>

#include "inference/cache/kv_cache.h"
#include "tests/inference/logits_compare.h"
#include "tests/support/reference_dir.h"

namespace belvedere::testing {
namespace {

using kernels::Isa;

class ExpertBudget : public ::testing::TestWithParam<Isa> {
  protected:
    void SetUp() override {
        table_ = kernels::tableFor(GetParam());
        if (table_ == nullptr) {
            GTEST_SKIP() << "no kernels here for " << kernels::isaName(GetParam());
        }
        ids_ = expectedIds(dataPath("inference/m3-tiny/expected.safetensors").string());
        ids_.resize(100);
    }

    std::unique_ptr<inference::Model> load(uint64_t budget_bytes) const {
        inference::ModelOptions options;
        options.kernels = table_;
        options.n_threads = 2;
        options.max_pass_tokens = 64;
        options.expert_budget_bytes = budget_bytes;
        auto model = inference::Model::load(
            {dataPath("inference/m3-tiny/model-BF16.gguf").string(), {}}, options, nullptr, {});
        EXPECT_TRUE(model.has_value()) << (model.has_value() ? "" : model.error().message);
        return std::move(*model);
    }

    /// Logits after a prompt of 64 tokens and after each of the tokens that follow it one by one.
    std::vector<float> run(inference::Model& model) const {
        inference::KvCache cache(model.backend(), SIZE_MAX);
        const inference::SequenceId sequence = cache.open();
        EXPECT_TRUE(cache.begin(sequence, ids_).has_value());
        std::vector<float> all;
        for (size_t begin = 0; begin < ids_.size();) {
            const auto tokens = std::span(ids_).subspan(begin, begin == 0 ? 64 : 1);
            const auto pages = *cache.prepare(sequence, tokens.size());
            EXPECT_TRUE(model.decoder().forward(tokens, begin, pages, {}).has_value());
            cache.commit(sequence, tokens);
            const auto logits = *model.decoder().logits(tokens.size() - 1, 1);
            all.insert(all.end(), logits.begin(), logits.end());
            begin += tokens.size();
        }
        cache.end(sequence);
        return all;
    }

    const kernels::KernelTable* table_ = nullptr;
    std::vector<inference::TokenId> ids_;
};

TEST_P(ExpertBudget, ChangesNoBitAndIsKept) {
    const auto whole = load(0);
    const std::vector<float> expected = run(*whole);
    const uint64_t all_bytes = whole->backend().residentBytes();
    // One expert: three matrices of 64 x 128 in two bytes; 24 experts in the model.
    constexpr uint64_t kExpertBytes = 3 * 64 * 128 * 2;
    for (const uint64_t n_experts : std::initializer_list<uint64_t>{1, 2, 5, 23}) {
        const uint64_t budget = n_experts * kExpertBytes;
        const auto model = load(budget);
        EXPECT_EQ(run(*model), expected) << n_experts << " experts fit";
        const uint64_t bytes = model->backend().residentBytes();
        EXPECT_LE(bytes, all_bytes) << n_experts << " experts fit";
        if (all_bytes > 0 && table_->packed_bytes(kernels::WeightType::BF16, 64, 128) > 0) {
            EXPECT_EQ(all_bytes - bytes, (24 - n_experts) * kExpertBytes);
            EXPECT_EQ(model->info().memory.experts, budget);
            EXPECT_TRUE(std::ranges::any_of(model->info().notices, [](const std::string& notice) {
                return notice.find("read from the file when they are chosen") != std::string::npos;
            }));
        }
    }
}

TEST_P(ExpertBudget, SmallerThanOneExpertStillRuns) {
    const auto model = load(1);
    EXPECT_EQ(run(*model), run(*load(0)));
}

INSTANTIATE_TEST_SUITE_P(Isa,
                         ExpertBudget,
                         ::testing::Values(Isa::Scalar, Isa::Avx2, Isa::Avx512),
                         [](const auto& tested) {
                             return std::string(kernels::isaName(tested.param));
                         });

}  // namespace
}  // namespace belvedere::testing
