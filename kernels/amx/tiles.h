// SPDX-License-Identifier: Apache-2.0
#pragma once

// The eight tiles of AMX as two small products of bf16, 32 columns at a time, with sums in f32.
//
//     SquareTiles  sums[i][j] [16, 16]  +=  tokens[i] [16, 32]  times  rows[j]
//     ColumnTiles  sums[i] [16, 16]  +=  lines[i] [16, 32]  times  columns, i < 4
//
// The first factor is row-major; the second holds what is summed over in pairs: [16 pairs][16][2].
// Both are 1,024 bytes. A line's sums depend on no other line of its tile. Tiles belong to a
// thread, and so does their configuration: constructor and destructor stand around their use in
// every call.
//
// With BV_EMULATE_TILES the same in plain loops (tiles_emulated.h), so that everything around them
// is tested on machines without AMX. Everything has internal linkage.

#include <cstddef>
#include <cstdint>

#include <immintrin.h>

#include "kernels/avx512/bf16.h"

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

/// Line p of a tile: what stands at 2p (low) and 2p + 1 of 16 columns.
inline void storePair(uint8_t* tile, size_t p, __m512 low, __m512 high) {
    _mm512_store_si512(tile + 64 * p, avx512::pairsOf(low, high));
}

#ifndef BV_EMULATE_TILES

/// Intel SDM volume 1, 18.2: palette 1.
struct alignas(64) TileConfig {
    uint8_t palette = 1;
    uint8_t start_row = 0;
    uint8_t reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t n_rows[16] = {};

    void set(size_t tile, size_t rows, size_t bytes) {
        n_rows[tile] = static_cast<uint8_t>(rows);
        row_bytes[tile] = static_cast<uint16_t>(bytes);
    }
};

static_assert(sizeof(TileConfig) == 64);

/// Stands before loads of tiles and of their configuration, which do not tell the compiler that
/// they read memory: what they will read is written by then.
inline void finishStores(const void* memory) {
    asm volatile("" : : "r"(memory) : "memory");
}

/// The tiles of a call: 0 to 3 hold sums, 4 to 7 factors.
class ConfiguredTiles {
  public:
    ConfiguredTiles(const ConfiguredTiles&) = delete;
    ConfiguredTiles& operator=(const ConfiguredTiles&) = delete;

    void zero() {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }

  protected:
    /// n_lines: of tiles 0 to 5 that are in use, 1 to 16; the others have all.
    explicit ConfiguredTiles(size_t n_lines) {
        TileConfig config;
        for (size_t tile = 0; tile < 6; ++tile) {
            config.set(tile, n_lines, 64);
        }
        config.set(6, 16, 64);
        config.set(7, 16, 64);
        finishStores(&config);
        _tile_loadconfig(&config);
    }

    ~ConfiguredTiles() { _tile_release(); }
};

class SquareTiles : public ConfiguredTiles {
  public:
    /// n_tokens: lines of a tile of tokens that are in use, 1 to 16.
    explicit SquareTiles(size_t n_tokens) : ConfiguredTiles(n_tokens) {}

    void load(const Corner (&sums)[2][2]) {
        finishStores(sums);
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

class ColumnTiles : public ConfiguredTiles {
  public:
    ColumnTiles() : ConfiguredTiles(16) {}

    /// The first n of sums [4][16][16].
    void load(const float* sums, size_t n) {
        finishStores(sums);
        _tile_loadd(0, sums, 64);
        if (n > 1) {
            _tile_loadd(1, sums + 256, 64);
        }
        if (n > 2) {
            _tile_loadd(2, sums + 512, 64);
        }
        if (n > 3) {
            _tile_loadd(3, sums + 768, 64);
        }
    }

    /// Tiles of lines stand step_bytes apart.
    void multiply(const uint8_t* lines, size_t step_bytes, const uint8_t* columns, size_t n) {
        finishStores(lines);
        _tile_loadd(4, columns, 64);
        _tile_loadd(5, lines, 64);
        _tile_dpbf16ps(0, 5, 4);
        if (n > 1) {
            _tile_loadd(6, lines + step_bytes, 64);
            _tile_dpbf16ps(1, 6, 4);
        }
        if (n > 2) {
            _tile_loadd(7, lines + 2 * step_bytes, 64);
            _tile_dpbf16ps(2, 7, 4);
        }
        if (n > 3) {
            _tile_loadd(5, lines + 3 * step_bytes, 64);
            _tile_dpbf16ps(3, 5, 4);
        }
    }

    void store(float* sums, size_t n) {
        _tile_stored(0, sums, 64);
        if (n > 1) {
            _tile_stored(1, sums + 256, 64);
        }
        if (n > 2) {
            _tile_stored(2, sums + 512, 64);
        }
        if (n > 3) {
            _tile_stored(3, sums + 768, 64);
        }
    }
};

#endif

}  // namespace
}  // namespace belvedere::kernels::amx

#ifdef BV_EMULATE_TILES
#include "kernels/amx/tiles_emulated.h"
#endif
