// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

#include "kernels/cuda/cuda_kernels.h"

namespace belvedere::kernels {

Result<std::vector<CudaDevice>> cudaDevices() {
    // Without a driver the runtime would report that it is too old: for us there is no device then.
    int driver_version = 0;
    if (cudaDriverGetVersion(&driver_version) == cudaSuccess && driver_version == 0) {
        return std::vector<CudaDevice>{};
    }
    int n_devices = 0;
    const cudaError_t counted = cudaGetDeviceCount(&n_devices);
    if (counted == cudaErrorNoDevice) {
        return std::vector<CudaDevice>{};
    }
    if (counted != cudaSuccess) {
        const ErrorCode code =
            counted == cudaErrorInsufficientDriver ? ErrorCode::Unsupported : ErrorCode::Internal;
        return fail(code, "looking for CUDA devices: {}", cudaGetErrorString(counted));
    }
    std::vector<CudaDevice> devices;
    for (int i = 0; i < n_devices; ++i) {
        cudaDeviceProp properties{};
        const cudaError_t asked = cudaGetDeviceProperties(&properties, i);
        if (asked != cudaSuccess) {
            return fail(ErrorCode::Internal, "CUDA device {}: {}", i, cudaGetErrorString(asked));
        }
        devices.push_back(
            {properties.name, properties.totalGlobalMem, properties.major, properties.minor});
    }
    return devices;
}

}  // namespace belvedere::kernels
