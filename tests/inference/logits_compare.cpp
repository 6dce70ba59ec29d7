// SPDX-License-Identifier: Apache-2.0
#include "tests/inference/logits_compare.h"

#include <algorithm>
#include <cmath>

#include "inference/cache/kv_cache.h"
#include "inference/format/safetensors.h"
#include "kernels/base/check.h"

namespace belvedere::testing {

using namespace inference;  // the file is about it

LogitsDifference compareLogits(std::span<const float> logits,
                               std::span<const float> reference,
                               size_t vocab_size,
                               double near) {
    BV_CHECK(logits.size() == reference.size());
    LogitsDifference difference;
    double squares = 0.0;
    double errors = 0.0;
    for (size_t begin = 0; begin < logits.size(); begin += vocab_size) {
        const auto ours = logits.subspan(begin, vocab_size);
        const auto theirs = reference.subspan(begin, vocab_size);
        for (size_t i = 0; i < vocab_size; ++i) {
            const double error =
                std::fabs(static_cast<double>(ours[i]) - static_cast<double>(theirs[i]));
            // A NaN is as wrong as can be.
            difference.largest = std::isnan(error) ? HUGE_VAL : std::max(difference.largest, error);
            errors += error * error;
            squares += static_cast<double>(theirs[i]) * static_cast<double>(theirs[i]);
        }
        const auto best = std::max_element(theirs.begin(), theirs.end()) - theirs.begin();
        const auto chosen = std::max_element(ours.begin(), ours.end()) - ours.begin();
        if (best != chosen) {
            ++difference.n_best_differs;
            const double gap = static_cast<double>(theirs[static_cast<size_t>(best)] -
                                                   theirs[static_cast<size_t>(chosen)]);
            difference.n_near_ties += gap < near ? 1 : 0;
        }
    }
    difference.nmse = errors / squares;
    return difference;
}

double meanLoss(std::span<const float> logits, std::span<const TokenId> ids, size_t vocab_size) {
    double sum = 0.0;
    for (size_t t = 0; t + 1 < ids.size(); ++t) {
        const auto row = logits.subspan(t * vocab_size, vocab_size);
        const auto largest = static_cast<double>(*std::max_element(row.begin(), row.end()));
        double total = 0.0;
        for (const float logit : row) {
            total += std::exp(static_cast<double>(logit) - largest);
        }
        sum +=
            std::log(total) + largest - static_cast<double>(row[static_cast<size_t>(ids[t + 1])]);
    }
    return sum / static_cast<double>(ids.size() - 1);
}

Result<std::vector<float>> runModel(const std::string& path,
                                    std::span<const TokenId> ids,
                                    const RunOptions& options) {
    ModelOptions model_options;
    model_options.compute = options.compute;
    model_options.cache_type = options.cache_type;
    model_options.index_cache_type = options.index_cache_type;
    model_options.n_threads = options.n_threads;
    model_options.max_pass_tokens = options.chunk;
    model_options.kernels = options.kernels;
    model_options.attention = options.attention;
    const auto model = BV_TRY(Model::load({path, options.adapters}, model_options, nullptr, {}));
    KvCache cache(model->backend(), SIZE_MAX);
    const SequenceId sequence = cache.open();
    BV_TRY(cache.begin(sequence, ids));
    std::vector<float> all;
    for (size_t begin = 0; begin < ids.size(); begin += options.chunk) {
        const auto tokens = ids.subspan(begin, std::min(options.chunk, ids.size() - begin));
        const auto pages = BV_TRY(cache.prepare(sequence, tokens.size()));
        BV_TRY(model->decoder().forward(tokens, begin, pages, {}, options.observer));
        cache.commit(sequence, tokens);
        for (size_t row = 0; row < tokens.size(); ++row) {
            const auto logits = BV_TRY(model->decoder().logits(row, 1));
            all.insert(all.end(), logits.begin(), logits.end());
        }
    }
    return all;
}

std::vector<TokenId> expectedIds(const std::string& path) {
    const auto file = SafetensorsFile::open(path);
    BV_CHECK(file.has_value());
    const auto ids = file->readInts("input_ids");
    BV_CHECK(ids.has_value());
    return {ids->begin(), ids->end()};
}

std::vector<float> expectedLogits(const std::string& path) {
    const auto file = SafetensorsFile::open(path);
    BV_CHECK(file.has_value());
    auto logits = file->readF32("logits");
    BV_CHECK(logits.has_value());
    return std::move(*logits);
}

}  // namespace belvedere::testing
