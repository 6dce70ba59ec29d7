// SPDX-License-Identifier: Apache-2.0
#pragma once

// The scalar kernels, one function per field of KernelTable; shapes and formulas are documented
// there. They define correct: plain loops, sums in f64. Faster tables reuse those whose speed does
// not matter. Any thread.

#include <cstddef>

#include "kernels/table.h"

namespace belvedere::kernels::scalar {

void dequantize(WeightType type, const void* src, float* dst, size_t n) noexcept;

/// Where the block that begins with column `col` of a row stands.
const void* weightAt(
    WeightType type, const void* w, size_t n_cols, size_t row, size_t col) noexcept;

void matMulF32(const MatMulF32& args) noexcept;

size_t packedBytes(WeightType type, size_t n_rows, size_t n_cols) noexcept;
void pack(WeightType type,
          const void* w,
          size_t n_rows,
          size_t n_cols,
          void* packed,
          size_t row_begin,
          size_t row_end) noexcept;
size_t activationBytes(WeightType type, size_t n_tokens, size_t n_cols) noexcept;
bool sameActivations(WeightType a, WeightType b) noexcept;
void quantizeActivations(WeightType type,
                         const float* x,
                         size_t x_stride,
                         size_t n_tokens,
                         size_t n_cols,
                         void* activations,
                         size_t token_begin,
                         size_t token_end) noexcept;
void matMulFast(const MatMulFast& args) noexcept;

void rmsNorm(const float* x,
             size_t x_stride,
             const float* weight,
             float* out,
             size_t out_stride,
             size_t n_tokens,
             size_t dim,
             float eps) noexcept;
void ropeAdjacent(float* x,
                  size_t stride,
                  const float* cos,
                  const float* sin,
                  size_t n_tokens,
                  size_t n_heads,
                  size_t head_dim,
                  size_t n_pairs) noexcept;
void ropeHalfSplit(float* x,
                   size_t stride,
                   const float* cos,
                   const float* sin,
                   size_t n_tokens,
                   size_t n_heads,
                   size_t head_dim,
                   size_t n_pairs) noexcept;
void swiglu(const float* gate, const float* up, float* out, size_t n) noexcept;
void swigluOai(
    const float* gate, const float* up, float* out, size_t n, float alpha, float limit) noexcept;
void add(float* dst, const float* src, size_t n) noexcept;
void toCache(CacheType type, const float* src, void* dst, size_t n) noexcept;

size_t attendTokenTile(size_t n_tokens) noexcept;
size_t attendScratchFloats(size_t n_heads, size_t n_kv_heads, size_t head_dim) noexcept;
void attend(const Attend& args) noexcept;
void mergeAttend(const Attend& args, size_t row_begin, size_t row_end) noexcept;
size_t scoreScratchFloats(size_t n_heads, size_t head_dim) noexcept;
void scoreBlocks(const ScoreBlocks& args) noexcept;
void selectBlocks(const SelectBlocks& args) noexcept;

size_t argMax(const float* x, size_t n) noexcept;

void layerNorm(const float* x,
               size_t x_stride,
               const float* weight,
               const float* bias,
               float* out,
               size_t out_stride,
               size_t n_tokens,
               size_t dim,
               float eps) noexcept;
void gelu(const float* x, float* out, size_t n) noexcept;

}  // namespace belvedere::kernels::scalar
