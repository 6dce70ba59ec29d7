// SPDX-License-Identifier: Apache-2.0
#include "inference/vision/resample.h"

#include <algorithm>
#include <cmath>

namespace belvedere::inference {
namespace {

constexpr double kSupport = 2.0;
/// Weights of 16 bits, sign included; at most 22 of them fractions.
constexpr double kMaxWeight = 32767;
constexpr int kMaxFractionBits = 22;

double cubic(double x) {
    constexpr double kA = -0.5;
    x = std::fabs(x);
    if (x < 1.0) {
        return ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1;
    }
    return x < 2.0 ? (((x - 5) * x + 8) * x - 4) * kA : 0.0;
}

/// What one output pixel is made of: weights of input pixels from `first` on.
struct Taps {
    size_t first = 0;
    std::vector<int32_t> weights;
};

/// The taps of each output pixel, and the fractional bits of their weights.
struct Filter {
    std::vector<Taps> taps;
    int n_bits = 0;
};

/// As many fractional bits as the largest weight leaves room for.
int fractionBits(double largest) {
    int n_bits = 0;
    while (n_bits < kMaxFractionBits &&
           std::floor(0.5 + largest * static_cast<double>(2 << n_bits)) <= kMaxWeight) {
        ++n_bits;
    }
    return n_bits;
}

Filter filterFor(size_t n_in, size_t n_out) {
    const double scale = static_cast<double>(n_in) / static_cast<double>(n_out);
    const double widening = std::max(scale, 1.0);
    const double support = kSupport * widening;
    Filter filter;
    filter.taps.resize(n_out);
    std::vector<std::vector<double>> weights(n_out);
    double largest = 0;
    for (size_t i = 0; i < n_out; ++i) {
        const double center = (static_cast<double>(i) + 0.5) * scale;
        const auto first = static_cast<size_t>(std::max(0.0, center - support + 0.5));
        const auto end = std::min(n_in, static_cast<size_t>(std::max(0.0, center + support + 0.5)));
        double sum = 0;
        for (size_t at = first; at < end; ++at) {
            weights[i].push_back(cubic((static_cast<double>(at) - center + 0.5) / widening));
            sum += weights[i].back();
        }
        for (double& weight : weights[i]) {
            weight /= sum;
            largest = std::max(largest, weight);
        }
        filter.taps[i].first = first;
    }
    filter.n_bits = fractionBits(largest);
    for (size_t i = 0; i < n_out; ++i) {
        for (const double weight : weights[i]) {
            filter.taps[i].weights.push_back(static_cast<int32_t>(
                std::lround(weight * static_cast<double>(1 << filter.n_bits))));
        }
    }
    return filter;
}

uint8_t toPixel(int32_t sum, int n_bits) {
    return static_cast<uint8_t>(std::clamp((sum + (1 << (n_bits - 1))) >> n_bits, 0, 255));
}

/// Lines of pixels `step` bytes apart become lines of filter.taps.size() pixels. `line` is the
/// distance of two lines.
struct Axis {
    size_t n_lines;
    size_t in_line, in_step;
    size_t out_line, out_step;
};

void resampleLines(const uint8_t* in, uint8_t* out, const Axis& axis, const Filter& filter) {
    for (size_t line = 0; line < axis.n_lines; ++line) {
        for (size_t i = 0; i < filter.taps.size(); ++i) {
            const uint8_t* from = in + line * axis.in_line + filter.taps[i].first * axis.in_step;
            int32_t sums[3] = {};
            for (const int32_t weight : filter.taps[i].weights) {
                for (size_t channel = 0; channel < 3; ++channel) {
                    sums[channel] += weight * from[channel];
                }
                from += axis.in_step;
            }
            for (size_t channel = 0; channel < 3; ++channel) {
                out[line * axis.out_line + i * axis.out_step + channel] =
                    toPixel(sums[channel], filter.n_bits);
            }
        }
    }
}

}  // namespace

RgbImage resample(const RgbImage& image, ImageSize size) {
    RgbImage rows = image;
    if (image.size.width != size.width) {
        rows.size.width = size.width;
        rows.rgb.resize(size.width * image.size.height * 3);
        resampleLines(image.rgb.data(), rows.rgb.data(),
                      {image.size.height, image.size.width * 3, 3, size.width * 3, 3},
                      filterFor(image.size.width, size.width));
    }
    if (image.size.height == size.height) {
        return rows;
    }
    RgbImage result{size, std::vector<uint8_t>(size.width * size.height * 3)};
    resampleLines(rows.rgb.data(), result.rgb.data(),
                  {size.width, 3, size.width * 3, 3, size.width * 3},
                  filterFor(image.size.height, size.height));
    return result;
}

}  // namespace belvedere::inference
