// SPDX-License-Identifier: Apache-2.0
// Times the kernels at the shapes of SmolLM2-135M beside what this machine can do at all in the
// same run: bytes read from memory, integer and f32 operations. Prints; judges nothing.
//
//     kernels_bench [threads [matrices|attention]]    without a number: 1 thread, then all cores

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "kernels/base/aligned_buffer.h"
#include "kernels/base/thread_pool.h"
#include "kernels/kernels.h"

namespace belvedere::kernels {
namespace {

using Clock = std::chrono::steady_clock;

// SmolLM2-135M.
constexpr size_t kDim = 576;
constexpr size_t kFfDim = 1536;
constexpr size_t kHeads = 9;
constexpr size_t kKvHeads = 3;
constexpr size_t kHeadDim = 64;
constexpr size_t kLayers = 30;
constexpr size_t kVocab = 49152;
constexpr size_t kPrompt = 512;

/// Query and KV heads of a model.
struct Heads {
    size_t n;
    size_t n_kv;
    size_t dim;
    size_t n_layers;
};

/// Median of several runs, each long enough to measure, in seconds.
double seconds(const std::function<void()>& work) {
    std::vector<double> times;
    const auto end = Clock::now() + std::chrono::milliseconds(400);
    work();
    while (times.size() < 5 || (Clock::now() < end && times.size() < 400)) {
        const auto begin = Clock::now();
        work();
        times.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    }
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                     times.end());
    return times[times.size() / 2];
}

/// Values of a usual size in every type: a subnormal scale would time the processor's slow path.
void fillWeights(WeightType type, uint8_t* bytes, size_t n) {
    const WeightTypeInfo& info = *findWeightType(static_cast<uint32_t>(type));
    uint32_t state = 1;
    for (size_t i = 0; i < n; ++i) {
        state = state * 1664525U + 1013904223U;
        bytes[i] = static_cast<uint8_t>(state >> 24);
        const size_t from_end = info.block_bytes - 1 - i % info.block_bytes;
        // The upper byte of every f16, bf16 or f32 that may stand at an odd place at either end of
        // a block.
        if (i % 2 == 1 && (i % info.block_bytes < 4 || from_end < 4)) {
            bytes[i] = 0x2c;
        }
        if ((type == WeightType::MXFP4 || type == WeightType::MXFP8) && i % info.block_bytes == 0) {
            bytes[i] = 120;
        }
    }
}

#if defined(__x86_64__)
constexpr size_t kPeakRounds = 100000;
constexpr size_t kPeakChains = 12;

__attribute__((target("avx512f,avx512vnni"))) void vnniLoop() {
    for (size_t i = 0; i < kPeakRounds; ++i) {
        asm volatile(
            "vpdpbusd %%zmm30, %%zmm31, %%zmm0\n vpdpbusd %%zmm30, %%zmm31, %%zmm1\n"
            "vpdpbusd %%zmm30, %%zmm31, %%zmm2\n vpdpbusd %%zmm30, %%zmm31, %%zmm3\n"
            "vpdpbusd %%zmm30, %%zmm31, %%zmm4\n vpdpbusd %%zmm30, %%zmm31, %%zmm5\n"
            "vpdpbusd %%zmm30, %%zmm31, %%zmm6\n vpdpbusd %%zmm30, %%zmm31, %%zmm7\n"
            "vpdpbusd %%zmm30, %%zmm31, %%zmm8\n vpdpbusd %%zmm30, %%zmm31, %%zmm9\n"
            "vpdpbusd %%zmm30, %%zmm31, %%zmm10\n vpdpbusd %%zmm30, %%zmm31, %%zmm11\n" ::
                : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
                  "xmm10", "xmm11");
    }
}

__attribute__((target("avx512f,avx512vnni"))) void fmaLoop() {
    for (size_t i = 0; i < kPeakRounds; ++i) {
        asm volatile(
            "vfmadd231ps %%zmm30, %%zmm31, %%zmm0\n vfmadd231ps %%zmm30, %%zmm31, %%zmm1\n"
            "vfmadd231ps %%zmm30, %%zmm31, %%zmm2\n vfmadd231ps %%zmm30, %%zmm31, %%zmm3\n"
            "vfmadd231ps %%zmm30, %%zmm31, %%zmm4\n vfmadd231ps %%zmm30, %%zmm31, %%zmm5\n"
            "vfmadd231ps %%zmm30, %%zmm31, %%zmm6\n vfmadd231ps %%zmm30, %%zmm31, %%zmm7\n"
            "vfmadd231ps %%zmm30, %%zmm31, %%zmm8\n vfmadd231ps %%zmm30, %%zmm31, %%zmm9\n"
            "vfmadd231ps %%zmm30, %%zmm31, %%zmm10\n vfmadd231ps %%zmm30, %%zmm31, %%zmm11\n" ::
                : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
                  "xmm10", "xmm11");
    }
}

/// 1e9 operations a second over all threads; `loop` runs kPeakRounds x kPeakChains instructions.
double peak(ThreadPool& pool, void (*loop)(), double ops_per_instruction) {
    const size_t n = pool.threadCount() * 8;
    const double s = seconds([&] {
        pool.parallelFor(n, 1, [&](size_t begin, size_t end, size_t) {
            for (size_t i = begin; i < end; ++i) {
                loop();
            }
        });
    });
    return static_cast<double>(n * kPeakRounds * kPeakChains) * ops_per_instruction / s * 1e-9;
}
#endif

/// Reads n words (a multiple of 32) as fast as plain vector code can.
uint64_t readAll(const uint64_t* words, size_t n) {
    using Vector __attribute__((vector_size(16))) = uint64_t;
    Vector sums[4] = {};
    const Vector* vectors = reinterpret_cast<const Vector*>(words);
    for (size_t i = 0; i < n / 2; i += 16) {
        for (size_t j = 0; j < 16; j += 4) {
            sums[0] ^= vectors[i + j];
            sums[1] ^= vectors[i + j + 1];
            sums[2] ^= vectors[i + j + 2];
            sums[3] ^= vectors[i + j + 3];
        }
    }
    const Vector sum = sums[0] ^ sums[1] ^ sums[2] ^ sums[3];
    return sum[0] ^ sum[1];
}

/// Bytes a second of a sum over 256 MB.
double readBandwidth(ThreadPool& pool) {
    constexpr size_t kWords = size_t{32} << 20;
    static AlignedBuffer<uint64_t> memory = [] {
        AlignedBuffer<uint64_t> words(kWords);
        std::fill(words.span().begin(), words.span().end(), 1);
        return words;
    }();
    std::vector<uint64_t> sums(pool.threadCount() * 8);
    const double read_s = seconds([&] {
        pool.parallelFor(kWords, 1 << 16, [&](size_t begin, size_t end, size_t worker) {
            sums[worker * 8] ^= readAll(memory.data() + begin, end - begin);
        });
    });
    return static_cast<double>(kWords * 8) / read_s;
}

/// What the machine gives at best: memory, and chains of independent products in registers.
void benchFloors(ThreadPool& pool) {
    fmt::print("  floor: memory read {:.1f} GB/s\n", readBandwidth(pool) * 1e-9);
#if defined(__x86_64__)
    if (tableFor(Isa::Avx512) != nullptr) {
        fmt::print("  floor: VNNI {:.0f} GOP/s, f32 {:.0f} GFLOP/s\n", peak(pool, vnniLoop, 128),
                   peak(pool, fmaLoop, 32));
    }
#endif
}

/// One weight matrix of every layer, packed, so that a pass over them reads memory and not the
/// cache.
struct Weights {
    WeightType type;
    size_t n_rows;
    size_t n_cols;
    std::vector<AlignedBuffer<uint8_t>> layers;

