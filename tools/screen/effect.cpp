// SPDX-License-Identifier: Apache-2.0
#include "tools/screen/effect.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

namespace belvedere::tools {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kWatchTime{600};  ///< most programs have drawn by then
constexpr milliseconds kWatchStep{50};

std::string describeChange(const ScreenChange& change,
                           const cv::Mat& screen,
                           const std::optional<CoordinateRecord>& record) {
    if (change.n_pixels == 0) {
        return fmt::format(
            "Evidence: no pixel of the screen changed within {} ms; it may have had no effect.",
            kWatchTime.count());
    }
    PixelPoint first = {change.box.x, change.box.y};
    PixelPoint last = {change.box.x + change.box.width - 1, change.box.y + change.box.height - 1};
    const char* unit = "screen pixels";
    if (record) {
        first = record->toPicture(first);
        last = record->toPicture(last);
        unit = "pixels of the last screenshot";
    }
    const double share = static_cast<double>(change.n_pixels) / static_cast<double>(screen.total());
    return fmt::format(
        "Evidence: {:.2f} % of the screen changed, within ({}, {}) to ({}, {}) in {}.", 100 * share,
        first.x, first.y, last.x, last.y, unit);
}

}  // namespace

ScreenChange compareScreens(const cv::Mat& before, const cv::Mat& after) {
    CV_Assert(before.size() == after.size() && before.type() == CV_8UC4 && after.type() == CV_8UC4);
    ScreenChange change;
    int left = before.cols;
    int right = -1;
    int top = before.rows;
    int bottom = -1;
    for (int y = 0; y < before.rows; ++y) {
        const auto* a = before.ptr<cv::Vec4b>(y);
        const auto* b = after.ptr<cv::Vec4b>(y);
        if (std::memcmp(a, b, static_cast<size_t>(before.cols) * sizeof(cv::Vec4b)) == 0) {
            continue;
        }
        for (int x = 0; x < before.cols; ++x) {
            if (a[x] != b[x]) {
                ++change.n_pixels;
                left = std::min(left, x);
                right = std::max(right, x);
                top = std::min(top, y);
                bottom = y;
            }
        }
    }
    if (change.n_pixels > 0) {
        change.box = cv::Rect(left, top, right - left + 1, bottom - top + 1);
    }
    return change;
}

Result<agent::ToolOutput> actAndObserve(XDisplay& display,
                                        const std::optional<CoordinateRecord>& record,
                                        const std::function<Result<std::string>()>& action,
                                        const std::stop_token& stop) {
    const cv::Mat before = BV_TRY(display.capture());
    const std::string done = BV_TRY(action());
    ScreenChange change;
    cv::Mat after;
    for (milliseconds waited{0}; waited < kWatchTime && change.n_pixels == 0;
         waited += kWatchStep) {
        if (stop.stop_requested()) {
            return fail(ErrorCode::Cancelled, "{}; stopped before its effect was seen", done);
        }
        std::this_thread::sleep_for(kWatchStep);
        after = BV_TRY(display.capture());
        if (after.size() != before.size()) {
            return fail(ErrorCode::Io, "{}; the screen changed its size: take a new screenshot",
                        done);
        }
        change = compareScreens(before, after);
    }
    agent::ToolOutput output;
    output.text = fmt::format(
        "Delivered to the X server: {}.\n{}\nTake a screenshot to see what happened.\n{}", done,
        describeChange(change, before, record), waylandNote());
    output.data = {
        {"effect", "delivered"},
        {"pixels_changed", change.n_pixels > 0},
        {"n_changed_pixels", change.n_pixels},
        {"changed_box", {change.box.x, change.box.y, change.box.width, change.box.height}}};
    return output;
}

}  // namespace belvedere::tools
