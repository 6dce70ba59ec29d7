// SPDX-License-Identifier: Apache-2.0
// The screen tools on a real (virtual) X server, with a real window that receives what they send.
// clang-format off: X11 defines None, which is a name in GoogleTest
#include <gtest/gtest.h>
#include <X11/XKBlib.h>
#include <X11/Xlib.h>
#include <X11/keysym.h>
// clang-format on

#include <opencv2/imgcodecs.hpp>

#include "tests/tools/screen/x_server.h"
#include "tests/tools/tool_runner.h"
#include "tools/screen/click.h"
#include "tools/screen/display.h"
#include "tools/screen/effect.h"
#include "tools/screen/press_key.h"
#include "tools/screen/screenshot.h"
#include "tools/screen/type_text.h"

namespace belvedere::tools {
namespace {

using testing::ButtonEvent;
using testing::call;
using testing::Json;
using testing::KeyEvent;
using testing::TestWindow;
using testing::textOf;
using testing::XServer;

constexpr unsigned long kColour = 0x336699;
constexpr unsigned long kPressedColour = 0xCC4411;
constexpr PixelPoint kMiddle = {TestWindow::kOrigin.x + TestWindow::kSize.width / 2,
                                TestWindow::kOrigin.y + TestWindow::kSize.height / 2};

class Screen : public ::testing::Test {
  protected:
    void SetUp() override {
        server_ = XServer::start("800x600x24");
        if (server_ == nullptr) {
            GTEST_SKIP() << "Xvfb is not installed";
        }
        window_ = std::make_unique<TestWindow>(kColour, kPressedColour);
    }

    /// Picture pixel over a screen pixel, after a screenshot.
    PixelPoint inPicture(PixelPoint screen) {
        EXPECT_TRUE(call(*screenshot_, Json::object()).has_value());
        return log_->latest("session")->toPicture(screen);
    }

    std::vector<unsigned long> symbols(size_t n) const {
        std::vector<unsigned long> result;
        for (const KeyEvent& key : window_->keys(n)) {
            result.push_back(key.symbol);
        }
        return result;
    }

