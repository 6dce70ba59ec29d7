// SPDX-License-Identifier: Apache-2.0
#pragma once

// The products of tiles.h in plain loops. Everything has internal linkage.

#include "kernels/amx/tiles.h"

namespace belvedere::kernels::amx {
namespace {

/// Element i of a tile of bf16.
inline float element(const uint8_t* tile, size_t i) {
    const uint32_t bits = static_cast<uint32_t>(tile[2 * i] | tile[2 * i + 1] << 8) << 16;
    float value;
    __builtin_memcpy(&value, &bits, 4);
    return value;
}

inline void finishStores(const void* /*memory*/) {}

class SquareTiles {
  public:
    explicit SquareTiles(size_t n_tokens) : n_tokens_(n_tokens) {}

    void zero() { __builtin_memset(sums_, 0, sizeof(sums_)); }

    void load(const Corner (&sums)[2][2]) {
        for (size_t tile = 0; tile < 4; ++tile) {
            const Corner& corner = sums[tile / 2][tile % 2];
            for (size_t t = 0; t < n_tokens_; ++t) {
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
            for (size_t t = 0; t < n_tokens_; ++t) {
                __builtin_memcpy(corner.at + t * corner.stride, sums_[tile][t], 64);
            }
        }
    }

  private:
    void multiply(const uint8_t* rows, size_t j) {
        for (size_t i = 0; i < 2; ++i) {
            for (size_t t = 0; t < n_tokens_; ++t) {
                for (size_t r = 0; r < 16; ++r) {
                    for (size_t col = 0; col < kTileCols; ++col) {
                        sums_[2 * i + j][t][r] += element(tokens_[i], t * 32 + col) *
                                                  element(rows, (col / 2 * 16 + r) * 2 + col % 2);
                    }
                }
            }
        }
    }

    size_t n_tokens_;
    const uint8_t* tokens_[2] = {};
    float sums_[4][16][16] = {};
};

class ColumnTiles {
  public:
    void zero() { __builtin_memset(sums_, 0, sizeof(sums_)); }

    void load(const float* sums, size_t n) { __builtin_memcpy(sums_, sums, n * sizeof(sums_[0])); }

    void multiply(const uint8_t* lines, size_t step_bytes, const uint8_t* columns, size_t n) {
        for (size_t i = 0; i < n; ++i) {
            for (size_t l = 0; l < 16; ++l) {
                const uint8_t* line = lines + i * step_bytes + l * 64;
                for (size_t c = 0; c < 16; ++c) {
                    for (size_t k = 0; k < kTileCols; ++k) {
                        sums_[i][l][c] +=
                            element(line, k) * element(columns, (k / 2 * 16 + c) * 2 + k % 2);
                    }
                }
            }
        }
    }

    void store(float* sums, size_t n) { __builtin_memcpy(sums, sums_, n * sizeof(sums_[0])); }

  private:
    float sums_[4][16][16] = {};
};

}  // namespace
}  // namespace belvedere::kernels::amx
