// SPDX-License-Identifier: Apache-2.0
#pragma once

// Text between Qt (UTF-16) and everything else (std::string in UTF-8). Any thread.

#include <QString>
#include <string>
#include <string_view>

namespace belvedere::app {

/// Invalid bytes become U+FFFD.
[[nodiscard]] inline QString qstring(std::string_view text) {
    return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}

[[nodiscard]] inline std::string utf8(QStringView text) {
    const QByteArray bytes = text.toUtf8();
    return {bytes.constData(), static_cast<size_t>(bytes.size())};
}

/// 12 345 678 with the separators of the user's locale.
[[nodiscard]] QString countText(size_t n);

/// "812", "7.9K", "1.2M": for narrow places.
[[nodiscard]] QString shortCountText(size_t n);

/// "98.4 MB"
[[nodiscard]] QString bytesText(uint64_t n_bytes);

/// "3 s", "2 min", "1 h 5 min"
[[nodiscard]] QString durationText(double seconds);

}  // namespace belvedere::app
