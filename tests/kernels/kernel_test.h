// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the kernel tests share: every table this machine can run as a test parameter, seeded
// numbers, weights of every type, and the two metrics (normalised mean squared error, largest
// absolute error).

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/kernels.h"

namespace belvedere::kernels {

/// A test case runs once for each instruction set, and is skipped with a reason where this machine
/// lacks it.
class KernelTest : public ::testing::TestWithParam<Isa> {
  protected:
    void SetUp() override;

    [[nodiscard]] const KernelTable& table() const { return *table_; }

    [[nodiscard]] const KernelTable& scalar() const { return *tableFor(Isa::Scalar); }

  private:
    const KernelTable* table_ = nullptr;
};

/// Names the cases "scalar", "avx2", ...
std::string isaParamName(const ::testing::TestParamInfo<Isa>& info);

/// What a program tests: those that every x86-64 machine is asked for and AMX where it is
/// (machine_tables.cpp), or AMX with emulated tiles (emulated_tables.cpp).
std::vector<Isa> testedIsas();

/// nullptr where this machine cannot run it.
const KernelTable* testedTable(Isa isa);

#define BV_FOR_EVERY_ISA(suite) \
    INSTANTIATE_TEST_SUITE_P(Isa, suite, ::testing::ValuesIn(testedIsas()), isaParamName)

/// Pseudo-random numbers, the same on every machine.
class Random {
  public:
    explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15U + 1) {}

    uint32_t bits();

    /// In [0, n).
    size_t below(size_t n) { return bits() % n; }

    /// About normal: mean 0, deviation 1.
    float normal();
    std::vector<float> normals(size_t n);

  private:
    uint64_t state_;
};

/// Random blocks of a type with scales of a usual size: [n_rows, n_cols].
std::vector<uint8_t> makeWeights(WeightType type, size_t n_rows, size_t n_cols, uint64_t seed);

/// Errors of `actual` against `expected`.
struct Errors {
    double nmse = 0;     ///< sum of squared differences over the sum of squares
    double largest = 0;  ///< absolute difference; infinite where only one is NaN
};

Errors compare(const std::vector<float>& actual, const std::vector<float>& expected);
std::ostream& operator<<(std::ostream& out, const Errors& errors);

#define EXPECT_NMSE_BELOW(actual, expected, limit)          \
    do {                                                    \
        const Errors bv_errors = compare(actual, expected); \
        EXPECT_LT(bv_errors.nmse, limit) << bv_errors;      \
        EXPECT_LT(bv_errors.largest, 1e30) << bv_errors;    \
    } while (false)

}  // namespace belvedere::kernels