    Weights(const KernelTable& k, WeightType t, size_t rows, size_t cols, size_t n_layers)
        : type(t), n_rows(rows), n_cols(cols) {
        AlignedBuffer<uint8_t> stored(rows * rowBytes(t, cols));
        fillWeights(t, stored.data(), stored.size());
        for (size_t layer = 0; layer < n_layers; ++layer) {
            const size_t n_bytes = k.packed_bytes(t, rows, cols);
            AlignedBuffer<uint8_t> packed(n_bytes > 0 ? n_bytes : stored.size());
            if (n_bytes > 0) {
                k.pack(t, stored.data(), rows, cols, packed.data(), 0, rows);
            } else {
                std::memcpy(packed.data(), stored.data(), stored.size());
            }
            layers.push_back(std::move(packed));
        }
    }

    [[nodiscard]] double bytes() const {
        return static_cast<double>(layers[0].size() * layers.size());
    }
};

void multiply(const KernelTable& k,
              ThreadPool& pool,
              const Weights& w,
              size_t layer,
              const void* activations,
              float* out,
              size_t n_tokens) {
    pool.parallelFor(w.n_rows, kRowTile, [&](size_t begin, size_t end, size_t) {
        k.mat_mul_fast({w.type, w.layers[layer].data(), w.n_rows, w.n_cols, activations, out,
                        w.n_rows, n_tokens, begin, end});
    });
}

/// Every layer's copy of one matrix times n_tokens.
void benchMatrix(const KernelTable& k,
                 ThreadPool& pool,
                 const char* name,
                 WeightType type,
                 size_t n_rows,
                 size_t n_cols,
                 size_t n_layers,
                 size_t n_tokens) {
    const Weights w(k, type, n_rows, n_cols, n_layers);
    AlignedBuffer<float> x(n_tokens * n_cols);
    for (size_t i = 0; i < x.size(); ++i) {
        x[i] = static_cast<float>(i * 7919 % 1000) / 500 - 1;
    }
    AlignedBuffer<uint8_t> activations(k.activation_bytes(type, n_tokens, n_cols));
    AlignedBuffer<float> out(n_tokens * n_rows);
    const auto quantize = [&] {
        pool.parallelFor(n_tokens, 16, [&](size_t begin, size_t end, size_t) {
            k.quantize_activations(type, x.data(), n_cols, n_tokens, n_cols, activations.data(),
                                   begin, end);
        });
    };
    const double quantize_s = seconds(quantize);
    const double s = seconds([&] {
        for (size_t layer = 0; layer < n_layers; ++layer) {
            multiply(k, pool, w, layer, activations.data(), out.data(), n_tokens);
        }
    });
    const double ops = 2.0 * static_cast<double>(n_rows * n_cols * n_layers * n_tokens);
    fmt::print(
        "  {:<22} {:<6} {:>3} tokens: {:9.1f} us a matrix {:8.1f} GB/s {:8.1f} GOP/s; activations "
        "{:6.1f} us\n",
        name, findWeightType(static_cast<uint32_t>(type))->name, n_tokens,
        s * 1e6 / static_cast<double>(n_layers), w.bytes() / s * 1e-9, ops / s * 1e-9,
        quantize_s * 1e6);
}

/// One layer after the other, each with keys and values of its own, so that they come from memory
/// as they do in generation.
void benchAttention(const KernelTable& k,
                    ThreadPool& pool,
                    const Heads& heads,
                    CacheType type,
                    size_t n_tokens,
                    size_t first_pos,
                    bool exact) {
    const size_t n_layers = n_tokens == 1 ? heads.n_layers : 1;
    const size_t n_pages = (first_pos + n_tokens + kPageTokens - 1) / kPageTokens;
    const size_t page_elements = heads.n_kv * kPageTokens * heads.dim;
    const size_t page_bytes = heads.n_kv * kPageTokens * cacheRowBytes(type, heads.dim);
    AlignedBuffer<std::byte> cache(2 * n_layers * n_pages * page_bytes);
    std::vector<float> values(page_elements);
    std::vector<const void*> k_pages;
    std::vector<const void*> v_pages;
    for (size_t page = 0; page < 2 * n_layers * n_pages; ++page) {
        for (size_t i = 0; i < page_elements; ++i) {
            values[i] = static_cast<float>((i + page) * 7919 % 1000) / 500 - 1;
        }
        std::byte* to = cache.data() + page * page_bytes;
        k.to_cache(type, values.data(), to, page_elements);
        (page / n_pages % 2 == 0 ? k_pages : v_pages).push_back(to);
    }
    AlignedBuffer<float> q(n_tokens * heads.n * heads.dim);
    for (size_t i = 0; i < q.size(); ++i) {
        q[i] = static_cast<float>(i * 7907 % 1000) / 500 - 1;
    }
    AlignedBuffer<float> out(q.size());
    const size_t scratch_floats = k.attend_scratch_floats(heads.n, heads.n_kv, heads.dim);
    AlignedBuffer<float> scratch(scratch_floats * pool.threadCount());
    const size_t tile = k.attend_token_tile(n_tokens);
    const size_t n_items = (n_tokens + tile - 1) / tile * heads.n_kv;
    const auto attend = [&](size_t layer) {
        const void* const* keys = k_pages.data() + layer * n_pages;
        const void* const* of_values = v_pages.data() + layer * n_pages;
        pool.parallelFor(n_items, 1, [&](size_t begin, size_t end, size_t worker) {
            k.attend({type, q.data(), heads.n * heads.dim, keys, of_values, out.data(),
                      heads.n * heads.dim, n_tokens, first_pos, heads.n, heads.n_kv, heads.dim,
                      1.0F / std::sqrt(static_cast<float>(heads.dim)), exact,
                      scratch.data() + worker * scratch_floats, begin, end});
        });
    };
    const double memory = n_tokens == 1 ? readBandwidth(pool) : 0.0;
    const double all_s = seconds([&] {
        for (size_t layer = 0; layer < n_layers; ++layer) {
            attend(layer);
        }
    });
    const double s = all_s / static_cast<double>(n_layers);
    const double pairs = static_cast<double>(n_tokens) *
                         (static_cast<double>(first_pos) + static_cast<double>(n_tokens + 1) / 2);
    const double kv_bytes = 2.0 * static_cast<double>((first_pos + n_tokens) * heads.n_kv *
                                                      cacheRowBytes(type, heads.dim));
    fmt::print(
        "  attention {} x {} {:<5} {:<5} {:>3} tokens after {:>5}: {:9.1f} us a layer {:8.1f} GB/s "
        "{:8.1f} GFLOP/s{}\n",
        heads.n, heads.dim, cacheTypeName(type), exact ? "exact" : "fast", n_tokens, first_pos,
        s * 1e6, kv_bytes / s * 1e-9,
        pairs * 4 * static_cast<double>(heads.n * heads.dim) / s * 1e-9,
        memory > 0 ? fmt::format("; memory {:.1f} GB/s", memory * 1e-9) : "");
}

void benchSmall(const KernelTable& k) {
    std::vector<float> a(kFfDim, 0.5F);
    std::vector<float> b(kFfDim, 0.25F);
    std::vector<float> c(kFfDim);
    const auto print = [](const char* name, double s) {
        fmt::print("  {:<34} {:9.2f} us\n", name, s * 1e6 / 1000);
    };
    const auto thousand = [](const auto& work) {
        return seconds([&] {
            for (int i = 0; i < 1000; ++i) {
                work();
            }
        });
    };
    print("rms_norm 576",
          thousand([&] { k.rms_norm(a.data(), kDim, b.data(), c.data(), kDim, 1, kDim, 1e-5F); }));
    print("rope_half_split 9 heads of 64", thousand([&] {
              k.rope_half_split(a.data(), kDim, b.data(), b.data(), 1, kHeads, kHeadDim, 32);
          }));
    print("swiglu 1536", thousand([&] { k.swiglu(a.data(), b.data(), c.data(), kFfDim); }));
    std::vector<float> logits(kVocab, 0.1F);
    logits[kVocab - 2] = 3;
    print("arg_max 49152", seconds([&] { k.arg_max(logits.data(), kVocab); }) * 1000);
}

void benchPool(ThreadPool& pool) {
    std::vector<float> sink(pool.threadCount() * 64);
    const double s = seconds([&] {
        for (int i = 0; i < 1000; ++i) {
            pool.parallelFor(36, 1, [&](size_t begin, size_t, size_t worker) {
                sink[worker * 64] += static_cast<float>(begin);
            });
        }
    });
    fmt::print("  an empty parallelFor               {:9.2f} us\n", s * 1e6 / 1000);
}

/// Whole-model sums of the matrices of one token, the figure that generation is measured by.
void benchModel(const KernelTable& k, ThreadPool& pool, size_t n_tokens) {
    const Weights qkv(k, WeightType::Q4_1, 960, kDim, kLayers);
    const Weights o(k, WeightType::Q4_1, kDim, kDim, kLayers);
    const Weights gate_up(k, WeightType::Q4_1, 2 * kFfDim, kDim, kLayers);
    const Weights down(k, WeightType::Q4_1, kDim, kFfDim, kLayers);
    const Weights head(k, WeightType::Q8_0, kVocab, kDim, 1);
    AlignedBuffer<float> x(n_tokens * kFfDim);
    std::fill(x.span().begin(), x.span().end(), 0.5F);
    AlignedBuffer<uint8_t> activations(k.activation_bytes(WeightType::Q4_1, n_tokens, kFfDim));
    AlignedBuffer<float> out(std::max(n_tokens * 2 * kFfDim, kVocab));
    const auto one = [&](const Weights& w, size_t layer, size_t tokens) {
        pool.parallelFor(tokens, 16, [&](size_t begin, size_t end, size_t) {
            k.quantize_activations(w.type, x.data(), w.n_cols, tokens, w.n_cols, activations.data(),
                                   begin, end);
        });
        multiply(k, pool, w, layer, activations.data(), out.data(), tokens);
    };
    const double s = seconds([&] {
        for (size_t layer = 0; layer < kLayers; ++layer) {
            one(qkv, layer, n_tokens);
            one(o, layer, n_tokens);
            one(gate_up, layer, n_tokens);
            one(down, layer, n_tokens);
        }
        one(head, 0, 1);
    });
    fmt::print("  all matrices of SmolLM2-135M, {:>3} tokens: {:8.2f} ms, {:8.1f} tokens/s\n",
               n_tokens, s * 1e3, static_cast<double>(n_tokens) / s);
}

void benchMatrices(const KernelTable& k, ThreadPool& pool) {
    benchModel(k, pool, 1);
    benchModel(k, pool, kPrompt);
    for (const size_t n_tokens : {size_t{1}, kPrompt}) {
        benchMatrix(k, pool, "qkv 960x576", WeightType::Q4_1, 960, kDim, kLayers, n_tokens);
        benchMatrix(k, pool, "gate+up 3072x576", WeightType::Q4_1, 2 * kFfDim, kDim, kLayers,
                    n_tokens);
        benchMatrix(k, pool, "down 576x1536", WeightType::Q4_1, kDim, kFfDim, kLayers, n_tokens);
        for (const WeightTypeInfo& info : kWeightTypes) {
            benchMatrix(k, pool, "1536x1536", info.type, kFfDim, kFfDim,
                        info.block_bytes > 2 ? 24 : 8, n_tokens == 1 ? 1 : 128);
        }
    }
    benchMatrix(k, pool, "head 49152x576", WeightType::Q8_0, kVocab, kDim, 1, 1);
}

void benchAttentions(const KernelTable& k, ThreadPool& pool) {
    const Heads smol = {kHeads, kKvHeads, kHeadDim, kLayers};
    const Heads m3 = {32, 4, 128, 2};
    for (const CacheTypeInfo& info : kCacheTypes) {
        benchAttention(generationTable(k), pool, smol, info.type, 1, 4096, false);
        benchAttention(generationTable(k), pool, m3, info.type, 1, 65536, false);
    }
    benchAttention(k, pool, smol, CacheType::F16, kPrompt, 0, false);
    benchAttention(k, pool, smol, CacheType::F16, kPrompt, 4096, false);
    benchAttention(k, pool, smol, CacheType::F16, kPrompt, 0, true);
}

/// `only`: empty for all.
void run(const KernelTable& k, size_t n_threads, std::string_view only) {
    ThreadPool pool(n_threads);
    pool.setBusy(true);
    fmt::print("{} threads, {}\n", n_threads, k.description);
    benchFloors(pool);
    benchPool(pool);
    benchSmall(k);
    if (only != "attention") {
        benchMatrices(k, pool);
    }
    if (only != "matrices") {
        benchAttentions(k, pool);
    }
}

}  // namespace
}  // namespace belvedere::kernels

int main(int argc, char** argv) {
    using namespace belvedere;
    const Result<kernels::Isa> isa = kernels::chosenIsa();
    if (!isa) {
        fmt::print(stderr, "kernels_bench: {}\n", isa.error().message);
        return 2;
    }
    const kernels::CpuInfo cpu = kernels::cpuInfo();
    fmt::print("{} ({} cores; {})\n", cpu.brand, cpu.n_cores, cpu.features);
    if (argc > 1) {
        const long n = std::strtol(argv[1], nullptr, 10);
        if (n < 1 || n > 1024) {
            fmt::print(stderr, "kernels_bench: threads must be 1 to 1024\n");
            return 2;
        }
        kernels::run(kernels::active(), static_cast<size_t>(n), argc > 2 ? argv[2] : "");
        return 0;
    }
    kernels::run(kernels::active(), 1, "");
    kernels::run(kernels::active(), cpu.n_cores, "");
    return 0;
}
