// SPDX-License-Identifier: Apache-2.0
// The tables of this machine.

#include "tests/kernels/kernel_test.h"

namespace belvedere::kernels {

std::vector<Isa> testedIsas() {
    std::vector<Isa> isas = {Isa::Scalar, Isa::Avx2, Isa::Avx512};
    if (tableFor(Isa::Amx) != nullptr) {
        isas.push_back(Isa::Amx);
    }
    return isas;
}

const KernelTable* testedTable(Isa isa) {
    return tableFor(isa);
}

}  // namespace belvedere::kernels
