// SPDX-License-Identifier: Apache-2.0
#pragma once

// A connection to the X server: pictures of the screen and made-up input. Errors of the server and
// its death are results here, never the end of the program. Each call of a tool opens its own; one
// thread at a time. Sources: X11 protocol; MIT-SHM; XTEST extension 2.2. Not for Wayland: a portal
// is the place for that.

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include <opencv2/core.hpp>

#include "kernels/base/result.h"
#include "tools/screen/coordinates.h"

struct _XDisplay;  // Xlib's own name of Display

namespace belvedere::tools {

enum class MouseButton { Left, Middle, Right };

class XDisplay {
  public:
    /// The display that DISPLAY names. Errors: Unsupported, naming what is missing: no DISPLAY (and
    /// whether this is a Wayland session), no server there, no XTEST.
    static Result<std::unique_ptr<XDisplay>> open();

    ~XDisplay();
    XDisplay(const XDisplay&) = delete;
    XDisplay& operator=(const XDisplay&) = delete;

    /// The whole root window, over all monitors. Errors: Io.
    [[nodiscard]] Result<PixelSize> screenSize();

    /// CV_8UC4, blue green red alpha (255). Shared memory where the server has it, else over the
    /// connection. Errors: Io; Unsupported for colour-mapped screens.
    [[nodiscard]] Result<cv::Mat> capture();

    /// Moves the pointer and presses a button `count` times. The result is where the pointer really
    /// is.
    Result<PixelPoint> click(PixelPoint where, MouseButton button, int count);

    /// For the keyboard: the connection, and the first error since the last call. Errors: Io.
    [[nodiscard]] _XDisplay* display() const { return display_; }

    [[nodiscard]] Result<void> sync(std::string_view what);

  private:
    struct ErrorState;

    XDisplay(_XDisplay* display, std::unique_ptr<ErrorState> errors);

    [[nodiscard]] unsigned physicalButton(MouseButton button);

    _XDisplay* display_;
    std::unique_ptr<ErrorState> errors_;
};

/// A note for the model where the session is a Wayland one: only windows of X programs are seen.
/// Empty: none.
[[nodiscard]] std::string waylandNote();

/// DISPLAY names one; whether there is a server is another question.
[[nodiscard]] bool isDisplayNamed();

}  // namespace belvedere::tools
