// SPDX-License-Identifier: Apache-2.0
#include "tools/screen/display.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <mutex>

#include <X11/Xlib.h>
#include <X11/Xutil.h>
#include <X11/extensions/XShm.h>
#include <X11/extensions/XTest.h>
#include <sys/ipc.h>
#include <sys/shm.h>

#include "tools/screen/x_image.h"

namespace belvedere::tools {

/// What the server complained about since the last look, and whether it is still there.
struct XDisplay::ErrorState {
    std::string first_error;
    bool is_dead = false;
};

namespace {

/// Xlib has one error handler for the whole program: ours keeps the errors of our connections and
/// passes others on.
struct ErrorRouter {
    std::mutex mutex;
    std::map<Display*, std::string*> errors;
    XErrorHandler previous = nullptr;
    XIOErrorHandler previous_fatal = nullptr;
};

ErrorRouter& router() {
    static ErrorRouter* const kRouter =
        new ErrorRouter;  // never destroyed: the handler outlives main
    return *kRouter;
}

int onXError(Display* display, XErrorEvent* event) {
    XErrorHandler previous = nullptr;
    {
        ErrorRouter& state = router();
        const std::lock_guard lock(state.mutex);
        const auto found = state.errors.find(display);
        if (found != state.errors.end()) {
            if (found->second->empty()) {
                std::array<char, 128> text{};
                XGetErrorText(display, event->error_code, text.data(),
                              static_cast<int>(text.size()));
                *found->second = fmt::format("{} (request {}.{})", text.data(),
                                             int{event->request_code}, int{event->minor_code});
            }
            return 0;
        }
        previous = state.previous;
    }
    return previous == nullptr ? 0 : previous(display, event);
}

/// The server is gone. For our connections Xlib then calls the exit handler set in open(), which
/// returns too.
int onXFatalError(Display* display) {
    XIOErrorHandler previous = nullptr;
    {
        ErrorRouter& state = router();
        const std::lock_guard lock(state.mutex);
        if (state.errors.contains(display)) {
            return 0;
        }
        previous = state.previous_fatal;
    }
    return previous == nullptr ? 0 : previous(display);
}

void installErrorHandlers() {
    ErrorRouter& state = router();
    const std::lock_guard lock(state.mutex);
    const XErrorHandler current = XSetErrorHandler(onXError);
    if (current != onXError) {
        state.previous = current;
    }
    const XIOErrorHandler current_fatal = XSetIOErrorHandler(onXFatalError);
    if (current_fatal != onXFatalError) {
        state.previous_fatal = current_fatal;
    }
}

bool isSet(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0';
}

/// A shared memory segment, attached here and at the server.
class SharedImage {
  public:
    SharedImage(Display* display, const XWindowAttributes& window) : display_(display) {
        image_ = XShmCreateImage(display, window.visual, static_cast<unsigned>(window.depth),
                                 ZPixmap, nullptr, &segment_, static_cast<unsigned>(window.width),
                                 static_cast<unsigned>(window.height));
        if (image_ == nullptr) {
            return;
        }
        const size_t n_bytes =
            static_cast<size_t>(image_->bytes_per_line) * static_cast<size_t>(image_->height);
        segment_.shmid = shmget(IPC_PRIVATE, n_bytes, IPC_CREAT | 0600);
        if (segment_.shmid < 0) {
            return;
        }
        segment_.shmaddr = static_cast<char*>(shmat(segment_.shmid, nullptr, 0));
        is_mapped_ = segment_.shmaddr != reinterpret_cast<char*>(-1);
        image_->data = is_mapped_ ? segment_.shmaddr : nullptr;
        segment_.readOnly = False;
        is_attached_ = is_mapped_ && XShmAttach(display, &segment_) != 0;
        XSync(display, False);
        shmctl(segment_.shmid, IPC_RMID, nullptr);  // goes with the last user
    }

    ~SharedImage() {
        if (is_attached_) {
            XShmDetach(display_, &segment_);
            XSync(display_, False);
        }
        if (image_ != nullptr) {
            image_->data = nullptr;  // not Xlib's to free
            XDestroyImage(image_);
        }
        if (is_mapped_) {
            shmdt(segment_.shmaddr);
        }
    }

    SharedImage(const SharedImage&) = delete;
    SharedImage& operator=(const SharedImage&) = delete;

    /// Null where the server can not share memory with us (another machine, another container).
    [[nodiscard]] XImage* fill(Window root) {
        return is_attached_ && XShmGetImage(display_, root, image_, 0, 0, AllPlanes) != 0 ? image_
                                                                                          : nullptr;
    }

