// SPDX-License-Identifier: Apache-2.0
// Prompt and generation tokens per second of one model file, beside what the machine allows.
// Prints, never judges.
//
//     engine_bench MODEL.gguf [--adapter FILE]... [--threads 2] [--prompt 512] [--gen 128] [--depth
//     0] [--repeats 3]
//
// The ids and the order of calls are those of a llama.cpp run through its C API: id(i) = (7919 i +
// 13) mod vocabulary, depth first, then the prompt (timed), then one id at a time (timed), logits
// of the last id of each call.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include <fmt/core.h>

#include "inference/cache/kv_cache.h"
#include "inference/model/model.h"
#include "tests/bench/ceilings.h"

namespace {

using namespace belvedere;
using namespace belvedere::inference;
using bench::memoryBandwidth;
using bench::productPeak;
using bench::secondsOf;

struct Options {
    LoadRequest load;
    size_t n_threads = 2;
    size_t n_prompt = 512;
    size_t n_gen = 128;
    size_t depth = 0;
    size_t n_repeats = 3;
    size_t chunk = 512;
};

/// Processor time of all threads: on a machine that others use too, tokens per second of it say
/// more than those of the clock.
double processorSeconds() {
    return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

class Bench {
  public:
    Bench(Model& model, const Options& options)
        : model_(model), options_(options), cache_(model.backend(), SIZE_MAX) {
        for (size_t i = 0; i < options.depth + options.n_prompt + options.n_gen; ++i) {
            ids_.push_back(static_cast<TokenId>((i * 7919 + 13) % model.info().vocab_size));
        }
    }

    void repeat() {
        const SequenceId sequence = cache_.open();
        static_cast<void>(cache_.begin(sequence, std::span(ids_).first(1)));
        model_.backend().setBusy(true);
        feed(sequence, 0, options_.depth);
        const double before_prompt = processorSeconds();
        prompt_s_.push_back(secondsOf([&] { feed(sequence, options_.depth, options_.n_prompt); }));
        const double before_generation = processorSeconds();
        prompt_cpu_s_.push_back(before_generation - before_prompt);
        generation_s_.push_back(secondsOf([&] {
            for (size_t i = 0; i < options_.n_gen; ++i) {
                feed(sequence, options_.depth + options_.n_prompt + i, 1, PassKind::Generation);
            }
        }));
        generation_cpu_s_.push_back(processorSeconds() - before_generation);
        model_.backend().setBusy(false);
        cache_.end(sequence);
        cache_.close(sequence);
    }

    [[nodiscard]] double promptCpuRate() const {
        return static_cast<double>(options_.n_prompt) / median(prompt_cpu_s_);
    }

    [[nodiscard]] double generationCpuRate() const {
        return static_cast<double>(options_.n_gen) / median(generation_cpu_s_);
    }

    [[nodiscard]] double promptRate() const {
        return options_.n_prompt > 0 ? static_cast<double>(options_.n_prompt) / median(prompt_s_)
                                     : 0.0;
    }

    [[nodiscard]] double generationRate() const {
        return options_.n_gen > 0 ? static_cast<double>(options_.n_gen) / median(generation_s_)
                                  : 0.0;
    }

    void forget() {
        prompt_s_.clear();
        generation_s_.clear();
        prompt_cpu_s_.clear();
        generation_cpu_s_.clear();
    }

  private:
    void feed(SequenceId sequence, size_t begin, size_t n, PassKind kind = PassKind::Prompt) {
        for (size_t done = 0; done < n;) {
            const size_t chunk = std::min(options_.chunk, n - done);
            const auto tokens = std::span(ids_).subspan(begin + done, chunk);
            const auto pages = cache_.prepare(sequence, chunk);
            if (!pages.has_value() ||
                !model_.decoder()
                     .forward(tokens, begin + done, *pages, {}, nullptr, {}, kind)
                     .has_value()) {
                fmt::print(stderr, "engine_bench: a pass failed\n");
                std::exit(1);
            }
            cache_.commit(sequence, tokens);
            done += chunk;
            if (done == n) {
                static_cast<void>(model_.decoder().logits(chunk - 1, 1));
            }
        }
    }

    Model& model_;
    const Options options_;
    KvCache cache_;
    std::vector<TokenId> ids_;
    std::vector<double> prompt_s_;
    std::vector<double> generation_s_;
    std::vector<double> prompt_cpu_s_;
    std::vector<double> generation_cpu_s_;
};

/// Weight bytes that one generated token reads: every matrix but the embedding, which only the head
/// reads whole.
double bytesPerToken(const Model& model) {
    double bytes = 0.0;
    const bool tied = model.source().find("output.weight") == nullptr;
    for (const ModelTensor& tensor : model.source().tensors()) {
        if (tensor.n_dims == 2 && (tied || tensor.name != "token_embd.weight")) {
            bytes += static_cast<double>(tensor.byteCount());
        }
    }
    return bytes;
}

double multipliesPerToken(const Model& model) {
    double n = 0.0;
    for (const ModelTensor& tensor : model.source().tensors()) {
        if (tensor.n_dims == 2 && tensor.name.starts_with("blk.")) {
            n += static_cast<double>(tensor.elementCount());
        }
    }
    return n;
}

bool parse(int argc, char** argv, Options& options) {
    for (int i = 1; i < argc; ++i) {
        const std::string arg = argv[i];
        const auto number = [&] {
            return i + 1 < argc ? static_cast<size_t>(std::strtoull(argv[++i], nullptr, 10)) : 0;
        };
        if (arg == "--adapter" && i + 1 < argc) {
            options.load.adapters.push_back({argv[++i], 1.0F});
        } else if (arg == "--threads") {
            options.n_threads = number();
        } else if (arg == "--prompt") {
            options.n_prompt = number();
        } else if (arg == "--gen") {
            options.n_gen = number();
        } else if (arg == "--depth") {
            options.depth = number();
        } else if (arg == "--repeats") {
            options.n_repeats = number();
        } else if (arg == "--chunk") {
            options.chunk = number();
        } else {
            options.load.model_path = arg;
        }
    }
    return !options.load.model_path.empty() && options.n_threads > 0 && options.n_repeats > 0 &&
           options.chunk > 0;
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    if (!parse(argc, argv, options)) {
        fmt::print(stderr,
                   "engine_bench: MODEL.gguf [--adapter FILE]... [--threads N] [--prompt N] [--gen "
                   "N] [--depth N] "
                   "[--repeats N] [--chunk N]\n");
        return 2;
    }
    ModelOptions model_options;
    model_options.n_threads = options.n_threads;
    model_options.max_pass_tokens = options.chunk;
    auto model = Model::load(options.load, model_options, nullptr, {});
    if (!model.has_value()) {
        fmt::print(stderr, "engine_bench: {}\n", model.error().message);
        return 1;
    }
    Bench bench(**model, options);
    bench.repeat();  // warms caches and pages
    bench.forget();
    for (size_t i = 0; i < options.n_repeats; ++i) {
        bench.repeat();
    }
    const double bandwidth = memoryBandwidth(options.n_threads);
    const double peak = productPeak(options.n_threads);
    const ModelInfo& info = (*model)->info();
    const double cache_bytes =
        static_cast<double>(info.cache_bytes_per_token) *
        static_cast<double>(options.depth + options.n_prompt + options.n_gen / 2);
    fmt::print("{}: {}, {} threads, {}, adapters {}\n", info.name, info.weight_types,
               info.n_threads, info.instruction_set, info.adapters.size());
    fmt::print(
        "prompt {} at depth {}: {:.1f} tok/s   (products alone at {:.0f} GOP/s: {:.0f} tok/s)\n",
        options.n_prompt, options.depth, bench.promptRate(), peak * 1e-9,
        peak / (2.0 * multipliesPerToken(**model)));
    fmt::print(
        "generation {}: {:.1f} tok/s   (weights {:.1f} MB + cache {:.1f} MB at {:.1f} GB/s: {:.0f} "
        "tok/s)\n",
        options.n_gen, bench.generationRate(), bytesPerToken(**model) * 1e-6, cache_bytes * 1e-6,
        bandwidth * 1e-9, bandwidth / (bytesPerToken(**model) + cache_bytes));
    fmt::print("per processor second: prompt {:.1f} tok, generation {:.1f} tok\n",
               bench.promptCpuRate(), bench.generationCpuRate());
    return 0;
}
