// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/result.h"

namespace belvedere {

const char* errorCodeName(ErrorCode code) {
    switch (code) {
        case ErrorCode::Cancelled:
            return "cancelled";
        case ErrorCode::InvalidArgument:
            return "invalid argument";
        case ErrorCode::NotFound:
            return "not found";
        case ErrorCode::Io:
            return "io";
        case ErrorCode::Corrupt:
            return "corrupt";
        case ErrorCode::Unsupported:
            return "unsupported";
        case ErrorCode::OutOfMemory:
            return "out of memory";
        case ErrorCode::Internal:
            return "internal";
    }
    return "unknown";
}

}  // namespace belvedere