  private:
    Display* display_;
    XShmSegmentInfo segment_{};
    XImage* image_ = nullptr;
    bool is_mapped_ = false;
    bool is_attached_ = false;
};

struct DestroyImage {
    void operator()(XImage* image) const { XDestroyImage(image); }
};

}  // namespace

bool isDisplayNamed() {
    return isSet("DISPLAY");
}

std::string waylandNote() {
    return isSet("WAYLAND_DISPLAY")
               ? "[this is a Wayland session: only windows of X11 programs can be seen and used]\n"
               : "";
}

XDisplay::XDisplay(Display* display, std::unique_ptr<ErrorState> errors)
    : display_(display), errors_(std::move(errors)) {
    installErrorHandlers();
    const std::lock_guard lock(router().mutex);
    router().errors[display_] = &errors_->first_error;
}

XDisplay::~XDisplay() {
    XCloseDisplay(display_);  // may still report errors
    const std::lock_guard lock(router().mutex);
    router().errors.erase(display_);
}

Result<std::unique_ptr<XDisplay>> XDisplay::open() {
    if (!isDisplayNamed()) {
        return fail(ErrorCode::Unsupported, "no display: DISPLAY is not set{}",
                    isSet("WAYLAND_DISPLAY")
                        ? "; this is a Wayland session without X11: start XWayland, or log in to "
                          "an X11 session"
                        : "; start the program in a graphical X11 session, or set DISPLAY");
    }
    const char* name = std::getenv("DISPLAY");
    Display* display = XOpenDisplay(nullptr);
    if (display == nullptr) {
        return fail(ErrorCode::Unsupported,
                    "no display: the X server {} can not be reached; check DISPLAY and the "
                    "permission to connect",
                    name);
    }
    auto errors = std::make_unique<ErrorState>();
    // Without this and onXFatalError Xlib ends the program when the server goes away (libX11 1.7
    // and newer).
    XSetIOErrorExitHandler(
        display, [](Display*, void* state) { static_cast<ErrorState*>(state)->is_dead = true; },
        errors.get());
    std::unique_ptr<XDisplay> connection(new XDisplay(display, std::move(errors)));
    int event = 0;
    int error = 0;
    int major = 0;
    int minor = 0;
    if (XTestQueryExtension(display, &event, &error, &major, &minor) == 0) {
        return fail(ErrorCode::Unsupported, "display {}: has no XTEST extension for input", name);
    }
    return connection;
}

Result<void> XDisplay::sync(std::string_view what) {
    if (!errors_->is_dead) {
        XSync(display_, False);
    }
    std::string error;
    {
        const std::lock_guard lock(router().mutex);
        error = std::exchange(errors_->first_error, {});
    }
    if (errors_->is_dead) {
        return fail(ErrorCode::Io, "{}: the X server is gone", what);
    }
    if (!error.empty()) {
        return fail(ErrorCode::Io, "{}: the X server says: {}", what, error);
    }
    return {};
}

Result<PixelSize> XDisplay::screenSize() {
    XWindowAttributes window{};
    const int is_known = XGetWindowAttributes(display_, DefaultRootWindow(display_), &window);
    BV_TRY(sync("reading the size of the screen"));
    if (is_known == 0) {
        return fail(ErrorCode::Io, "the X server does not tell the size of the screen");
    }
    return PixelSize{window.width, window.height};
}

Result<cv::Mat> XDisplay::capture() {
    const Window root = DefaultRootWindow(display_);
    XWindowAttributes window{};
    const int is_known = XGetWindowAttributes(display_, root, &window);
    BV_TRY(sync("capturing the screen"));
    if (is_known == 0) {
        return fail(ErrorCode::Io, "capturing the screen: the X server does not tell its size");
    }
    if (XShmQueryExtension(display_) != 0) {
        SharedImage shared(display_, window);
        const XImage* image = shared.fill(root);
        if (sync("capturing the screen").has_value() && image != nullptr) {
            return toBgra(*image);
        }
        // Refused: it is asked for over the connection.
    }
    const std::unique_ptr<XImage, DestroyImage> image(
        XGetImage(display_, root, 0, 0, static_cast<unsigned>(window.width),
                  static_cast<unsigned>(window.height), AllPlanes, ZPixmap));
    BV_TRY(sync("capturing the screen"));
    if (image == nullptr) {
        return fail(ErrorCode::Io, "capturing the screen: the X server sent no picture");
    }
    return toBgra(*image);
}

unsigned XDisplay::physicalButton(MouseButton button) {
    const auto logical = static_cast<unsigned char>(
        button == MouseButton::Left ? 1 : (button == MouseButton::Middle ? 2 : 3));
    // XTEST takes buttons before the user's mapping (left-handed mice).
    std::array<unsigned char, 32> mapping{};
    const int n = XGetPointerMapping(display_, mapping.data(), static_cast<int>(mapping.size()));
    const auto end = mapping.begin() + std::clamp(n, 0, static_cast<int>(mapping.size()));
    const auto found = std::find(mapping.begin(), end, logical);
    return found == end ? logical : static_cast<unsigned>(found - mapping.begin()) + 1;
}

Result<PixelPoint> XDisplay::click(PixelPoint where, MouseButton button, int count) {
    const unsigned physical = physicalButton(button);
    XTestFakeMotionEvent(display_, DefaultScreen(display_), where.x, where.y, CurrentTime);
    for (int i = 0; i < count; ++i) {
        XTestFakeButtonEvent(display_, physical, True, CurrentTime);
        XTestFakeButtonEvent(display_, physical, False, CurrentTime);
    }
    BV_TRY(sync("clicking"));
    Window root = 0;
    Window child = 0;
    PixelPoint at;
    PixelPoint in_window;
    unsigned mask = 0;
    XQueryPointer(display_, DefaultRootWindow(display_), &root, &child, &at.x, &at.y, &in_window.x,
                  &in_window.y, &mask);
    BV_TRY(sync("reading the pointer"));
    return at;
}

}  // namespace belvedere::tools
