// SPDX-License-Identifier: Apache-2.0
#pragma once

// The column of the conversation: the transcript, the permission card and the composer stand in one
// line, centred, whether or not the transcript has a scroll bar. GUI thread only.

#include <algorithm>

#include "app/theme/theme.h"

namespace belvedere::app {

/// In device-independent pixels of the widget the column stands in.
struct ColumnPlace {
    int left = 0;
    int width = 0;
};

/// The gutter is wider than a scroll bar, so that neither hides the other.
[[nodiscard]] inline ColumnPlace columnIn(int width, const Sizes& sizes) {
    const int column = std::clamp(width - 2 * sizes.gutter, 120, sizes.column);
    return {std::max(0, (width - column) / 2), column};
}

}  // namespace belvedere::app
