// SPDX-License-Identifier: Apache-2.0
#pragma once

// Typing through XTEST, whatever the layout: a character that no key of the layout has gets a free
// key for a moment. While it lives, the first layout is chosen and Caps Lock is off; both are put
// back at the end. One thread, that of the connection.

#include <map>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "kernels/base/result.h"
#include "tools/screen/display.h"
#include "tools/screen/keysyms.h"

namespace belvedere::tools {

class Keyboard {
  public:
    /// Errors: Io; InvalidArgument where a person holds a modifier key down: the input would mean
    /// something else.
    static Result<std::unique_ptr<Keyboard>> open(XDisplay& display);

    ~Keyboard();
    Keyboard(const Keyboard&) = delete;
    Keyboard& operator=(const Keyboard&) = delete;

    /// Presses and releases each. Errors: Io; Unsupported where no key is free for a character;
    /// Cancelled, with how far it came.
    Result<void> type(std::span<const KeySymbol> symbols, std::stop_token stop);

    /// Errors: as type().
    Result<void> press(const Chord& chord, int count, std::stop_token stop);

  private:
    struct Stroke {
        unsigned key_code = 0;
        bool needs_shift = false;
    };

    explicit Keyboard(XDisplay& display) : display_(display) {}

    void readLayout();
    Result<void> checkNothingHeld();
    Result<void> takeState();
    Result<size_t> mapMissing(std::span<const KeySymbol> symbols);
    void unmap();
    void send(const Stroke& stroke);
    void key(unsigned key_code, bool is_down);

    XDisplay& display_;
    std::map<KeySymbol, Stroke> layout_;
    std::map<KeySymbol, Stroke> mapped_;  ///< for a moment
    std::vector<unsigned> free_codes_;
    unsigned char locked_modifiers_ = 0;  ///< as found
    unsigned char locked_group_ = 0;
    bool has_state_ = false;
};

}  // namespace belvedere::tools
