// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda_kernels.h"

namespace belvedere::kernels {

Result<std::vector<CudaDevice>> cudaDevices() {
    return fail(ErrorCode::Unsupported, "built without CUDA");
}

}  // namespace belvedere::kernels
