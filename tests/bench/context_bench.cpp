// SPDX-License-Identifier: Apache-2.0
// What a token costs against the length of the context, with MSA and with dense attention, beside
// the bytes it must read. Prints, never judges.
//
//     context_bench MODEL.gguf [--adapter FILE]... [--threads 2] [--from 1024] [--to 131072]
//                   [--cache f16|bf16|f32|q8_0] [--index-cache bf16|f16|f32|q8_0] [--gen 16]
//                   [--attention msa|dense|both]
//
// The first 2,048 tokens are computed; every later page of the cache is a copy of one of theirs, in
// memory of its own: reading it costs what reading any page costs, and a context of a million
// tokens is there at once. tests/bench/make_m3.py writes a model for this.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <fmt/core.h>

#include "inference/model/model.h"
#include "tests/bench/ceilings.h"

namespace {

using namespace belvedere;
using namespace belvedere::inference;

constexpr size_t kComputedTokens = 2048;
constexpr size_t kPromptTokens = 512;
constexpr int kRepeats = 5;
constexpr int kMemoryPasses = 16;

struct Options {
    LoadRequest load;
    size_t n_threads = 2;
    size_t from = 1024;
    size_t to = size_t{128} << 10;
    size_t n_gen = 16;
    kernels::CacheType cache_type = kernels::CacheType::F16;
    kernels::CacheType index_cache_type = kernels::CacheType::BF16;
    bool msa = true;
    bool dense = true;
};

[[noreturn]] void giveUp(const std::string& why) {
    fmt::print(stderr, "context_bench: {}\n", why);
    std::exit(1);
}

/// A sequence whose cache holds any number of tokens.
class LongSequence {
  public:
    explicit LongSequence(Model& model) : model_(model) {
        for (size_t done = 0; done < kComputedTokens; done += kPromptTokens) {
            forward(done, kPromptTokens, PassKind::Prompt);
        }
    }

    ~LongSequence() {
        for (const PageId page : pages_) {
            model_.backend().freePage(page);
        }
    }

    LongSequence(const LongSequence&) = delete;
    LongSequence& operator=(const LongSequence&) = delete;

    void reserve(size_t n_tokens) {
        while (pages_.size() * kernels::kPageTokens < n_tokens) {
            const Result<PageId> page = model_.backend().allocatePage();
            if (!page.has_value()) {
                giveUp(page.error().message);
            }
            constexpr size_t kOriginals = kComputedTokens / kernels::kPageTokens;
            if (pages_.size() >= kOriginals) {
                static_cast<void>(model_.backend().copyPage(pages_[pages_.size() % kOriginals],
                                                            *page, kernels::kPageTokens));
            }
            pages_.push_back(*page);
        }
    }

    void forward(size_t first_pos, size_t n_tokens, PassKind kind) {
        reserve(first_pos + n_tokens);
        std::vector<int32_t> ids(n_tokens);
        for (size_t i = 0; i < n_tokens; ++i) {
            ids[i] = static_cast<int32_t>(((first_pos + i) * 7919 + 13) % model_.info().vocab_size);
        }
        const Result<void> done =
            model_.decoder().forward(ids, first_pos, pages_, {}, nullptr, {}, kind);
        if (!done.has_value() || !model_.decoder().logits(n_tokens - 1, 1).has_value()) {
            giveUp("a pass failed");
        }
    }

