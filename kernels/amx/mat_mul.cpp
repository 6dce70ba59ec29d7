// SPDX-License-Identifier: Apache-2.0
// mat_mul_fast with tiles: weights become bf16 tiles once for all tokens of a call, activations are
// bf16 tiles already, sums are f32. A token's bits do not depend on the batch it came in. F32 and
// F16 weights, from which bf16 would take bits, go the way of AVX-512.
//
// Tiles of bytes would give the bits of AVX-512's vpdpbusd, but their sums must leave the tile
// after each block of 32 columns to be scaled: 600 GOP/s a thread, 1,500 this way.
//
//     activations = ceil(n_tokens / 16) x ceil(n_cols / 32) x tile [16 tokens][32 columns] bf16,
//     0 where there is no column, and no token where there are more than 16

#include "kernels/amx/amx_kernels.h"
#include "kernels/amx/weight_tiles.h"
#include "kernels/avx512/avx512_kernels.h"

namespace belvedere::kernels::amx {
namespace {

/// Columns whose weight tiles are made at a time, over 32, at most: two rows of tiles and the
/// tokens that pass by share the first-level cache. Sapphire Rapids: 1,500 GFLOP/s a thread up to
/// 9, 520 from 12 on.
constexpr size_t kPanelTiles = 9;

size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

size_t tilesFor(size_t n, size_t size) {
    return (n + size - 1) / size;
}

constexpr bool fitsTiles(WeightType type) {
    return type != WeightType::F32 && type != WeightType::F16;
}

/// Where the sums of one pair of token tiles and one pair of row tiles go. A corner that reaches
/// over the end of the output has memory of its own meanwhile.
class Output {
  public:
    Output(const MatMulFast& args, size_t token, size_t row) {
        for (size_t i = 0; i < 2; ++i) {
            for (size_t j = 0; j < 2; ++j) {
                const size_t t = token + kTileTokens * i;
                const size_t r = row + kTileRows * j;
                Part& part = parts_[i][j];
                part.n_tokens = count(args.n_tokens, t);
                part.n_rows = count(args.row_end, r);
                part.at = args.out + t * args.out_stride + r;
                part.stride = args.out_stride;
                const bool is_whole = part.n_tokens == kTileTokens && part.n_rows == kTileRows;
                corners_[i][j] =
                    is_whole ? Corner{part.at, part.stride} : Corner{part.spare, kTileRows};
            }
        }
    }

    /// What stands in the output so far into the spare corners.
    void fetch() {
        copy([](float* spare, float* out) { *spare = *out; });
    }

    void put() {
        copy([](float* spare, float* out) { *out = *spare; });
    }

    const Corner (&corners() const)[2][2] { return corners_; }

  private:
    struct Part {
        size_t n_tokens = 0;
        size_t n_rows = 0;
        float* at = nullptr;
        size_t stride = 0;
        alignas(64) float spare[kTileTokens * kTileRows];  ///< written before it is read
    };

    static size_t count(size_t end, size_t begin) {
        return begin < end ? smaller(16, end - begin) : 0;
    }

    template <class Move>
    void copy(Move move) {
        for (size_t corner = 0; corner < 4; ++corner) {
            Part& part = parts_[corner / 2][corner % 2];
            if (corners_[corner / 2][corner % 2].at != part.spare) {
                continue;
            }
            for (size_t t = 0; t < part.n_tokens; ++t) {
                for (size_t r = 0; r < part.n_rows; ++r) {
                    move(&part.spare[t * kTileRows + r], &part.at[t * part.stride + r]);
                }
            }
        }
    }

