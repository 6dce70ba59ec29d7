// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/kernel_test.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <ostream>

#include "kernels/scalar/float_formats.h"

namespace belvedere::kernels {
namespace {

void storeF16(uint8_t* to, float value) {
    const uint16_t half = scalar::toF16(value);
    std::memcpy(to, &half, 2);
}

/// Byte offsets of the binary16 scales in a block.
std::vector<size_t> scaleOffsets(WeightType type) {
    switch (type) {
        case WeightType::Q4_0:
        case WeightType::Q5_0:
        case WeightType::Q8_0:
            return {0};
        case WeightType::Q4_1:
        case WeightType::Q5_1:
        case WeightType::Q4_K:
        case WeightType::Q5_K:
            return {0, 2};
        case WeightType::Q2_K:
            return {80, 82};
        case WeightType::Q3_K:
            return {108};
        case WeightType::Q6_K:
            return {208};
        case WeightType::F32:
        case WeightType::F16:
        case WeightType::BF16:
        case WeightType::MXFP4:
        case WeightType::MXFP8:
            break;
    }
    return {};
}

void fillFloat(WeightType type, uint8_t* to, float value) {
    const uint16_t half = type == WeightType::F16 ? scalar::toF16(value) : scalar::toBf16(value);
    if (type == WeightType::F32) {
        std::memcpy(to, &value, 4);
    } else {
        std::memcpy(to, &half, 2);
    }
}

}  // namespace

void KernelTest::SetUp() {
    table_ = testedTable(GetParam());
    if (table_ == nullptr) {
        GTEST_SKIP() << "this machine cannot run " << isaName(GetParam());
    }
}

std::string isaParamName(const ::testing::TestParamInfo<Isa>& info) {
    return isaName(info.param);
}

uint32_t Random::bits() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<uint32_t>(state_ >> 33) ^ static_cast<uint32_t>(state_ >> 11);
}

float Random::normal() {
    float sum = 0;  // of 12 uniform numbers: mean 6, variance 1
    for (int i = 0; i < 12; ++i) {
        sum += static_cast<float>(bits() >> 8) * 0x1p-24F;
    }
    return sum - 6;
}

std::vector<float> Random::normals(size_t n) {
    std::vector<float> values(n);
    for (float& value : values) {
        value = normal();
    }
    return values;
}

std::vector<uint8_t> makeWeights(WeightType type, size_t n_rows, size_t n_cols, uint64_t seed) {
    const WeightTypeInfo& info = *findWeightType(static_cast<uint32_t>(type));
    Random random(seed);
    std::vector<uint8_t> bytes(n_rows * rowBytes(type, n_cols));
    for (uint8_t& byte : bytes) {
        byte = static_cast<uint8_t>(random.bits());
    }
    for (size_t at = 0; at < bytes.size(); at += info.block_bytes) {
        uint8_t* block = bytes.data() + at;
        if (info.block_elements == 1) {
            fillFloat(type, block, random.normal());
        } else if (type == WeightType::MXFP4) {
            block[0] = static_cast<uint8_t>(122 + random.below(6));
        } else if (type == WeightType::MXFP8) {
            block[0] = static_cast<uint8_t>(116 + random.below(6));
            for (size_t i = 1; i < info.block_bytes; ++i) {
                block[i] = (block[i] & 0x7f) == 0x7f ? 0x7e : block[i];  // not NaN
            }
        }
        for (const size_t offset : scaleOffsets(type)) {
            storeF16(block + offset, 0.02F * random.normal());
        }
    }
    return bytes;
}

Errors compare(const std::vector<float>& actual, const std::vector<float>& expected) {
    Errors errors;
    double squares = 0;
    double differences = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
        const auto a = static_cast<double>(actual.at(i));
        const auto e = static_cast<double>(expected[i]);
        if (std::isnan(a) && std::isnan(e)) {
            continue;
        }
        const double difference = a == e ? 0 : std::fabs(a - e);
        errors.largest =
            std::max(errors.largest,
                     std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference);
        differences += difference * difference;
        squares += e * e;
    }
    errors.nmse = squares > 0 ? differences / squares : differences;
    return errors;
}

std::ostream& operator<<(std::ostream& out, const Errors& errors) {
    return out << "nmse " << errors.nmse << ", largest error " << errors.largest;
}

}  // namespace belvedere::kernels
