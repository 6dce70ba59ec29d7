// SPDX-License-Identifier: Apache-2.0
#pragma once

// Small searches in streamed text that the parsers share. Pure functions; any thread.

#include <cstddef>
#include <initializer_list>
#include <string_view>

namespace belvedere::agent {

inline constexpr std::string_view kWhiteSpace = " \t\r\n";
inline constexpr size_t kMaxSpaceBytes = 256;  ///< of white space between the parts of a call
inline constexpr size_t kMaxKeptBytes = 4096;  ///< of a malformed call's text, to show it

struct MarkerHit {
    size_t pos = std::string_view::npos;
    std::string_view marker;
};

/// The earliest of the markers at or after `from`; of two at the same place the one named first.
[[nodiscard]] MarkerHit findFirst(std::string_view text,
                                  std::initializer_list<std::string_view> markers,
                                  size_t from = 0);

/// Bytes at the end of `text` that may become a marker: they are held back.
[[nodiscard]] size_t partialMarkerBytes(std::string_view text,
                                        std::initializer_list<std::string_view> markers);

enum class Match { No, Partial, Yes };

/// Does `text` begin with `marker`, or end before that is decided?
[[nodiscard]] Match matchPrefix(std::string_view text, std::string_view marker);

[[nodiscard]] std::string_view trimmed(std::string_view text);

/// At most n_bytes of `text`, not cut inside a UTF-8 character.
[[nodiscard]] std::string_view cutAtCharacter(std::string_view text, size_t n_bytes);

}  // namespace belvedere::agent