    Part parts_[2][2];
    Corner corners_[2][2] = {};
};

/// One or two row tiles times all tokens, over the columns of one panel.
void multiplyPanel(const MatMulFast& args,
                   size_t row,
                   size_t first_tile,
                   size_t n_tiles,
                   const uint8_t (*weights)[kPanelTiles][kTileBytes],
                   SquareTiles& tiles) {
    const bool has_second = row + kTileRows < args.row_end;
    const size_t n_col_tiles = tilesFor(args.n_cols, kTileCols);
    const size_t n_token_tiles = tilesFor(args.n_tokens, kTileTokens);
    const auto* activations = static_cast<const uint8_t*>(args.activations);
    for (size_t token_tile = 0; token_tile < n_token_tiles; token_tile += 2) {
        // Without a second tile the first counts twice, into memory that nobody reads.
        const size_t second = smaller(token_tile + 1, n_token_tiles - 1);
        const uint8_t* tokens[2] = {
            activations + (token_tile * n_col_tiles + first_tile) * kTileBytes,
            activations + (second * n_col_tiles + first_tile) * kTileBytes};
        Output output(args, token_tile * kTileTokens, row);
        if (first_tile == 0) {
            tiles.zero();
        } else {
            output.fetch();
            tiles.load(output.corners());
        }
        for (size_t i = 0; i < n_tiles; ++i) {
            const uint8_t* const at[2] = {tokens[0] + i * kTileBytes, tokens[1] + i * kTileBytes};
            tiles.multiplyFirst(at, weights[0][i]);
            if (has_second) {
                tiles.multiplySecond(weights[1][i]);
            }
        }
        tiles.store(output.corners());
        output.put();
    }
}

template <WeightType kType>
void multiply(const MatMulFast& args) {
    SquareTiles tiles(smaller(args.n_tokens, kTileTokens));
    alignas(64) uint8_t weights[2][kPanelTiles][kTileBytes];
    const size_t tile_bytes = packedTileBytes(kType, args.n_cols);
    const size_t n_col_tiles = tilesFor(args.n_cols, kTileCols);
    const size_t panel = tilesFor(n_col_tiles, tilesFor(n_col_tiles, kPanelTiles));
    for (size_t row = args.row_begin; row < args.row_end; row += 2 * kTileRows) {
        const uint8_t* packed =
            static_cast<const uint8_t*>(args.packed) + row / kTileRows * tile_bytes;
        const bool has_second = row + kTileRows < args.row_end;
        for (size_t first = 0; first < n_col_tiles; first += panel) {
            const size_t n_tiles = smaller(panel, n_col_tiles - first);
            for (size_t i = 0; i < n_tiles; ++i) {
                makeTile<kType>(packed, args.n_cols, first + i, weights[0][i]);
                if (has_second) {
                    makeTile<kType>(packed + tile_bytes, args.n_cols, first + i, weights[1][i]);
                }
            }
            finishStores(weights);
            multiplyPanel(args, row, first, n_tiles, weights, tiles);
        }
    }
}

}  // namespace

size_t activationBytes(WeightType type, size_t n_tokens, size_t n_cols) noexcept {
    if (!fitsTiles(type)) {
        return packedActivationBytes(type, n_tokens, n_cols);
    }
    return tilesFor(n_tokens, kTileTokens) * tilesFor(n_cols, kTileCols) * kTileBytes;
}

bool sameActivations(WeightType a, WeightType b) noexcept {
    // Without tiles there are F32 and F16, whose activations are f32.
    return fitsTiles(a) == fitsTiles(b);
}

void quantizeActivations(WeightType type,
                         const float* x,
                         size_t x_stride,
                         size_t n_tokens,
                         size_t n_cols,
                         void* activations,
                         size_t token_begin,
                         size_t token_end) noexcept {
    if (!fitsTiles(type)) {
        return avx512::quantizeActivations(type, x, x_stride, n_tokens, n_cols, activations,
                                           token_begin, token_end);
    }
    const size_t n_col_tiles = tilesFor(n_cols, kTileCols);
    // The last of many tokens bring along the lines behind them; few leave these unused.
    const bool fills = token_end == n_tokens && n_tokens > kTileTokens;
    const size_t end = fills ? tilesFor(n_tokens, kTileTokens) * kTileTokens : token_end;
    for (size_t token = token_begin; token < end; ++token) {
        const size_t tile = token / kTileTokens * n_col_tiles;
        for (size_t i = 0; i < n_col_tiles; ++i) {
            uint8_t* line = static_cast<uint8_t*>(activations) + (tile + i) * kTileBytes +
                            token % kTileTokens * 64;
            const size_t n_left = token < n_tokens ? n_cols - i * kTileCols : 0;
            const auto mask = static_cast<__mmask32>(n_left >= 32 ? ~0U : (1U << n_left) - 1U);
            const float* from = n_left > 0 ? x + token * x_stride + i * kTileCols : x;
            const __m512 low = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), from);
            const __m512 high =
                _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> 16), from + 16);
            const __m512bh both = _mm512_cvtne2ps_pbh(high, low);
            _mm512_storeu_si512(line, reinterpret_cast<const __m512i&>(both));
        }
    }
}

void matMulFast(const MatMulFast& args) noexcept {
    if (!fitsTiles(args.type)) {
        return avx512::matMulFast(args);
    }
    withWeightType(args.type, [&args](auto tag) {
        constexpr WeightType kType = decltype(tag)::kType;
        if constexpr (fitsTiles(kType)) {
            multiply<kType>(args);
        }
    });
}

}  // namespace belvedere::kernels::amx
