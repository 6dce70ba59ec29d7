// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is known of the effect of made-up input: that the X server took it, and which pixels changed
// soon after. Both are evidence; that a program did what was meant is never claimed.

#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include <opencv2/core.hpp>

#include "agent/tool.h"
#include "tools/screen/coordinates.h"
#include "tools/screen/display.h"

namespace belvedere::tools {

struct ScreenChange {
    size_t n_pixels = 0;
    cv::Rect box;  ///< around all of them, in screen pixels
};

/// Two pictures of the same size, CV_8UC4.
[[nodiscard]] ScreenChange compareScreens(const cv::Mat& before, const cv::Mat& after);

/// Does `action` between two looks at the screen and reports both. `action` returns what was done,
/// in words. With a record the changed area is named in the pixels of its picture.
Result<agent::ToolOutput> actAndObserve(XDisplay& display,
                                        const std::optional<CoordinateRecord>& record,
                                        const std::function<Result<std::string>()>& action,
                                        const std::stop_token& stop);

}  // namespace belvedere::tools
