// SPDX-License-Identifier: Apache-2.0
// Norm, rotary embedding, SwiGLU, addition, conversion for the cache, arg max. Formulas and shapes:
// kernels/table.h.

#include <cmath>
#include <cstring>

#include "kernels/scalar/float_formats.h"
#include "kernels/scalar/scalar_kernels.h"

namespace belvedere::kernels::scalar {
namespace {

/// (a, b) -> (a cos - b sin, b cos + a sin), each rounded once.
void rotate(float& a, float& b, float cos, float sin) {
    const double x = static_cast<double>(a);
    const double y = static_cast<double>(b);
    const double c = static_cast<double>(cos);
    const double s = static_cast<double>(sin);
    a = static_cast<float>(x * c - y * s);
    b = static_cast<float>(y * c + x * s);
}

}  // namespace

void rmsNorm(const float* x,
             size_t x_stride,
             const float* weight,
             float* out,
             size_t out_stride,
             size_t n_tokens,
             size_t dim,
             float eps) noexcept {
    for (size_t t = 0; t < n_tokens; ++t) {
        const float* row = x + t * x_stride;
        double squares = 0;
        for (size_t i = 0; i < dim; ++i) {
            squares += static_cast<double>(row[i]) * static_cast<double>(row[i]);
        }
        const double inverse =
            1.0 / std::sqrt(squares / static_cast<double>(dim) + static_cast<double>(eps));
        for (size_t i = 0; i < dim; ++i) {
            out[t * out_stride + i] = static_cast<float>(static_cast<double>(row[i]) * inverse *
                                                         static_cast<double>(weight[i]));
        }
    }
}

void ropeAdjacent(float* x,
                  size_t stride,
                  const float* cos,
                  const float* sin,
                  size_t n_tokens,
                  size_t n_heads,
                  size_t head_dim,
                  size_t n_pairs) noexcept {
    for (size_t t = 0; t < n_tokens; ++t) {
        for (size_t h = 0; h < n_heads; ++h) {
            float* head = x + t * stride + h * head_dim;
            for (size_t i = 0; i < n_pairs; ++i) {
                rotate(head[2 * i], head[2 * i + 1], cos[t * n_pairs + i], sin[t * n_pairs + i]);
            }
        }
    }
}

void ropeHalfSplit(float* x,
                   size_t stride,
                   const float* cos,
                   const float* sin,
                   size_t n_tokens,
                   size_t n_heads,
                   size_t head_dim,
                   size_t n_pairs) noexcept {
    for (size_t t = 0; t < n_tokens; ++t) {
        for (size_t h = 0; h < n_heads; ++h) {
            float* head = x + t * stride + h * head_dim;
            for (size_t i = 0; i < n_pairs; ++i) {
                rotate(head[i], head[i + n_pairs], cos[t * n_pairs + i], sin[t * n_pairs + i]);
            }
        }
    }
}

void swiglu(const float* gate, const float* up, float* out, size_t n) noexcept {
    for (size_t i = 0; i < n; ++i) {
        const auto g = static_cast<double>(gate[i]);
        out[i] = static_cast<float>(g / (1.0 + std::exp(-g)) * static_cast<double>(up[i]));
    }
}

void swigluOai(
    const float* gate, const float* up, float* out, size_t n, float alpha, float limit) noexcept {
    for (size_t i = 0; i < n; ++i) {
        const auto g = static_cast<double>(gate[i] > limit ? limit : gate[i]);
        const auto u = static_cast<double>(up[i] > limit ? limit : up[i] < -limit ? -limit : up[i]);
        const double swish = g / (1.0 + std::exp(-static_cast<double>(alpha) * g));
        out[i] = static_cast<float>((u + 1.0) * swish);
    }
}

void add(float* dst, const float* src, size_t n) noexcept {
    for (size_t i = 0; i < n; ++i) {
        dst[i] += src[i];
    }
}

namespace {

/// x / scale for a scale that is a number; NaN becomes -127.
int8_t toInt8(float x, float inverse) {
    const float scaled = x * inverse;
    const float above = scaled > -127.0F ? scaled : -127.0F;
    return static_cast<int8_t>(std::nearbyint(above < 127.0F ? above : 127.0F));
}

void toQ8Cache(const float* src, uint8_t* dst, size_t n) {
    for (size_t begin = 0; begin < n; begin += kCacheBlock) {
        const size_t end = begin + kCacheBlock < n ? begin + kCacheBlock : n;
        float largest = 0;
        for (size_t i = begin; i < end; ++i) {
            const float magnitude = std::fabs(src[i]);
            largest = magnitude > largest ? magnitude : largest;
        }
        const float step = largest / 127.0F;
        const uint16_t scale = toF16(step < 65504.0F ? step : 65504.0F);
        const float inverse = scale == 0 ? 0.0F : 1.0F / fromF16(scale);
        for (size_t i = begin; i < end; ++i) {
            const int8_t element = toInt8(src[i], inverse);
            std::memcpy(dst + i, &element, 1);
        }
        std::memcpy(dst + cacheScalesBegin(n) + begin / kCacheBlock * 2, &scale, 2);
    }
}

}  // namespace

void toCache(CacheType type, const float* src, void* dst, size_t n) noexcept {
    if (type == CacheType::F32) {
        std::memcpy(dst, src, n * sizeof(float));
        return;
    }
    if (type == CacheType::Q8_0) {
        toQ8Cache(src, static_cast<uint8_t*>(dst), n);
        return;
    }
    auto* halves = static_cast<uint16_t*>(dst);
    for (size_t i = 0; i < n; ++i) {
        halves[i] = type == CacheType::F16 ? toF16(src[i]) : toBf16(src[i]);
    }
}

size_t argMax(const float* x, size_t n) noexcept {
    size_t best = 0;
    for (size_t i = 1; i < n; ++i) {
        if (x[i] > x[best] || std::isnan(x[best])) {
            best = i;
        }
    }
    return std::isnan(x[best]) ? 0 : best;
}

}  // namespace belvedere::kernels::scalar
