// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <cstring>
#include <set>

#include <gtest/gtest.h>

#include "kernels/kernels.h"

namespace belvedere::kernels {
namespace {

/// Sets BV_ISA for one scope.
class IsaVariable {
  public:
    explicit IsaVariable(const char* value) {
        if (const char* before = std::getenv("BV_ISA"); before != nullptr) {
            before_ = before;
        }
        setenv("BV_ISA", value, 1);
    }

    ~IsaVariable() {
        if (before_.empty()) {
            unsetenv("BV_ISA");
        } else {
            setenv("BV_ISA", before_.c_str(), 1);
        }
    }

    IsaVariable(const IsaVariable&) = delete;
    IsaVariable& operator=(const IsaVariable&) = delete;

  private:
    std::string before_;
};

TEST(Dispatch, NoFieldOfAnyTableIsNull) {
    for (const Isa isa : {Isa::Scalar, Isa::Avx2, Isa::Avx512}) {
        const KernelTable* table = tableFor(isa);
        if (table == nullptr) {
            continue;  // a smaller machine: its cases say so one by one
        }
        EXPECT_EQ(table->isa, isa);
        // All fields after the first are pointers.
        const char* bytes = reinterpret_cast<const char*>(table);
        for (size_t at = sizeof(void*); at < sizeof(KernelTable); at += sizeof(void*)) {
            void* pointer = nullptr;
            std::memcpy(&pointer, bytes + at, sizeof(pointer));
            EXPECT_NE(pointer, nullptr) << isaName(isa) << " at byte " << at;
        }
    }
}

TEST(Dispatch, ChosenIsaFollowsTheVariable) {
    {
        const IsaVariable variable("scalar");
        EXPECT_EQ(chosenIsa().value(), Isa::Scalar);
    }
    {
        const IsaVariable variable("");
        const Isa best = chosenIsa().value();
        EXPECT_NE(tableFor(best), nullptr);
    }
    {
        const IsaVariable variable("sse9");
        const Result<Isa> isa = chosenIsa();
        ASSERT_FALSE(isa.has_value());
        EXPECT_EQ(isa.error().code, ErrorCode::InvalidArgument);
        EXPECT_NE(isa.error().message.find("sse9"), std::string::npos);
    }
    {
        const IsaVariable variable("amx");
        const Result<Isa> isa = chosenIsa();
        ASSERT_EQ(isa.has_value(), tableFor(Isa::Amx) != nullptr);
        if (!isa.has_value()) {
            EXPECT_EQ(isa.error().code, ErrorCode::Unsupported);
        }
    }
}

TEST(Dispatch, CpuInfoNamesTheMachine) {
    const CpuInfo info = cpuInfo();
    EXPECT_FALSE(info.brand.empty());
    EXPECT_GE(info.n_cores, 1U);
    EXPECT_EQ(tableFor(Isa::Avx2) != nullptr, info.features.find("avx2 fma f16c") == 0);
}

TEST(Dispatch, WeightTypesHaveTheSizesOfTheFormat) {
    std::set<std::string> names;
    for (const WeightTypeInfo& info : kWeightTypes) {
        EXPECT_EQ(findWeightType(static_cast<uint32_t>(info.type)), &info);
        EXPECT_EQ(rowBytes(info.type, size_t{3} * info.block_elements),
                  size_t{3} * info.block_bytes);
        names.insert(info.name);
    }
    EXPECT_EQ(names.size(), 15U);
    for (const uint32_t id : {4U, 5U, 9U, 15U, 16U, 24U, 31U, 38U, 40U, 43U, 0xffffffffU}) {
        EXPECT_EQ(findWeightType(id), nullptr) << id;
    }
}

}  // namespace
}  // namespace belvedere::kernels
