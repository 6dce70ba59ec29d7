// SPDX-License-Identifier: Apache-2.0
#pragma once

// An engine on a generated model, and a sink that keeps what it hears. Tests only.

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "inference/engine.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace belvedere::testing {

using namespace inference;  // the tests are about it

/// Collects a generation; may stop it after some prefill or text.
class Collector : public GenerationSink {
  public:
    void onPrefill(size_t n_done, size_t n_total) override {
        prefill.emplace_back(n_done, n_total);
        if (n_done >= stop_at_prefill) {
            source.request_stop();
        }
    }

    void onNotice(const std::string& notice) override { notices.push_back(notice); }

    void onText(std::string_view piece, std::span<const TokenId> tokens) override {
        text += piece;
        pieces.emplace_back(piece);
        ids.insert(ids.end(), tokens.begin(), tokens.end());
        if (ids.size() >= stop_at_tokens) {
            source.request_stop();
        }
    }

    std::stop_source source;
    size_t stop_at_prefill = std::numeric_limits<size_t>::max();
    size_t stop_at_tokens = std::numeric_limits<size_t>::max();
    std::string text;
    std::vector<std::string> pieces;
    std::vector<TokenId> ids;
    std::vector<std::pair<size_t, size_t>> prefill;
    std::vector<std::string> notices;
};

inline std::vector<TokenId> prompt(size_t n, int start = 65) {
    std::vector<TokenId> ids(n);
    for (size_t i = 0; i < n; ++i) {
        ids[i] = static_cast<TokenId>((static_cast<size_t>(start) + i * 7) % 256);
    }
    return ids;
}

class EngineTest : public ::testing::Test {
  protected:
    std::unique_ptr<Engine> load(const EngineConfig& config = {},
                                 const TinyModelOptions& options = {}) {
        const auto path = dir_.write("tiny.gguf", tinyModel(options));
        LoadRequest request;
        request.model_path = path.string();
        request.adapters = adapters_;
        auto engine = Engine::load(request, config, nullptr, {});
        EXPECT_TRUE(engine.has_value()) << engine.error().message;
        return std::move(*engine);
    }

    static GenerateRequest request(SequenceId sequence,
                                   std::vector<TokenId> ids,
                                   size_t max_tokens = 24) {
        GenerateRequest request;
        request.sequence = sequence;
        request.prompt = std::move(ids);
        request.max_tokens = max_tokens;
        request.ignore_end_of_turn = true;
        return request;
    }

    static std::vector<TokenId> run(Engine& engine,
                                    const GenerateRequest& request,
                                    GenerationStats* stats = nullptr) {
        Collector collector;
        const auto result = engine.generate(request, collector, collector.source.get_token());
        EXPECT_TRUE(result.has_value()) << result.error().message;
        if (stats != nullptr && result.has_value()) {
            *stats = *result;
        }
        return collector.ids;
    }

    TempDir dir_;
    std::vector<AdapterFile> adapters_;
};

}  // namespace belvedere::testing
