// SPDX-License-Identifier: Apache-2.0
#include "tools/screen/keysyms.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include <X11/Xlib.h>
#include <X11/keysym.h>

#include "tools/files/text.h"

namespace belvedere::tools {
namespace {

constexpr KeySymbol kUnicodeBase = 0x01000000;

using Name = std::pair<std::string_view, KeySymbol>;

constexpr std::array<Name, 12> kModifiers = {{{"ctrl", XK_Control_L},
                                              {"control", XK_Control_L},
                                              {"shift", XK_Shift_L},
                                              {"alt", XK_Alt_L},
                                              {"option", XK_Alt_L},
                                              {"super", XK_Super_L},
                                              {"win", XK_Super_L},
                                              {"windows", XK_Super_L},
                                              {"meta", XK_Super_L},
                                              {"cmd", XK_Super_L},
                                              {"command", XK_Super_L},
                                              {"altgr", XK_ISO_Level3_Shift}}};

constexpr std::array<Name, 20> kKeys = {
    {{"enter", XK_Return},        {"return", XK_Return},     {"esc", XK_Escape},
     {"escape", XK_Escape},       {"tab", XK_Tab},           {"space", XK_space},
     {"backspace", XK_BackSpace}, {"del", XK_Delete},        {"delete", XK_Delete},
     {"ins", XK_Insert},          {"insert", XK_Insert},     {"pageup", XK_Page_Up},
     {"page_up", XK_Page_Up},     {"pgup", XK_Page_Up},      {"pagedown", XK_Page_Down},
     {"page_down", XK_Page_Down}, {"pgdn", XK_Page_Down},    {"plus", XK_plus},
     {"minus", XK_minus},         {"capslock", XK_Caps_Lock}}};

std::string lower(std::string_view text) {
    std::string result(text);
    std::ranges::transform(result, result.begin(), [](char c) {
        return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    });
    return result;
}

template <size_t n>
std::optional<KeySymbol> find(const std::array<Name, n>& names, std::string_view wanted) {
    const std::string name = lower(wanted);
    const auto found =
        std::ranges::find_if(names, [&](const Name& known) { return known.first == name; });
    return found == names.end() ? std::nullopt : std::optional(found->second);
}

/// The code point of one valid UTF-8 character.
char32_t codePointOf(std::string_view character) {
    const auto first = static_cast<unsigned char>(character[0]);
    if (character.size() == 1) {
        return first;
    }
    char32_t code_point = first & (0x7FU >> character.size());
    for (const char c : character.substr(1)) {
        code_point = code_point << 6 | (static_cast<unsigned char>(c) & 0x3FU);
    }
    return code_point;
}

KeySymbol symbolOf(char32_t code_point) {
    const bool is_latin1 = code_point <= 0xFF;
    return is_latin1 ? KeySymbol{code_point} : kUnicodeBase + code_point;
}

std::optional<KeySymbol> keyNamed(std::string_view name) {
    if (!name.empty() && utf8CharacterBytes(name) == name.size() && codePointOf(name) > 0x20) {
        return symbolOf(codePointOf(name));
    }
    if (const std::optional<KeySymbol> key = find(kKeys, name)) {
        return key;
    }
    // X's own names have capitals ("F5", "Home", "XF86AudioPlay"); models write them in lower case.
    std::string capital = lower(name);
    if (!capital.empty() && capital[0] >= 'a' && capital[0] <= 'z') {
        capital[0] = static_cast<char>(capital[0] - 'a' + 'A');
    }
    for (const std::string& spelling : {std::string(name), capital, lower(name)}) {
        const KeySymbol key = XStringToKeysym(spelling.c_str());
        if (key != NoSymbol) {
            return key;
        }
    }
    return std::nullopt;
}

}  // namespace

Result<std::vector<KeySymbol>> keySymbolsOf(std::string_view text) {
    std::vector<KeySymbol> symbols;
    for (size_t at = 0; at < text.size();) {
        const size_t n = utf8CharacterBytes(text.substr(at));
        if (n == 0) {
            return fail(ErrorCode::InvalidArgument, "text: byte {} is not UTF-8", at);
        }
        const char32_t code_point = codePointOf(text.substr(at, n));
        const bool is_crlf = code_point == '\r' && text.substr(at + 1).starts_with('\n');
        if (code_point == '\n' || code_point == '\r') {
            symbols.push_back(XK_Return);
        } else if (code_point == '\t') {
            symbols.push_back(XK_Tab);
        } else if (code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0)) {
            return fail(
                ErrorCode::InvalidArgument,
                "text: control character U+{:04X} at byte {} can not be typed; use press_key",
                static_cast<uint32_t>(code_point), at);
        } else {
            symbols.push_back(symbolOf(code_point));
        }
        at += n + (is_crlf ? 1 : 0);
    }
    return symbols;
}

Result<Chord> parseChord(std::string_view text) {
    Chord chord;
    std::string_view rest = text;
    while (true) {
        // The last key may be "+" itself.
        const size_t plus = rest.find('+');
        if (plus == std::string_view::npos || plus == 0 || plus + 1 == rest.size()) {
            break;
        }
        const std::string_view part = rest.substr(0, plus);
        const std::optional<KeySymbol> modifier = find(kModifiers, part);
        if (!modifier) {
            return fail(ErrorCode::InvalidArgument,
                        "keys: {} in {} is no modifier (ctrl, shift, alt, super, altgr)",
                        showText(part).text, showText(text).text);
        }
        chord.modifiers.push_back(*modifier);
        rest.remove_prefix(plus + 1);
    }
    std::optional<KeySymbol> key = keyNamed(rest);
    if (!key) {
        key = find(kModifiers, rest);  // a modifier alone: "super"
    }
    if (!key) {
        return fail(ErrorCode::InvalidArgument,
                    "keys: {} is no key name (examples: Return, Escape, F5, ctrl+shift+t)",
                    showText(rest).text);
    }
    chord.key = *key;
    return chord;
}

}  // namespace belvedere::tools