    std::unique_ptr<XServer> server_;
    std::unique_ptr<TestWindow> window_;
    std::shared_ptr<ScreenLog> log_ = std::make_shared<ScreenLog>();
    std::unique_ptr<agent::Tool> screenshot_ = makeScreenshot(log_);
    std::unique_ptr<agent::Tool> click_ = makeClick(log_);
    std::unique_ptr<agent::Tool> type_ = makeTypeText(log_);
    std::unique_ptr<agent::Tool> press_ = makePressKey(log_);
};

TEST_F(Screen, CaptureShowsTheWindowWhereItIs) {
    const auto display = *XDisplay::open();
    EXPECT_EQ(*display->screenSize(), (PixelSize{800, 600}));
    const cv::Mat picture = *display->capture();
    ASSERT_EQ(picture.size(), cv::Size(800, 600));
    for (int y = 0; y < picture.rows; ++y) {
        for (int x = 0; x < picture.cols; ++x) {
            const bool is_inside = x >= 100 && x < 400 && y >= 120 && y < 320;
            const auto& pixel = picture.at<cv::Vec4b>(y, x);
            ASSERT_EQ(pixel == cv::Vec4b(0x99, 0x66, 0x33, 255), is_inside) << x << "," << y;
            ASSERT_EQ(pixel[3], 255);
        }
    }
}

TEST(ScreenDepth, SixteenBitScreensAreCaptured) {
    const auto server = XServer::start("320x400x16");
    if (server == nullptr) {
        GTEST_SKIP() << "Xvfb is not installed";
    }
    const TestWindow window(0xF81F, 0);  // red and blue in 5-6-5
    const auto display = *XDisplay::open();
    EXPECT_EQ(display->capture()->at<cv::Vec4b>(200, 200), cv::Vec4b(255, 0, 255, 255));
}

TEST(ScreenDepth, ColourMappedScreensAreRefused) {
    const auto server = XServer::start("320x240x8");
    if (server == nullptr) {
        GTEST_SKIP() << "Xvfb is not installed";
    }
    EXPECT_EQ((*XDisplay::open())->capture().error().code, ErrorCode::Unsupported);
}

TEST_F(Screen, ScreenshotHasTheSizeTheEncoderKeeps) {
    const auto result = call(*screenshot_, Json::object());
    ASSERT_TRUE(result.has_value()) << textOf(result);
    const std::vector<uchar> bytes(result->image_png.begin(), result->image_png.end());
    const cv::Mat picture = cv::imdecode(bytes, cv::IMREAD_COLOR);
    EXPECT_EQ(picture.size(), cv::Size(756, 560));
    EXPECT_EQ(result->data["sent_size"], Json::array({756, 560}));
    EXPECT_EQ(result->data["physical_size"], Json::array({800, 600}));
    const PixelPoint middle = log_->latest("session")->toPicture(kMiddle);
    EXPECT_EQ(picture.at<cv::Vec3b>(middle.y, middle.x), cv::Vec3b(0x99, 0x66, 0x33));
}

TEST_F(Screen, ClickNeedsAScreenshotOfTheSession) {
    EXPECT_EQ(textOf(call(*click_, {{"x", 1}, {"y", 1}})),
              "error: click: no screenshot was taken in this session: take one first");
    ASSERT_TRUE(call(*screenshot_, Json::object(), "other").has_value());
    EXPECT_FALSE(call(*click_, {{"x", 1}, {"y", 1}}).has_value());
    EXPECT_EQ(textOf(call(*click_, {{"x", 756}, {"y", 1}}, "other")),
              "error: click: (756, 1) is outside the screenshot of 756x560 pixels");
    EXPECT_FALSE(call(*click_, {{"x", 1}, {"y", -1}}, "other").has_value());
    log_->note("session", CoordinateRecord{{0, 0}, {1024, 768}, {756, 560}});
    EXPECT_NE(textOf(call(*click_, {{"x", 1}, {"y", 1}}))
                  .find("the screen is 800x600 now and was 1024x768"),
              std::string::npos);
    EXPECT_TRUE(window_->buttons(0).empty());
}

TEST_F(Screen, ClickHitsThePixelAndReportsTheChange) {
    const PixelPoint at = inPicture(kMiddle);
    const PixelPoint screen = *log_->latest("session")->toScreen(at.x, at.y);
    const auto result = call(*click_, {{"x", at.x}, {"y", at.y}});
    ASSERT_TRUE(result.has_value()) << textOf(result);
    EXPECT_EQ(window_->buttons(1),
              (std::vector<ButtonEvent>{
                  {1, {screen.x - TestWindow::kOrigin.x, screen.y - TestWindow::kOrigin.y}}}));
    EXPECT_EQ(result->data["effect"], "delivered");
    EXPECT_EQ(result->data["pixels_changed"], true);
    EXPECT_EQ(result->data["changed_box"], Json::array({100, 120, 300, 200}));
    EXPECT_EQ(result->text.find("success"), std::string::npos);
}

TEST_F(Screen, ClickHasButtonsAndCounts) {
    const PixelPoint at = inPicture(kMiddle);
    ASSERT_TRUE(
        call(*click_, {{"x", at.x}, {"y", at.y}, {"button", "right"}, {"count", 2}}).has_value());
    const std::vector<ButtonEvent> events = window_->buttons(2);
    ASSERT_EQ(events.size(), 2U);
    EXPECT_EQ(events[0].button, 3U);
    EXPECT_EQ(events[1], events[0]);
}

TEST_F(Screen, ClickWithoutEffectSaysSo) {
    const PixelPoint at = inPicture({700, 500});
    const auto result = call(*click_, {{"x", at.x}, {"y", at.y}});
    ASSERT_TRUE(result.has_value()) << textOf(result);
    EXPECT_EQ(result->data["pixels_changed"], false);
    EXPECT_NE(result->text.find("no pixel of the screen changed"), std::string::npos);
    EXPECT_TRUE(window_->buttons(0).empty());
}

TEST_F(Screen, TypedTextArrivesWhateverTheLayout) {
    const auto result = call(*type_, {{"text", "Hi! \"ä€日\n"}});
    ASSERT_TRUE(result.has_value()) << textOf(result);
    EXPECT_EQ(symbols(9), (std::vector<unsigned long>{'H', 'i', '!', ' ', '"', 0xE4, 0x010020AC,
                                                      0x010065E5, XK_Return}));
}

TEST_F(Screen, MoreCharactersThanFreeKeysArriveInOrder) {
    std::string text;
    std::vector<unsigned long> expected;
    for (unsigned i = 0; i < 120; ++i) {
        const unsigned code_point = 0x4E00 + i;  // three bytes of UTF-8
        text += static_cast<char>(0xE0 | code_point >> 12);
        text += static_cast<char>(0x80 | (code_point >> 6 & 0x3F));
        text += static_cast<char>(0x80 | (code_point & 0x3F));
        expected.push_back(0x01000000 + code_point);
    }
    const auto result = call(*type_, {{"text", text}});
    ASSERT_TRUE(result.has_value()) << textOf(result);
    EXPECT_EQ(symbols(120), expected);
}

/// Every key's symbols.
std::vector<KeySym> keyboardMapping(Display* display) {
    int first = 0;
    int last = 0;
    int n_per_code = 0;
    XDisplayKeycodes(display, &first, &last);
    KeySym* symbols =
        XGetKeyboardMapping(display, static_cast<KeyCode>(first), last - first + 1, &n_per_code);
    const std::vector<KeySym> result(symbols, symbols + (last - first + 1) * n_per_code);
    XFree(symbols);
    return result;
}

TEST_F(Screen, LayoutAndCapsLockAreAsBefore) {
    Display* display = XOpenDisplay(nullptr);
    XkbLockModifiers(display, XkbUseCoreKbd, LockMask, LockMask);
    XSync(display, False);
    const std::vector<KeySym> before = keyboardMapping(display);
    ASSERT_TRUE(call(*type_, {{"text", "aBäÖ日"}}).has_value());
    EXPECT_EQ(symbols(5), (std::vector<unsigned long>{'a', 'B', 0xE4, 0xD6, 0x010065E5}));
    EXPECT_EQ(keyboardMapping(display), before);
    XkbStateRec state{};
    XkbGetState(display, XkbUseCoreKbd, &state);
    EXPECT_EQ(state.locked_mods & LockMask, LockMask);
    XCloseDisplay(display);
}

TEST_F(Screen, ChordsArriveWithTheirModifiers) {
    ASSERT_TRUE(call(*press_, {{"keys", "ctrl+shift+t"}}).has_value());
    ASSERT_TRUE(call(*press_, {{"keys", "F5"}, {"count", 2}}).has_value());
    ASSERT_TRUE(call(*press_, {{"keys", "日"}}).has_value());
    EXPECT_EQ(window_->keys(4),
              (std::vector<KeyEvent>{
                  {XK_T, ControlMask | ShiftMask}, {XK_F5, 0}, {XK_F5, 0}, {0x010065E5, 0}}));
    EXPECT_EQ(textOf(call(*press_, {{"keys", "hyper+x"}})),
              "error: keys: hyper in hyper+x is no modifier (ctrl, shift, alt, super, altgr)");
}

TEST_F(Screen, StopEndsTyping) {
    std::stop_source stop;
    stop.request_stop();
    agent::ToolContext context;
    context.stop = stop.get_token();
    EXPECT_EQ(type_->run({{"text", "abc"}}, context).error().code, ErrorCode::Cancelled);
    EXPECT_TRUE(window_->keys(0).empty());
}

TEST_F(Screen, ErrorsOfTheServerAreResults) {
    const auto display = *XDisplay::open();
    XMapWindow(display->display(), 0x1234567);
    const Result<void> error = display->sync("mapping");
    ASSERT_FALSE(error.has_value());
    EXPECT_NE(error.error().message.find("BadWindow"), std::string::npos) << error.error().message;
    EXPECT_TRUE(display->sync("nothing").has_value());
    EXPECT_TRUE(display->capture().has_value());
}

TEST_F(Screen, TheDeathOfTheServerIsAResult) {
    window_.reset();
    auto display = *XDisplay::open();
    server_->kill();
    EXPECT_EQ(display->capture().error().message, "capturing the screen: the X server is gone");
    EXPECT_EQ(display->click({1, 1}, MouseButton::Left, 1).error().code, ErrorCode::Io);
    display.reset();
    EXPECT_EQ(call(*screenshot_, Json::object()).error().code, ErrorCode::Unsupported);
}

TEST(CompareScreens, FindsWhatChanged) {
    cv::Mat before(20, 30, CV_8UC4, cv::Scalar(1, 2, 3, 255));
    cv::Mat after = before.clone();
    EXPECT_EQ(compareScreens(before, after).n_pixels, 0U);
    after.at<cv::Vec4b>(4, 7)[1] = 9;
    after.at<cv::Vec4b>(10, 25)[0] = 9;
    const ScreenChange change = compareScreens(before, after);
    EXPECT_EQ(change.n_pixels, 2U);
    EXPECT_EQ(change.box, cv::Rect(7, 4, 19, 7));
}

}  // namespace
}  // namespace belvedere::tools
