// SPDX-License-Identifier: Apache-2.0
// bench: prompt and generation speed of a model on this machine, as llama-bench measures them.
#include <algorithm>
#include <vector>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "app/headless/cli.h"
#include "app/headless/runtime.h"

namespace belvedere::app {
namespace {

constexpr size_t kRepeats = 3;

/// Shows how far a long context is; drops what is said.
class BenchSink : public inference::GenerationSink {
  public:
    void onPrefill(size_t n_done, size_t n_total) override {
        constexpr size_t kLong = 2048;
        if (is_terminal_ && n_total > kLong) {
            fmt::print(stderr, "\r\033[K{} of {} tokens", n_done, n_total);
            if (n_done == n_total) {
                fmt::print(stderr, "\r\033[K");
            }
        }
    }

    void onText(std::string_view /*text*/, std::span<const inference::TokenId> /*ids*/) override {}

  private:
    const bool is_terminal_ = isatty(STDERR_FILENO) == 1;
};

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

/// Ids spread over the vocabulary: the same ones that tests/bench/peer_llamacpp.py feeds the peer.
std::vector<inference::TokenId> syntheticIds(size_t n, size_t vocab_size) {
    std::vector<inference::TokenId> ids(n);
    for (size_t i = 0; i < n; ++i) {
        ids[i] = static_cast<inference::TokenId>((i * 7919 + 13) % vocab_size);
    }
    return ids;
}

}  // namespace

Result<void> runBench(const Arguments& arguments, std::stop_token stop) {
    const Config config = BV_TRY(configFor(arguments));
    const inference::LoadRequest load = BV_TRY(modelFor(arguments, config));
    const std::unique_ptr<inference::Engine> engine =
        BV_TRY(inference::Engine::load(load, config.engine, nullptr, stop));
    const size_t n_depth = arguments.n_depth.value_or(0);
    const size_t n_prompt = arguments.n_prompt.value_or(512);
    const size_t n_generate = arguments.max_tokens.value_or(128);
    const std::vector<inference::TokenId> ids =
        syntheticIds(n_depth + n_prompt, engine->info().vocab_size);

    BenchSink sink;
    std::vector<double> prompt_rates;
    std::vector<double> generation_rates;
    // The context before is computed once: the runs share its pages.
    if (n_depth > 0) {
        inference::GenerateRequest request;
        request.sequence = engine->openSequence();
        request.prompt.assign(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(n_depth));
        request.max_tokens = 0;
        BV_TRY(engine->generate(request, sink, stop));
    }
    for (size_t repeat = 0; repeat <= kRepeats; ++repeat) {
        const inference::SequenceId sequence = engine->openSequence();
        inference::GenerateRequest request;
        request.sequence = sequence;
        request.ignore_end_of_turn = true;
        // Peers are timed without: what a model says of ids at random repeats itself.
        request.drafts = arguments.speculative.value_or(false);
        request.prompt = ids;
        request.max_tokens = n_generate + 1;  // the first token belongs to the prompt's pass
        const inference::GenerationStats stats = BV_TRY(engine->generate(request, sink, stop));
        engine->closeSequence(sequence);
        if (stats.finish == inference::FinishReason::Cancelled) {
            return fail(ErrorCode::Cancelled, "cancelled");
        }
        if (stats.n_cached + 1 < n_depth) {
            return fail(ErrorCode::OutOfMemory,
                        "{} of the {} tokens before the prompt stayed in the cache: raise "
                        "engine.cache_budget_mb in the settings, now {}",
                        stats.n_cached, n_depth, config.engine.cache_budget_bytes >> 20);
        }
        if (repeat > 0) {  // the first run warms up
            prompt_rates.push_back(static_cast<double>(stats.n_prefilled) / stats.prefill.count());
            generation_rates.push_back(static_cast<double>(stats.n_generated - 1) /
                                       stats.generation.count());
        }
    }
    const inference::ModelInfo& info = engine->info();
    const nlohmann::ordered_json json = {{"model", info.name},
                                         {"weights", info.weight_types},
                                         {"instruction_set", info.instruction_set},
                                         {"threads", info.n_threads},
                                         {"depth", n_depth},
                                         {"prompt_tokens", n_prompt},
                                         {"generated_tokens", n_generate},
                                         {"prompt_tok_s", median(prompt_rates)},
                                         {"gen_tok_s", median(generation_rates)}};
    if (arguments.json) {
        fmt::print("{}\n", json.dump());
        return {};
    }
    fmt::print(
        "{} ({}), {}, {} threads, depth {}\n  prompt {} tokens: {:.1f} tokens/s\n  generation {} "
        "tokens: {:.1f} tokens/s\n",
        info.name, info.weight_types, info.instruction_set, info.n_threads, n_depth, n_prompt,
        median(prompt_rates), n_generate, median(generation_rates));
    return {};
}

}  // namespace belvedere::app
