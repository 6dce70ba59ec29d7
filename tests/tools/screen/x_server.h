// SPDX-License-Identifier: Apache-2.0
#pragma once

// A virtual X server for one test, and a window on it that writes down what it gets.

#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "tools/screen/coordinates.h"

namespace belvedere::tools::testing {

/// Xvfb, ended with the object. While it lives DISPLAY names it.
class XServer {
  public:
    /// `screen`: "800x600x24". Null where Xvfb is not installed or does not start.
    static std::unique_ptr<XServer> start(const std::string& screen);
    ~XServer();

    /// Ends the server now.
    void kill();

  private:
    XServer() = default;

    std::jthread thread_;
};

struct KeyEvent {
    unsigned long symbol = 0;
    unsigned modifiers = 0;  ///< state of the X event

    bool operator==(const KeyEvent&) const = default;
};

struct ButtonEvent {
    unsigned button = 0;
    PixelPoint at;  ///< in the window

    bool operator==(const ButtonEvent&) const = default;
};

/// A window of one colour with the keyboard focus. A button press paints it in another colour. Its
/// thread reads the keyboard mapping anew when told, as programs do.
class TestWindow {
  public:
    static constexpr PixelPoint kOrigin = {100, 120};
    static constexpr PixelSize kSize = {300, 200};

    TestWindow(unsigned long colour, unsigned long pressed_colour);

    /// The events, once there are at least n of them or time is up.
    [[nodiscard]] std::vector<KeyEvent> keys(size_t n) const;
    [[nodiscard]] std::vector<ButtonEvent> buttons(size_t n) const;

  private:
    void run(const std::stop_token& stop, unsigned long colour, unsigned long pressed_colour);

    mutable std::mutex mutex_;
    bool is_shown_ = false;
    std::vector<KeyEvent> keys_;
    std::vector<ButtonEvent> buttons_;
    std::jthread thread_;  // last: ends before the state above
};

}  // namespace belvedere::tools::testing
