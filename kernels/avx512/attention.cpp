// SPDX-License-Identifier: Apache-2.0
// Attention and MSA's block scores in tiles (tile_attention.h says how) on this instruction set.
#include "kernels/avx512/attention_tile.h"
#include "kernels/avx512/avx512_kernels.h"

namespace belvedere::kernels::avx512 {

size_t attendTokenTile(size_t n_tokens) noexcept {
    return tileTokens(n_tokens);
}

size_t attendScratchFloats(size_t n_heads, size_t n_kv_heads, size_t head_dim) noexcept {
    return tileScratchFloats(n_heads / n_kv_heads, head_dim);
}

void attend(const Attend& args) noexcept {
    attendTiles<Tile>(args);
}

size_t scoreScratchFloats(size_t n_heads, size_t head_dim) noexcept {
    return scoreTileScratchFloats(n_heads, head_dim);
}

void scoreBlocks(const ScoreBlocks& args) noexcept {
    scoreTiles<Tile>(args);
}

}  // namespace belvedere::kernels::avx512
