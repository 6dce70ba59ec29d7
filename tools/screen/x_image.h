// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pixels of an X image as a matrix. Pure function; any thread.

#include <opencv2/core.hpp>

#include "kernels/base/result.h"

struct _XImage;

namespace belvedere::tools {

/// CV_8UC4, blue green red alpha (255), from an image with colour masks of any width, 16, 24 or 32
/// bits a pixel, either byte order. Errors: Unsupported where it has no masks (a colour map) or
/// another number of bits.
[[nodiscard]] Result<cv::Mat> toBgra(const _XImage& image);

}  // namespace belvedere::tools
