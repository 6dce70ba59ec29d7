// SPDX-License-Identifier: Apache-2.0
#include "tools/screen/keyboard.h"

#include <chrono>
#include <thread>

#include <X11/XKBlib.h>
#include <X11/Xlib.h>
#include <X11/extensions/XTest.h>
#include <X11/keysym.h>

namespace belvedere::tools {
namespace {

using std::chrono::milliseconds;

// Programs read the layout anew when they hear that it changed; they must have heard before a new
// key is pressed, and must have handled the key before it is taken away again.
constexpr milliseconds kMappingTime{60};
constexpr milliseconds kUnmappingTime{250};
constexpr milliseconds kKeyTime{3};         ///< between keys: some programs drop faster ones
constexpr milliseconds kReleaseTime{1000};  ///< for a person to let go of modifier keys
constexpr milliseconds kReleasePoll{20};

}  // namespace

Result<std::unique_ptr<Keyboard>> Keyboard::open(XDisplay& display) {
    std::unique_ptr<Keyboard> keyboard(new Keyboard(display));
    BV_TRY(keyboard->checkNothingHeld());
    BV_TRY(keyboard->takeState());
    keyboard->readLayout();
    BV_TRY(display.sync("reading the keyboard layout"));
    return keyboard;
}

Keyboard::~Keyboard() {
    unmap();
    if (has_state_) {
        XkbLockGroup(display_.display(), XkbUseCoreKbd, locked_group_);
        XkbLockModifiers(display_.display(), XkbUseCoreKbd, LockMask, locked_modifiers_ & LockMask);
    }
    (void)display_.sync("restoring the keyboard");  // what failed was reported by the call before
}

Result<void> Keyboard::checkNothingHeld() {
    for (milliseconds waited{0}; waited < kReleaseTime; waited += kReleasePoll) {
        XkbStateRec state{};
        const int status = XkbGetState(display_.display(), XkbUseCoreKbd, &state);
        BV_TRY(display_.sync("reading the keyboard"));
        if (status == Success && state.base_mods == 0) {
            return {};
        }
        std::this_thread::sleep_for(kReleasePoll);
    }
    return fail(ErrorCode::InvalidArgument, "a modifier key is being held down; nothing was typed");
}

Result<void> Keyboard::takeState() {
    XkbStateRec state{};
    XkbGetState(display_.display(), XkbUseCoreKbd, &state);
    BV_TRY(display_.sync("reading the keyboard"));
    locked_modifiers_ = state.locked_mods;
    locked_group_ = state.locked_group;
    has_state_ = true;
    XkbLockGroup(display_.display(), XkbUseCoreKbd, 0);
    XkbLockModifiers(display_.display(), XkbUseCoreKbd, LockMask, 0);
    return {};
}

void Keyboard::readLayout() {
    int first = 0;
    int last = 0;
    XDisplayKeycodes(display_.display(), &first, &last);
    int n_per_code = 0;
    KeySym* symbols = XGetKeyboardMapping(display_.display(), static_cast<KeyCode>(first),
                                          last - first + 1, &n_per_code);
    if (symbols == nullptr) {
        return;  // sync() has the error
    }
    for (int code = first; code <= last; ++code) {
        const std::span<const KeySym> levels(
            symbols + static_cast<ptrdiff_t>(code - first) * n_per_code,
            static_cast<size_t>(n_per_code));
        bool is_free = true;
        for (size_t level = 0; level < levels.size(); ++level) {
            is_free = is_free && levels[level] == NoSymbol;
            // Levels 0 and 1 of the first layout: without and with Shift. Others are reached with a
            // free key.
            if (level < 2 && levels[level] != NoSymbol) {
                layout_.try_emplace(levels[level], Stroke{static_cast<unsigned>(code), level == 1});
            }
        }
        if (is_free) {
            free_codes_.push_back(static_cast<unsigned>(code));
        }
    }
    XFree(symbols);
}

/// Gives free keys to symbols the layout lacks. The number of leading symbols that can be typed
/// now.
Result<size_t> Keyboard::mapMissing(std::span<const KeySymbol> symbols) {
    size_t n_ready = 0;
    for (const KeySymbol symbol : symbols) {
        if (!layout_.contains(symbol) && !mapped_.contains(symbol)) {
            if (mapped_.size() == free_codes_.size()) {
                break;
            }
            const unsigned code = free_codes_[mapped_.size()];
            std::array<KeySym, 2> levels = {symbol, symbol};
            XChangeKeyboardMapping(display_.display(), static_cast<int>(code), 2, levels.data(), 1);
            mapped_[symbol] = {code, false};
        }
        ++n_ready;
    }
    BV_TRY(display_.sync("giving keys to characters"));
    if (n_ready == 0) {
        return fail(ErrorCode::Unsupported,
                    "key symbol {:#x}: is not in the keyboard layout, and no key is free for it",
                    symbols[0]);
    }
    if (!mapped_.empty()) {
        std::this_thread::sleep_for(kMappingTime);
    }
    return n_ready;
}

void Keyboard::unmap() {
    if (mapped_.empty()) {
        return;
    }
    XFlush(display_.display());
    std::this_thread::sleep_for(kUnmappingTime);
    for (const auto& [symbol, stroke] : mapped_) {
        std::array<KeySym, 2> none = {NoSymbol, NoSymbol};
        XChangeKeyboardMapping(display_.display(), static_cast<int>(stroke.key_code), 2,
                               none.data(), 1);
    }
    mapped_.clear();
}

void Keyboard::key(unsigned key_code, bool is_down) {
    XTestFakeKeyEvent(display_.display(), key_code, is_down ? True : False, CurrentTime);
}

void Keyboard::send(const Stroke& stroke) {
    const auto shift = layout_.find(XK_Shift_L);
    const bool shifts = stroke.needs_shift && shift != layout_.end();
    if (shifts) {
        key(shift->second.key_code, true);
    }
    key(stroke.key_code, true);
    key(stroke.key_code, false);
    if (shifts) {
        key(shift->second.key_code, false);
    }
    XFlush(display_.display());
    std::this_thread::sleep_for(kKeyTime);
}

Result<void> Keyboard::type(std::span<const KeySymbol> symbols, std::stop_token stop) {
    size_t n_typed = 0;
    while (n_typed < symbols.size()) {
        const size_t n_ready = BV_TRY(mapMissing(symbols.subspan(n_typed)));
        for (const KeySymbol symbol : symbols.subspan(n_typed, n_ready)) {
            if (stop.stop_requested()) {
                return fail(ErrorCode::Cancelled, "stopped after {} of {} characters", n_typed,
                            symbols.size());
            }
            const auto known = layout_.find(symbol);
            send(known != layout_.end() ? known->second : mapped_.at(symbol));
            ++n_typed;
        }
        BV_TRY(display_.sync("typing"));
        unmap();
    }
    return display_.sync("typing");
}

Result<void> Keyboard::press(const Chord& chord, int count, std::stop_token stop) {
    std::vector<Stroke> held;
    for (const KeySymbol modifier : chord.modifiers) {
        const auto found = layout_.find(modifier);
        if (found == layout_.end()) {
            return fail(ErrorCode::Unsupported, "modifier {:#x}: is not on this keyboard layout",
                        modifier);
        }
        held.push_back(found->second);
    }
    const std::array<KeySymbol, 1> symbol = {chord.key};
    BV_TRY(mapMissing(symbol));
    const auto known = layout_.find(chord.key);
    const Stroke stroke = known != layout_.end() ? known->second : mapped_.at(chord.key);
    for (const Stroke& modifier : held) {
        key(modifier.key_code, true);
    }
    int n_pressed = 0;
    while (n_pressed < count && !stop.stop_requested()) {
        send(stroke);
        ++n_pressed;
    }
    for (auto modifier = held.rbegin(); modifier != held.rend(); ++modifier) {
        key(modifier->key_code, false);
    }
    BV_TRY(display_.sync("pressing keys"));
    if (n_pressed < count) {
        return fail(ErrorCode::Cancelled, "stopped after {} of {} presses", n_pressed, count);
    }
    return {};
}

}  // namespace belvedere::tools
