// SPDX-License-Identifier: Apache-2.0
#pragma once

// The door of kernels/cuda: no CUDA type appears in it, and it links on every machine. Built
// without BV_CUDA, a stub answers Unsupported. So far it only finds devices; the kernels come with
// the CUDA backend. Any thread.

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/base/result.h"

namespace belvedere::kernels {

struct CudaDevice {
    std::string name;
    uint64_t memory_bytes = 0;
    int compute_major = 0;  ///< compute capability: 9.0 on an H200
    int compute_minor = 0;
};

/// Every device of this machine; empty where there is none. Errors: Unsupported (built without
/// CUDA; the driver is older than the runtime), Internal, with the runtime's own words.
[[nodiscard]] Result<std::vector<CudaDevice>> cudaDevices();

}  // namespace belvedere::kernels
