// SPDX-License-Identifier: Apache-2.0
// Matrix products by the definition: each weight decoded, each sum in f64.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/scalar/float_formats.h"
#include "kernels/scalar/scalar_kernels.h"

namespace belvedere::kernels::scalar {
namespace {

/// Columns decoded at a time: the largest block.
constexpr size_t kChunk = 256;
/// Columns that share one activation scale.
constexpr size_t kActivationBlock = 32;

/// What quantizeActivations writes for 32 columns of one token: x = scale q. Float weights keep f32
/// activations instead.
struct ActivationBlock {
    float scale;
    int8_t q[kActivationBlock];
};

bool isFloat(WeightType type) {
    return type == WeightType::F32 || type == WeightType::F16 || type == WeightType::BF16 ||
           type == WeightType::MXFP8;
}

/// sum_i W[row, i] * x(i), x a function of the column.
template <class X>
double dotRow(WeightType type, const void* w, size_t n_cols, size_t row, X x) {
    float decoded[kChunk];
    double sum = 0;
    for (size_t begin = 0; begin < n_cols; begin += kChunk) {
        const size_t n = std::min(kChunk, n_cols - begin);
        dequantize(type, weightAt(type, w, n_cols, row, begin), decoded, n);
        for (size_t i = 0; i < n; ++i) {
            sum += static_cast<double>(decoded[i]) * x(begin + i);
        }
    }
    return sum;
}

ActivationBlock quantizeBlock(const float* x) {
    ActivationBlock block{};
    float largest = 0;
    bool finite = true;
    for (size_t i = 0; i < kActivationBlock; ++i) {
        largest = std::max(largest, std::fabs(x[i]));
        finite = finite && std::isfinite(x[i]);
    }
    block.scale = finite ? largest / 127.0F : std::nanf("");
    const float inverse = finite && largest > 0 ? 127.0F / largest : 0.0F;
    for (size_t i = 0; i < kActivationBlock; ++i) {
        // 127 / largest overflows for a subnormal `largest`: such a block counts as zero.
        const float scaled = std::isfinite(inverse) && finite ? x[i] * inverse : 0.0F;
        block.q[i] = static_cast<int8_t>(std::nearbyint(scaled));
    }
    return block;
}

}  // namespace

const void* weightAt(
    WeightType type, const void* w, size_t n_cols, size_t row, size_t col) noexcept {
    return static_cast<const uint8_t*>(w) + row * rowBytes(type, n_cols) + rowBytes(type, col);
}

void matMulF32(const MatMulF32& args) noexcept {
    for (size_t row = args.row_begin; row < args.row_end; ++row) {
        for (size_t t = 0; t < args.n_tokens; ++t) {
            const float* x = args.x + t * args.x_stride;
            const double sum = dotRow(args.type, args.w, args.n_cols, row,
                                      [x](size_t i) { return static_cast<double>(x[i]); });
            float& out = args.out[t * args.out_stride + row];
            out = static_cast<float>(args.accumulate ? static_cast<double>(out) + sum : sum);
        }
    }
}

size_t packedBytes(WeightType /*type*/, size_t /*n_rows*/, size_t /*n_cols*/) noexcept {
    return 0;
}

void pack(WeightType /*type*/,
          const void* /*w*/,
          size_t /*n_rows*/,
          size_t /*n_cols*/,
          void* /*packed*/,
          size_t /*row_begin*/,
          size_t /*row_end*/) noexcept {}

size_t activationBytes(WeightType type, size_t n_tokens, size_t n_cols) noexcept {
    return isFloat(type) ? n_tokens * n_cols * sizeof(float)
                         : n_tokens * (n_cols / kActivationBlock) * sizeof(ActivationBlock);
}

bool sameActivations(WeightType a, WeightType b) noexcept {
    return isFloat(a) == isFloat(b);
}

void quantizeActivations(WeightType type,
                         const float* x,
                         size_t x_stride,
                         size_t /*n_tokens*/,
                         size_t n_cols,
                         void* activations,
                         size_t token_begin,
                         size_t token_end) noexcept {
    for (size_t t = token_begin; t < token_end; ++t) {
        const float* row = x + t * x_stride;
        if (isFloat(type)) {
            std::memcpy(static_cast<float*>(activations) + t * n_cols, row, n_cols * sizeof(float));
            continue;
        }
        const size_t n_blocks = n_cols / kActivationBlock;
        ActivationBlock* blocks = static_cast<ActivationBlock*>(activations) + t * n_blocks;
        for (size_t b = 0; b < n_blocks; ++b) {
            blocks[b] = quantizeBlock(row + b * kActivationBlock);
        }
    }
}

void matMulFast(const MatMulFast& args) noexcept {
    const size_t n_blocks = args.n_cols / kActivationBlock;
    for (size_t row = args.row_begin; row < args.row_end; ++row) {
        for (size_t t = 0; t < args.n_tokens; ++t) {
            const float* x = static_cast<const float*>(args.activations) + t * args.n_cols;
            const ActivationBlock* blocks =
                static_cast<const ActivationBlock*>(args.activations) + t * n_blocks;
            const bool is_float = isFloat(args.type);
            const auto at = [=](size_t i) {
                const ActivationBlock& block = blocks[i / kActivationBlock];
                return is_float ? static_cast<double>(x[i])
                                : static_cast<double>(block.scale) * block.q[i % kActivationBlock];
            };
            args.out[t * args.out_stride + row] =
                static_cast<float>(dotRow(args.type, args.packed, args.n_cols, row, at));
        }
    }
}

}  // namespace belvedere::kernels::scalar
