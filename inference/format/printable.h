// SPDX-License-Identifier: Apache-2.0
#pragma once

// Text from files in messages. Any thread.

#include <string>
#include <string_view>

namespace belvedere::inference {

/// The first 200 bytes; control characters and bytes outside ASCII become '?'.
[[nodiscard]] inline std::string printable(std::string_view text) {
    constexpr size_t kMaxBytes = 200;
    std::string result(text.substr(0, kMaxBytes));
    for (char& c : result) {
        if (c < ' ' || c > '~') {
            c = '?';
        }
    }
    return result;
}

}  // namespace belvedere::inference