  private:
    Model& model_;
    std::vector<PageId> pages_;
};

/// Bytes of the matrices that one token reads: all but the embedding; of experts, the chosen ones.
double weightBytes(const Model& model) {
    double bytes = 0.0;
    for (const ModelTensor& tensor : model.source().tensors()) {
        const auto size = static_cast<double>(tensor.byteCount());
        if (tensor.n_dims == 3) {
            const MoeConfig& moe = model.config().moe;
            bytes += size * static_cast<double>(moe.n_used) / static_cast<double>(moe.n_experts);
        } else if (tensor.n_dims == 2 && tensor.name != "token_embd.weight") {
            bytes += size;
        }
    }
    return bytes;
}

/// Bytes of the cache that one token reads: of a dense layer all K and V; of an MSA layer the index
/// keys and the K and V of the chosen blocks.
double cacheBytes(const Model& model, const CacheTypes& types, size_t context) {
    const ModelConfig& config = model.config();
    ModelConfig dense = config;
    dense.layers.assign(config.n_layers, {});
    const uint64_t kv_bytes = cacheBytesPerToken(dense, types);  // of all layers
    const uint64_t index_bytes = cacheBytesPerToken(config, types) - kv_bytes;
    const auto n_msa = static_cast<size_t>(std::count_if(
        config.layers.begin(), config.layers.end(),
        [](const LayerConfig& layer) { return layer.attention == AttentionKind::Msa; }));
    const size_t chosen = std::min(context, config.msa.top_k * config.msa.block_tokens);
    const size_t attended = n_msa * chosen + (config.n_layers - n_msa) * context;
    return static_cast<double>(kv_bytes / config.n_layers * attended + index_bytes * context);
}

void sweep(const Options& options, Attention attention) {
    ModelOptions model_options;
    model_options.n_threads = options.n_threads;
    model_options.attention = attention;
    model_options.cache_type = options.cache_type;
    model_options.index_cache_type = options.index_cache_type;
    model_options.context_tokens = options.to + options.n_gen;
    model_options.max_pass_tokens = kPromptTokens;
    const auto loaded = Model::load(options.load, model_options, nullptr, {});
    if (!loaded.has_value()) {
        giveUp(loaded.error().message);
    }
    Model& model = **loaded;
    const bool is_msa = attention == Attention::Msa;
    fmt::print("{}: {}, {} threads, {}, {} cache bytes a token, attention {}\n", model.info().name,
               model.info().weight_types, model.info().n_threads, model.info().instruction_set,
               model.info().cache_bytes_per_token, is_msa ? "MSA" : "dense");
    fmt::print("{:>9} {:>14} {:>12} {:>10} {:>12} {:>10} {:>8}\n", "context", "prompt us/tok",
               "decode us/tok", "read MB", "memory GB/s", "floor us", "of floor");
    bench::MemoryReader memory(options.n_threads);
    LongSequence sequence(model);
    const CacheTypes types = {options.cache_type, model_options.index_cache_type};
    for (size_t context = options.from; context <= options.to; context *= 2) {
        sequence.reserve(context + options.n_gen);
        model.backend().setBusy(true);
        const double prompt = bench::secondsOf(
            [&] { sequence.forward(context - kPromptTokens, kPromptTokens, PassKind::Prompt); });
        sequence.forward(context, 1, PassKind::Generation);
        model.backend().setBusy(false);
        // By turns, the best of each: what other programs take of the memory changes by the second.
        double decode = 1e9;
        double bandwidth = 0.0;
        for (int repeat = 0; repeat < kRepeats; ++repeat) {
            bandwidth = std::max(bandwidth, memory.bandwidth(kMemoryPasses));
            model.backend().setBusy(true);
            decode = std::min(decode, bench::secondsOf([&] {
                                  for (size_t i = 0; i < options.n_gen; ++i) {
                                      sequence.forward(context + i, 1, PassKind::Generation);
                                  }
                              }));
            model.backend().setBusy(false);
        }
        const double decode_us = decode * 1e6 / static_cast<double>(options.n_gen);
        const double bytes = weightBytes(model) + cacheBytes(model, types, context);
        const double floor_us = bytes / bandwidth * 1e6;
        fmt::print("{:>9} {:>14.0f} {:>12.0f} {:>10.1f} {:>12.1f} {:>10.0f} {:>7.0f}%\n", context,
                   prompt * 1e6 / kPromptTokens, decode_us, bytes * 1e-6, bandwidth * 1e-9,
                   floor_us, 100 * floor_us / decode_us);
        std::fflush(stdout);
    }
}

bool parse(int argc, char** argv, Options& options) {
    for (int i = 1; i < argc; ++i) {
        const std::string arg = argv[i];
        const std::string value = arg.starts_with("--") && i + 1 < argc ? argv[++i] : "";
        const auto number = static_cast<size_t>(std::strtoull(value.c_str(), nullptr, 10));
        if (arg == "--adapter") {
            options.load.adapters.push_back({value, 1.0F});
        } else if (arg == "--threads") {
            options.n_threads = number;
        } else if (arg == "--from") {
            options.from = number;
        } else if (arg == "--to") {
            options.to = number;
        } else if (arg == "--gen") {
            options.n_gen = number;
        } else if (arg == "--cache") {
            for (const kernels::CacheTypeInfo& info : kernels::kCacheTypes) {
                options.cache_type = value == info.name ? info.type : options.cache_type;
            }
        } else if (arg == "--index-cache") {
            for (const kernels::CacheTypeInfo& info : kernels::kCacheTypes) {
                options.index_cache_type =
                    value == info.name ? info.type : options.index_cache_type;
            }
        } else if (arg == "--attention") {
            options.msa = value != "dense";
            options.dense = value != "msa";
        } else {
            options.load.model_path = arg;
        }
    }
    return !options.load.model_path.empty() && options.n_threads > 0 && options.n_gen > 0 &&
           options.from >= kPromptTokens;
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    if (!parse(argc, argv, options)) {
        fmt::print(stderr,
                   "context_bench: MODEL.gguf [--adapter FILE]... [--threads N] [--from N] [--to "
                   "N] [--cache TYPE] [--gen N] [--attention msa|dense|both]\n");
        return 2;
    }
    if (options.msa) {
        sweep(options, Attention::Msa);
    }
    if (options.dense) {
        sweep(options, Attention::Dense);
    }
    return 0;
}
