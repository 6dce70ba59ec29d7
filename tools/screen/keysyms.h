// SPDX-License-Identifier: Apache-2.0
#pragma once

// Names and characters as X key symbols. Pure functions; any thread.
// Source: X11 protocol, appendix A: Latin-1 characters are their own key symbols, others are
// 0x01000000 + code point.

#include <string_view>
#include <vector>

#include "kernels/base/result.h"

namespace belvedere::tools {

using KeySymbol = unsigned long;  ///< Xlib's KeySym

/// A line end (also CRLF) is Return, a tab is Tab. Errors: InvalidArgument: not UTF-8, or another
/// control character.
[[nodiscard]] Result<std::vector<KeySymbol>> keySymbolsOf(std::string_view text);

struct Chord {
    std::vector<KeySymbol> modifiers;  ///< in the order to press them
    KeySymbol key = 0;
};

/// "ctrl+shift+t", "Return", "F5", "alt+F4", "ctrl++", "ä". Names are X's, or the usual short ones,
/// in any case. Errors: InvalidArgument naming the part that is not known.
[[nodiscard]] Result<Chord> parseChord(std::string_view text);

}  // namespace belvedere::tools
