// SPDX-License-Identifier: Apache-2.0
#pragma once

// The AVX-512 kernels, one function per field of KernelTable; shapes and formulas are documented
// there. Need F, BW, VL, DQ and VNNI. Any thread.

#include <cstddef>

#include "kernels/table.h"

namespace belvedere::kernels::avx512 {

void matMulF32(const MatMulF32& args) noexcept;
void quantizeActivations(WeightType type,
                         const float* x,
                         size_t x_stride,
                         size_t n_tokens,
                         size_t n_cols,
                         void* activations,
                         size_t token_begin,
                         size_t token_end) noexcept;
void matMulFast(const MatMulFast& args) noexcept;
/// The part of matMulFast for F32, F16 and BF16 weights.
void matMulFloat(const MatMulFast& args) noexcept;

// Those of prompts with BF16 weights in bf16, else as above. Need BF16.
size_t activationBytesBFloat(WeightType type, size_t n_tokens, size_t n_cols) noexcept;
bool sameActivationsBFloat(WeightType a, WeightType b) noexcept;
void quantizeActivationsBFloat(WeightType type,
                               const float* x,
                               size_t x_stride,
                               size_t n_tokens,
                               size_t n_cols,
                               void* activations,
                               size_t token_begin,
                               size_t token_end) noexcept;
void matMulFastBFloat(const MatMulFast& args) noexcept;

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
/// The fast way in bf16. Needs BF16 too.
void attendManyTokens(const Attend& args) noexcept;
size_t attendManyScratchFloats(size_t n_heads, size_t n_kv_heads, size_t head_dim) noexcept;
/// Few tokens in bf16 where that is faster (attention_few.cpp says where). Need BF16 too.
void attendFewTokens(const Attend& args) noexcept;
size_t attendFewScratchFloats(size_t n_heads, size_t n_kv_heads, size_t head_dim) noexcept;
size_t scoreScratchFloats(size_t n_heads, size_t head_dim) noexcept;
void scoreBlocks(const ScoreBlocks& args) noexcept;
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

}  // namespace belvedere::kernels::avx512
