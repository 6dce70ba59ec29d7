// SPDX-License-Identifier: Apache-2.0
// MiniMax-M3's attention at its real shape, over 4,607 positions; label slow.

#include <gtest/gtest.h>

#include "inference/format/safetensors.h"
#include "tests/inference/logits_compare.h"
#include "tests/support/reference_dir.h"

namespace belvedere::testing {
namespace {

constexpr double kTolerance = 1e-3;

/// Blocks of 128, top-k 16, heads of 128: position 2,047 is the last where MSA equals dense.
class M3RealHeads : public ::testing::TestWithParam<const char*> {};

TEST_P(M3RealHeads, MatchesTheReferenceUpTo4607) {
    const auto folder = referenceDir();
    if (!folder || !std::filesystem::exists(*folder / "m3-real-heads")) {
        GTEST_SKIP() << "no reference data: set BV_REFERENCE_DIR";
    }
    const std::string path = (*folder / "m3-real-heads").string();
    const auto expected = inference::SafetensorsFile::open(path + "/expected.safetensors");
    const auto ids = expectedIds(path + "/expected.safetensors");
    const auto positions = *expected->readInts("positions");
    const auto reference = *expected->readF32("logits");
    const size_t vocab_size = reference.size() / positions.size();
    RunOptions options;
    options.chunk = 512;
    const auto logits = runModel(path + GetParam(), ids, options);
    ASSERT_TRUE(logits.has_value()) << logits.error().message;
    for (size_t i = 0; i < positions.size(); ++i) {
        const auto at = static_cast<size_t>(positions[i]) * vocab_size;
        const auto difference = compareLogits(
            std::span(*logits).subspan(at, vocab_size),
            std::span(reference).subspan(i * vocab_size, vocab_size), vocab_size, 0.0);
        EXPECT_LT(difference.largest, kTolerance) << "position " << positions[i];
    }
}

/// The GGUF and the checkpoint it was made from.
INSTANTIATE_TEST_SUITE_P(,
                         M3RealHeads,
                         ::testing::Values("/model-BF16.gguf", "/model.safetensors"));

}  // namespace
}  // namespace belvedere::testing
