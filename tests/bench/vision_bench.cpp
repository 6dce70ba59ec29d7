// SPDX-License-Identifier: Apache-2.0
// Tokens per second of MiniMax-M3's vision tower and projector at their published shape, with
// generated BF16 weights, beside the time that their multiplications and additions alone would
// take. Prints, never judges.
//
//     vision_bench [--threads 2] [--width 896] [--height 504] [--layers 32] [--repeats 1]
//
// The floor is the operations of the tower over the rate of the BF16 product with everything in
// cache, measured in the same run on the same kernels.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <fmt/core.h>

#include "inference/backend/cpu_backend.h"
#include "inference/model/vision_tower.h"
#include "tests/bench/ceilings.h"

namespace {

using namespace belvedere;
using namespace belvedere::inference;

struct Options {
    size_t n_threads = 2;
    size_t width = 896;
    size_t height = 504;
    size_t n_layers = 32;
    size_t n_repeats = 1;
};

constexpr size_t kChunk = 512;

/// Weights of which all matrices of a shape read the same numbers, small enough that rows keep
/// their size through all layers.
class Generated {
  public:
    explicit Generated(Backend& backend) : backend_(backend), numbers_(size_t{160} << 20) {
        uint32_t state = 1;
        for (uint16_t& number : numbers_) {
            state = state * 1664525U + 1013904223U;
            // Sign and seven bits of fraction of a BF16 near 2^-7.
            number = static_cast<uint16_t>((state >> 16 & 0x807FU) | 0x3C00U);
        }
    }

    [[nodiscard]] std::unique_ptr<DeviceLinear> linear(size_t n_rows, size_t n_cols) {
        LinearView view;
        view.weight = {kernels::WeightType::BF16, numbers_.data(), n_rows, n_cols};
        view.bias.assign(n_rows, 0.01F);
        return take(backend_.addLinear(view));
    }

    [[nodiscard]] NormWeights norm(size_t n) {
        const std::vector<float> ones(n, 1.0F);
        const std::vector<float> zeros(n, 0.0F);
        return {take(backend_.addVector(ones)), take(backend_.addVector(zeros))};
    }

    template <class T>
    [[nodiscard]] static T take(Result<T> result) {
        if (!result.has_value()) {
            fmt::print(stderr, "vision_bench: {}\n", result.error().message);
            std::exit(1);
        }
        return std::move(*result);
    }

  private:
    Backend& backend_;
    std::vector<uint16_t> numbers_;
};

VisionWeights generate(const VisionConfig& config, Backend& backend) {
    Generated made(backend);
    VisionWeights weights;
    weights.patch_embedding = made.linear(config.dim, kPatchValues);
    weights.first_norm = made.norm(config.dim);
    for (size_t i = 0; i < config.n_layers; ++i) {
        VisionLayerWeights layer;
        layer.attention_norm = made.norm(config.dim);
        layer.mlp_norm = made.norm(config.dim);
        for (std::unique_ptr<DeviceLinear>* square : {&layer.q, &layer.k, &layer.v, &layer.o}) {
            *square = made.linear(config.dim, config.dim);
        }
        layer.up = made.linear(config.ff_dim, config.dim);
        layer.down = made.linear(config.dim, config.ff_dim);
        weights.layers.push_back(std::move(layer));
    }
    weights.project_1 = made.linear(config.out_dim, config.dim);
    weights.project_2 = made.linear(config.out_dim, config.out_dim);
    weights.merge_1 = made.linear(config.out_dim, 4 * config.out_dim);
    weights.merge_2 = made.linear(config.out_dim, config.out_dim);
    return weights;
}

Options parse(int argc, char** argv) {
    Options options;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string_view name = argv[i];
        const size_t value = std::strtoull(argv[i + 1], nullptr, 10);
        size_t* field = name == "--threads"   ? &options.n_threads
                        : name == "--width"   ? &options.width
                        : name == "--height"  ? &options.height
                        : name == "--layers"  ? &options.n_layers
                        : name == "--repeats" ? &options.n_repeats
                                              : nullptr;
        if (field == nullptr || value == 0) {
            fmt::print(stderr, "vision_bench: {} {}: see the head of vision_bench.cpp\n", name,
                       argv[i + 1]);
            std::exit(2);
        }
        *field = value;
    }
    return options;
}

}  // namespace

int main(int argc, char** argv) {
    const Options options = parse(argc, argv);
    const VisionConfig config = {.n_layers = options.n_layers,
                                 .dim = 1280,
                                 .n_heads = 16,
                                 .ff_dim = 5120,
                                 .out_dim = 6144,
                                 .norm_eps = 1e-5F};
    BackendShape shape;
    shape.n_heads = shape.n_kv_heads = 1;
    shape.head_dim = 128;
    shape.max_tokens = kChunk;
    shape.step_width = config.dim;
    const std::unique_ptr<CpuBackend> backend = Generated::take(
        CpuBackend::create(shape, Precision::Fast, kernels::active(), options.n_threads));
    VisionTower tower(config, generate(config, *backend), *backend, kChunk);

    const ImageSize size = Generated::take(resizedSize({options.width, options.height}));
    RgbImage image{size, std::vector<uint8_t>(size.width * size.height * 3)};
    for (size_t i = 0; i < image.rgb.size(); ++i) {
        image.rgb[i] = static_cast<uint8_t>(i * 7919 >> 5U);
    }
    const PatchGrid grid = {1, size.height / kPatchPixels, size.width / kPatchPixels};
    const double operations = VisionTower::operationCount(config, grid);
    const double peak = bench::productPeak(options.n_threads, kernels::WeightType::BF16);
    fmt::print("{}, {} threads; image {} x {}, {} patches, {} tokens; {} layers\n",
               backend->description(), options.n_threads, size.width, size.height,
               grid.patchCount(), grid.tokenCount(), config.n_layers);
    fmt::print(
        "operations {:.2f} T, BF16 product in cache {:.0f} GFLOP/s: floor {:.2f} s, {:.1f} "
        "tokens/s\n",
        operations / 1e12, peak / 1e9, operations / peak,
        static_cast<double>(grid.tokenCount()) * peak / operations);
    std::fflush(stdout);
    double best = 1e9;
    backend->setBusy(true);
    for (size_t i = 0; i < options.n_repeats; ++i) {
        best = std::min(best, bench::secondsOf([&] {
                            static_cast<void>(Generated::take(
                                tower.encode(std::span(&image, 1), TowerRows::Drop, {})));
                        }));
    }
    backend->setBusy(false);
    fmt::print("measured {:.2f} s, {:.1f} tokens/s, {:.0f} GFLOP/s: {:.0f} % of the floor's rate\n",
               best, static_cast<double>(grid.tokenCount()) / best, operations / best / 1e9,
               100 * operations / peak / best);
    return 0;
}
