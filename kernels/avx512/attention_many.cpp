// SPDX-License-Identifier: Apache-2.0
// Attention of prompts in bf16 with AVX512_BF16: the tiles of attention_columns.h multiplied in
// registers. For CPUs whose bf16 products are as many a cycle as those of f32.

#include "kernels/avx512/attention_columns.h"
#include "kernels/avx512/avx512_kernels.h"

namespace belvedere::kernels::avx512 {
namespace {

/// Sums of a tile of lines stay in registers; a pair of elements of a line goes to all columns.
class RegisterProducts {
  public:
    void multiply(const uint8_t* lines,
                  const uint8_t* column_tiles,
                  size_t n_steps,
                  float* sums,
                  size_t n,
                  bool add) {
        for (size_t tile = 0; tile < n; ++tile) {
            multiplyTiles(lines + tile * n_steps * columns::kTileBytes, column_tiles, n_steps,
                          sums + tile * kLines * columns::kLanes, add);
        }
    }

  private:
    static constexpr size_t kLines = 16;

    static void multiplyTiles(
        const uint8_t* lines, const uint8_t* column_tiles, size_t n_steps, float* sums, bool add) {
        __m512 acc[kLines];
#pragma GCC unroll 16
        for (size_t l = 0; l < kLines; ++l) {
            acc[l] = add ? _mm512_load_ps(sums + l * 16) : _mm512_setzero_ps();
        }
        for (size_t p = 0; p < n_steps * 16; ++p) {
            const __m512i column = _mm512_load_si512(column_tiles + p * columns::kLineBytes);
            const auto* pairs = reinterpret_cast<const int32_t*>(
                lines + p / 16 * columns::kTileBytes + p % 16 * sizeof(int32_t));
#pragma GCC unroll 16
            for (size_t l = 0; l < kLines; ++l) {
                const __m512i pair = _mm512_set1_epi32(pairs[l * 16]);
                acc[l] = _mm512_dpbf16_ps(acc[l], reinterpret_cast<const __m512bh&>(pair),
                                          reinterpret_cast<const __m512bh&>(column));
            }
        }
#pragma GCC unroll 16
        for (size_t l = 0; l < kLines; ++l) {
            _mm512_store_ps(sums + l * 16, acc[l]);
        }
    }
};

}  // namespace

size_t attendManyScratchFloats(size_t n_heads, size_t n_kv_heads, size_t head_dim) noexcept {
    return columns::scratchFloats(n_heads, n_kv_heads, head_dim);
}

void attendManyTokens(const Attend& args) noexcept {
    columns::attend<RegisterProducts>(args);
}

}  // namespace belvedere::kernels::avx512
