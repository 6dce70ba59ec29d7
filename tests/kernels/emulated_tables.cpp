// SPDX-License-Identifier: Apache-2.0
// The AMX table where there is no AMX: this program is linked with the tile products in plain loops
// (BV_EMULATE_TILES), so that layouts, borders and scales are tested on every machine with AVX-512.

#include "kernels/registration.h"
#include "tests/kernels/kernel_test.h"

namespace belvedere::kernels {

std::vector<Isa> testedIsas() {
    return {Isa::Amx};
}

const KernelTable* testedTable(Isa /*isa*/) {
    if (tableFor(Isa::Avx512) == nullptr ||
        cpuInfo().features.find("avx512bf16") == std::string::npos) {
        return nullptr;
    }
    static const KernelTable kEmulated = [] {
        KernelTable table{};
        registerScalar(table);
        registerAvx2(table);
        registerAvx512(table, {.avx512_bf16 = true});
        registerAmx(table);
        return table;
    }();
    return &kEmulated;
}

}  // namespace belvedere::kernels
