// SPDX-License-Identifier: Apache-2.0
// Attention in tiles of bf16: attention_columns.h with the products of AMX. The exact way is
// AVX-512's.

#include "kernels/amx/amx_kernels.h"
#include "kernels/amx/tiles.h"
#include "kernels/avx512/attention_columns.h"

namespace belvedere::kernels::amx {
namespace {

static_assert(avx512::columns::kTileBytes == kTileBytes);

/// Four tiles of lines at a time.
class TileProducts {
  public:
    void multiply(const uint8_t* lines,
                  const uint8_t* columns,
                  size_t n_steps,
                  float* sums,
                  size_t n,
                  bool add) {
        const size_t line_tiles = n_steps * kTileBytes;
        for (size_t first = 0; first < n; first += 4) {
            const size_t n_tiles = n - first < 4 ? n - first : 4;
            float* to = sums + first * 256;
            if (add) {
                tiles_.load(to, n_tiles);
            } else {
                tiles_.zero();
            }
            for (size_t step = 0; step < n_steps; ++step) {
                tiles_.multiply(lines + first * line_tiles + step * kTileBytes, line_tiles,
                                columns + step * kTileBytes, n_tiles);
            }
            tiles_.store(to, n_tiles);
        }
    }

  private:
    ColumnTiles tiles_;
};

}  // namespace

size_t attendScratchFloats(size_t n_heads, size_t n_kv_heads, size_t head_dim) noexcept {
    return avx512::columns::scratchFloats(n_heads, n_kv_heads, head_dim);
}

void attend(const Attend& args) noexcept {
    avx512::columns::attend<TileProducts>(args);
}

}  // namespace belvedere::kernels::amx
