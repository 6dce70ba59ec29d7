// SPDX-License-Identifier: Apache-2.0
#include "tools/screen/keysyms.h"

#include <X11/keysym.h>
#include <gtest/gtest.h>

namespace belvedere::tools {
namespace {

TEST(Keysyms, CharactersAreTheirSymbols) {
    EXPECT_EQ(*keySymbolsOf("aä€日\xF0\x9F\x98\x80"),
              (std::vector<KeySymbol>{'a', 0xE4, 0x010020AC, 0x010065E5, 0x0101F600}));
    EXPECT_EQ(*keySymbolsOf("\t1\r\n2\n"),
              (std::vector<KeySymbol>{XK_Tab, '1', XK_Return, '2', XK_Return}));
    EXPECT_EQ(keySymbolsOf("a\x1B").error().message,
              "text: control character U+001B at byte 1 can not be typed; use press_key");
    EXPECT_EQ(keySymbolsOf("a\xFF").error().message, "text: byte 1 is not UTF-8");
}

TEST(Keysyms, ChordsAreParsed) {
    const Chord chord = *parseChord("Ctrl+shift+t");
    EXPECT_EQ(chord.modifiers, (std::vector<KeySymbol>{XK_Control_L, XK_Shift_L}));
    EXPECT_EQ(chord.key, KeySymbol{XK_t});
    EXPECT_EQ(parseChord("Return")->key, KeySymbol{XK_Return});
    EXPECT_EQ(parseChord("enter")->key, KeySymbol{XK_Return});
    EXPECT_EQ(parseChord("f5")->key, KeySymbol{XK_F5});
    EXPECT_EQ(parseChord("alt+F4")->key, KeySymbol{XK_F4});
    EXPECT_EQ(parseChord("left")->key, KeySymbol{XK_Left});
    EXPECT_EQ(parseChord("Page_Down")->key, KeySymbol{XK_Page_Down});
    EXPECT_EQ(parseChord("+")->key, KeySymbol{'+'});
    EXPECT_EQ(parseChord("ctrl++")->key, KeySymbol{'+'});
    EXPECT_EQ(parseChord("ctrl++")->modifiers, (std::vector<KeySymbol>{XK_Control_L}));
    EXPECT_EQ(parseChord("super")->key, KeySymbol{XK_Super_L});
    EXPECT_EQ(parseChord("日")->key, KeySymbol{0x010065E5});
}

TEST(Keysyms, UnknownPartsAreNamed) {
    EXPECT_EQ(parseChord("hyper+x").error().message,
              "keys: hyper in hyper+x is no modifier (ctrl, shift, alt, super, altgr)");
    EXPECT_EQ(parseChord("ctrl+nosuchkey").error().message,
              "keys: nosuchkey is no key name (examples: Return, Escape, F5, ctrl+shift+t)");
    EXPECT_FALSE(parseChord("").has_value());
}

}  // namespace
}  // namespace belvedere::tools
