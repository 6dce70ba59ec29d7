// SPDX-License-Identifier: Apache-2.0
#include "tests/tools/screen/x_server.h"

#include <chrono>
#include <condition_variable>
#include <cstdlib>

#include <X11/Xlib.h>
#include <X11/Xutil.h>
#include <X11/keysym.h>
#include <poll.h>

#include "kernels/base/check.h"
#include "tools/process.h"

namespace belvedere::tools::testing {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 10s;
constexpr auto kStep = 10ms;

/// The display number stands alone on a line; the server's own messages may stand around it.
std::string displayNumber(const std::string& output) {
    size_t at = 0;
    while (at < output.size()) {
        const size_t end = output.find('\n', at);
        if (end == std::string::npos) {
            break;
        }
        const std::string line = output.substr(at, end - at);
        if (!line.empty() && line.find_first_not_of("0123456789") == std::string::npos) {
            return line;
        }
        at = end + 1;
    }
    return {};
}

template <class Condition>
void waitUntil(const Condition& condition) {
    for (auto waited = 0ms; waited < kPatience && !condition(); waited += kStep) {
        std::this_thread::sleep_for(kStep);
    }
}

bool isModifier(unsigned long symbol) {
    return symbol >= XK_Shift_L && symbol <= XK_Hyper_R;
}

}  // namespace

std::unique_ptr<XServer> XServer::start(const std::string& screen) {
    struct Answer {
        std::mutex mutex;
        std::condition_variable changed;
        std::string output;
        std::string number;
        bool has_ended = false;
    };

    auto answer = std::make_shared<Answer>();  // shared: the server's thread outlives this function
    std::unique_ptr<XServer> server(new XServer);
    server->thread_ = std::jthread([answer, screen](const std::stop_token& stop) {
        const ProcessSpec spec = {.argv = {"Xvfb", "-displayfd", "1", "-screen", "0", screen,
                                           "-nolisten", "tcp", "-noreset"}};
        const auto sink = [&](std::string_view bytes) {
            const std::lock_guard lock(answer->mutex);
            answer->output += bytes;
            answer->number = displayNumber(answer->output);
            answer->changed.notify_one();
        };
        (void)runProcess(spec, sink, stop);  // its end is seen below, or was asked for
        const std::lock_guard lock(answer->mutex);
        answer->has_ended = true;
        answer->changed.notify_one();
    });
    std::unique_lock lock(answer->mutex);
    answer->changed.wait(lock, [&] { return answer->has_ended || !answer->number.empty(); });
    if (answer->has_ended) {
        return nullptr;
    }
    setenv("DISPLAY", (":" + answer->number).c_str(), 1);
    return server;
}

XServer::~XServer() {
    kill();
    unsetenv("DISPLAY");
}

void XServer::kill() {
    if (thread_.joinable()) {
        thread_.request_stop();
        thread_.join();
    }
}

TestWindow::TestWindow(unsigned long colour, unsigned long pressed_colour)
    : thread_([this, colour, pressed_colour](const std::stop_token& stop) {
          run(stop, colour, pressed_colour);
      }) {
    waitUntil([&] {
        const std::lock_guard lock(mutex_);
        return is_shown_;
    });
}

void TestWindow::run(const std::stop_token& stop,
                     unsigned long colour,
                     unsigned long pressed_colour) {
    Display* display = XOpenDisplay(nullptr);
    BV_CHECK(display != nullptr);
    XSetWindowAttributes attributes{};
    attributes.override_redirect = True;
    attributes.background_pixel = colour;
    attributes.event_mask = KeyPressMask | ButtonPressMask | ExposureMask;
    const Window window =
        XCreateWindow(display, DefaultRootWindow(display), kOrigin.x, kOrigin.y,
                      unsigned{kSize.width}, unsigned{kSize.height}, 0, CopyFromParent, InputOutput,
                      CopyFromParent, CWOverrideRedirect | CWBackPixel | CWEventMask, &attributes);
    XMapRaised(display, window);
    while (!stop.stop_requested()) {
        pollfd wait = {ConnectionNumber(display), POLLIN, 0};
        if (XPending(display) == 0) {
            poll(&wait, 1, 20);
            continue;
        }
        XEvent event{};
        XNextEvent(display, &event);
        if (event.type == MappingNotify) {
            XRefreshKeyboardMapping(&event.xmapping);
        } else if (event.type == Expose) {
            XSetInputFocus(display, window, RevertToParent, CurrentTime);
            XSync(display, False);
            const std::lock_guard lock(mutex_);
            is_shown_ = true;
        } else if (event.type == KeyPress) {
            KeySym symbol = NoSymbol;
            char text[8];
            XLookupString(&event.xkey, text, sizeof text, &symbol, nullptr);
            if (!isModifier(symbol)) {
                const std::lock_guard lock(mutex_);
                keys_.push_back({symbol, event.xkey.state});
            }
        } else if (event.type == ButtonPress) {
            XSetWindowBackground(display, window, pressed_colour);
            XClearWindow(display, window);
            XFlush(display);
            const std::lock_guard lock(mutex_);
            buttons_.push_back({event.xbutton.button, {event.xbutton.x, event.xbutton.y}});
        }
    }
    XCloseDisplay(display);
}

std::vector<KeyEvent> TestWindow::keys(size_t n) const {
    waitUntil([&] {
        const std::lock_guard lock(mutex_);
        return keys_.size() >= n;
    });
    const std::lock_guard lock(mutex_);
    return keys_;
}

std::vector<ButtonEvent> TestWindow::buttons(size_t n) const {
    waitUntil([&] {
        const std::lock_guard lock(mutex_);
        return buttons_.size() >= n;
    });
    const std::lock_guard lock(mutex_);
    return buttons_;
}

}  // namespace belvedere::tools::testing
