// SPDX-License-Identifier: Apache-2.0
#pragma once

// The eight tiles of AMX as one small product: two tiles of 16 tokens times two of 16 rows, 32
// columns at a time.
//
//     sums[i][j] [16 tokens, 16 rows] f32  +=  tokens[i] [16, 32] bf16  times  rows[j]
//
// A tile of tokens is row-major; a tile of rows holds columns in pairs: [16 pairs][16 rows][2].
// Both are 1,024 bytes. With BV_EMULATE_TILES the same in plain loops, so that everything around
// them is tested on machines without AMX. Everything has internal linkage.

#include <cstddef>
#include <cstdint>

#include <immintrin.h>

namespace belvedere::kernels::amx {
namespace {

constexpr size_t kTileTokens = 16;
constexpr size_t kTileCols = 32;
constexpr size_t kTileBytes = 1024;

/// A corner of 16 x 16 sums in memory; the stride is in floats.
struct Corner {
    float* at;
    size_t stride;
};

#ifndef BV_EMULATE_TILES

/// Tiles belong to a thread, and so does their configuration: begin() and end() stand around their
/// use in every call.
class Tiles {
  public:
    Tiles() {
        // Intel SDM volume 1, 18.2: palette 1; each tile 16 rows of 64 bytes.
        struct alignas(64) {
            uint8_t palette = 1;
            uint8_t start_row = 0;
            uint8_t reserved[14] = {};
            uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
            uint8_t n_rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
        } config;

        static_assert(sizeof(config) == 64);
        _tile_loadconfig(&config);
    }

    ~Tiles() { _tile_release(); }

    Tiles(const Tiles&) = delete;
    Tiles& operator=(const Tiles&) = delete;

    void zero() {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }

    void load(const Corner (&sums)[2][2]) {
        _tile_loadd(0, sums[0][0].at, sums[0][0].stride * sizeof(float));
        _tile_loadd(1, sums[0][1].at, sums[0][1].stride * sizeof(float));
        _tile_loadd(2, sums[1][0].at, sums[1][0].stride * sizeof(float));
        _tile_loadd(3, sums[1][1].at, sums[1][1].stride * sizeof(float));
    }

    /// Both tiles of tokens times the first of rows.
    void multiplyFirst(const uint8_t* const (&tokens)[2], const uint8_t* rows) {
        _tile_loadd(4, tokens[0], 64);
        _tile_loadd(6, rows, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(5, tokens[1], 64);
        _tile_dpbf16ps(2, 5, 6);
    }

    /// The same tokens times the second.
    void multiplySecond(const uint8_t* rows) {
        _tile_loadd(7, rows, 64);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(3, 5, 7);
    }

    void store(const Corner (&sums)[2][2]) {
        _tile_stored(0, sums[0][0].at, sums[0][0].stride * sizeof(float));
        _tile_stored(1, sums[0][1].at, sums[0][1].stride * sizeof(float));
        _tile_stored(2, sums[1][0].at, sums[1][0].stride * sizeof(float));
        _tile_stored(3, sums[1][1].at, sums[1][1].stride * sizeof(float));
    }
};

#else

class Tiles {
  public:
    void zero() { __builtin_memset(sums_, 0, sizeof(sums_)); }

    void load(const Corner (&sums)[2][2]) {
        for (size_t tile = 0; tile < 4; ++tile) {
            const Corner& corner = sums[tile / 2][tile % 2];
            for (size_t t = 0; t < 16; ++t) {
                __builtin_memcpy(sums_[tile][t], corner.at + t * corner.stride, 64);
            }
        }
    }

    void multiplyFirst(const uint8_t* const (&tokens)[2], const uint8_t* rows) {
        tokens_[0] = tokens[0];
        tokens_[1] = tokens[1];
        multiply(rows, 0);
    }

    void multiplySecond(const uint8_t* rows) { multiply(rows, 1); }

    void store(const Corner (&sums)[2][2]) {
        for (size_t tile = 0; tile < 4; ++tile) {
            const Corner& corner = sums[tile / 2][tile % 2];
            for (size_t t = 0; t < 16; ++t) {
                __builtin_memcpy(corner.at + t * corner.stride, sums_[tile][t], 64);
            }
        }
    }

  private:
    void multiply(const uint8_t* rows, size_t j) {
        for (size_t i = 0; i < 2; ++i) {
            for (size_t t = 0; t < 16; ++t) {
                for (size_t r = 0; r < 16; ++r) {
                    for (size_t col = 0; col < kTileCols; ++col) {
                        sums_[2 * i + j][t][r] += element(tokens_[i], t * 32 + col) *
                                                  element(rows, (col / 2 * 16 + r) * 2 + col % 2);
                    }
                }
            }
        }
    }

    static float element(const uint8_t* tile, size_t i) {
        const uint32_t bits = static_cast<uint32_t>(tile[2 * i] | tile[2 * i + 1] << 8) << 16;
        float value;
        __builtin_memcpy(&value, &bits, 4);
        return value;
    }

    const uint8_t* tokens_[2] = {};
    float sums_[4][16][16] = {};
};

#endif

}  // namespace
}  // namespace belvedere::kernels::amx
