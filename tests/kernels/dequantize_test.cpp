// SPDX-License-Identifier: Apache-2.0
// Decoding of every weight type, bit for bit: blocks decoded by gguf-py, and blocks of a fixed byte
// pattern whose values are known.

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>

#include <nlohmann/json.hpp>

#include "kernels/scalar/float_formats.h"
#include "tests/kernels/kernel_test.h"
#include "tests/support/reference_dir.h"

namespace belvedere::kernels {
namespace {

/// Tensors of a small safetensors file that we trust, as bytes.
std::map<std::string, std::vector<uint8_t>> readTensors(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    uint64_t header_bytes = 0;
    file.read(reinterpret_cast<char*>(&header_bytes), 8);
    std::string header(header_bytes, ' ');
    file.read(header.data(), static_cast<std::streamsize>(header_bytes));
    std::map<std::string, std::vector<uint8_t>> tensors;
    const nlohmann::json entries = nlohmann::json::parse(header);
    for (const auto& [name, info] : entries.items()) {
        const uint64_t begin = info["data_offsets"][0];
        const uint64_t end = info["data_offsets"][1];
        std::vector<uint8_t> bytes(end - begin);
        file.seekg(static_cast<std::streamoff>(8 + header_bytes + begin));
        file.read(reinterpret_cast<char*>(bytes.data()),
                  static_cast<std::streamsize>(bytes.size()));
        tensors[name] = std::move(bytes);
    }
    return tensors;
}

std::vector<float> decode(const KernelTable& k,
                          WeightType type,
                          const std::vector<uint8_t>& bytes) {
    const WeightTypeInfo& info = *findWeightType(static_cast<uint32_t>(type));
    std::vector<float> values(bytes.size() / info.block_bytes * info.block_elements);
    k.dequantize(type, bytes.data(), values.data(), values.size());
    return values;
}

class Dequantize : public KernelTest {};

TEST_P(Dequantize, EqualsTheReferenceBitForBit) {
    const auto tensors = readTensors(testing::dataPath("kernels/gguf_blocks.safetensors"));
    size_t n_types = 0;
    for (const WeightTypeInfo& info : kWeightTypes) {
        if (info.type == WeightType::F32 || info.type == WeightType::MXFP8) {
            continue;  // stored as it is; in no GGUF
        }
        const std::vector<uint8_t>& expected = tensors.at(std::string(info.name) + ".values");
        const std::vector<float> actual =
            decode(table(), info.type, tensors.at(std::string(info.name) + ".bytes"));
        ASSERT_EQ(actual.size() * sizeof(float), expected.size()) << info.name;
        EXPECT_EQ(std::memcmp(actual.data(), expected.data(), expected.size()), 0) << info.name;
        ++n_types;
    }
    EXPECT_EQ(n_types, 13U);
}

/// Values of the block whose byte k is (37 k + 11) mod 256, with d = 0.5 and the second f16 field =
/// 0.25; MXFP4 with e = 126.
struct KnownBlock {
    WeightType type;
    std::vector<size_t> half_offsets;
    float first[4];
    float middle;
    float last;
    double sum;
};

TEST_P(Dequantize, GivesTheKnownValuesOfThePatternBlock) {
    const KnownBlock blocks[] = {
        {WeightType::Q4_0, {0}, {-1.5F, 1, 3.5F, -2}, -1.5F, 0, -10.5},
        {WeightType::Q4_1, {0, 2}, {7.75F, 2.25F, 4.75F, 7.25F}, 4.75F, 6.25F, 130.5},
        {WeightType::Q5_0, {0}, {4.5F, -1, 1.5F, -4}, 7, 0.5F, 7.5},
        {WeightType::Q5_1, {0, 2}, {9.75F, 12.25F, 14.75F, 9.25F}, 9.75F, 2.75F, 260.5},
        {WeightType::Q8_0, {0}, {42.5F, 61, -48.5F, -30}, -45.5F, -24, -88},
        {WeightType::Q2_K, {80, 82}, {16.5F, 0, 5.5F, 11}, 3.75F, 2.25F, 1029.5},
        {WeightType::Q3_K, {108}, {40.5F, -54, 13.5F, -27}, 1, 21, 479},
        {WeightType::Q4_K, {0, 2}, {157.75F, -12.75F, 64.75F, 142.25F}, 211.5F, 24.25F, 27220},
        {WeightType::Q5_K, {0, 2}, {405.75F, -12.75F, 312.75F, 142.25F}, 523.5F, 54.25F, 58108},
        {WeightType::Q6_K, {208}, {-715.5F, 848, 291.5F, -265}, -175.5F, -30, 2306},
        {WeightType::MXFP4, {}, {0, 1.5F, -0.5F, -3}, 0.75F, 1.5F, 6.25},
    };
    for (const KnownBlock& known : blocks) {
        const WeightTypeInfo& info = *findWeightType(static_cast<uint32_t>(known.type));
        SCOPED_TRACE(info.name);
        std::vector<uint8_t> bytes(info.block_bytes);
        for (size_t k = 0; k < bytes.size(); ++k) {
            bytes[k] = static_cast<uint8_t>(37 * k + 11);
        }
        float value = 0.5F;
        for (const size_t offset : known.half_offsets) {
            const uint16_t half = scalar::toF16(value);
            std::memcpy(bytes.data() + offset, &half, 2);
            value /= 2;
        }
        if (known.type == WeightType::MXFP4) {
            bytes[0] = 126;
        }
        const std::vector<float> y = decode(table(), known.type, bytes);
        double sum = 0;
        for (const float v : y) {
            sum += static_cast<double>(v);
        }
        for (size_t i = 0; i < 4; ++i) {
            EXPECT_EQ(y[i], known.first[i]) << i;
        }
        EXPECT_EQ(y[y.size() / 2], known.middle);
        EXPECT_EQ(y.back(), known.last);
        EXPECT_EQ(sum, known.sum);
    }
}

TEST_P(Dequantize, EveryScaleExponentOfMxfp4) {
    for (int e = 0; e < 256; ++e) {
        std::vector<uint8_t> block(17, 0x77);  // both nibbles 7: value 6
        block[0] = static_cast<uint8_t>(e);
        const float expected = std::ldexp(6.0F, e - 127);
        EXPECT_EQ(decode(table(), WeightType::MXFP4, block), std::vector<float>(32, expected)) << e;
    }
}

/// The numbers of E4M3FN by their definition, OCP Microscaling Formats 1.0, 5.3.1.
float e4m3(int bits) {
    const int exponent = bits >> 3 & 15;
    const int mantissa = bits & 7;
    const float magnitude = exponent == 0
                                ? std::ldexp(static_cast<float>(mantissa), -9)
                                : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
    return bits >= 128 ? -magnitude : magnitude;
}

TEST_P(Dequantize, EveryNumberAndScaleOfMxfp8) {
    for (int e = 0; e < 255; ++e) {
        for (int first = 0; first < 256; first += 32) {
            std::vector<uint8_t> block(33, static_cast<uint8_t>(e));
            for (int i = 0; i < 32; ++i) {
                block[static_cast<size_t>(i) + 1] = static_cast<uint8_t>(first + i);
            }
            const std::vector<float> y = decode(table(), WeightType::MXFP8, block);
            for (int i = 0; i < 32; ++i) {
                const int bits = first + i;
                if ((bits & 127) == 127) {
                    ASSERT_TRUE(std::isnan(y[static_cast<size_t>(i)])) << bits;
                } else {
                    ASSERT_EQ(y[static_cast<size_t>(i)], std::ldexp(e4m3(bits), e - 127))
                        << bits << " scale " << e;
                }
            }
        }
    }
    EXPECT_EQ(e4m3(0x7e), 448.0F);
    EXPECT_EQ(e4m3(1), 0x1p-9F);
}

BV_FOR_EVERY_ISA(Dequantize);

TEST(FloatFormats, EveryBinary16GoesThroughF32AndBack) {
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
        const auto half = static_cast<uint16_t>(bits);
        const bool nan = (half & 0x7c00U) == 0x7c00U && (half & 0x3ffU) != 0;
        EXPECT_EQ(scalar::toF16(scalar::fromF16(half)), nan ? half | 0x200U : half);
    }
    EXPECT_EQ(scalar::fromF16(0x3555), 0.333251953125F);
    EXPECT_EQ(scalar::fromF16(0x0001), 0x1p-24F);
    EXPECT_EQ(scalar::toF16(65519.0F), 0x7bff);
    EXPECT_EQ(scalar::toF16(65520.0F), 0x7c00);
    EXPECT_EQ(scalar::toF16(0x1p-25F), 0);  // half of the smallest: to even
    EXPECT_EQ(scalar::toF16(0x1.8p-25F), 1);
    EXPECT_EQ(scalar::toBf16(std::bit_cast<float>(0x3f808000U)), 0x3f80);  // tie to even
    EXPECT_EQ(scalar::toBf16(std::bit_cast<float>(0x3f818000U)), 0x3f82);
}

}  // namespace
}  // namespace belvedere::kernels
