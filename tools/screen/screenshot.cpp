// SPDX-License-Identifier: Apache-2.0
#include "tools/screen/screenshot.h"

#include <opencv2/imgproc.hpp>
#include <png.h>

#include "tools/screen/display.h"
#include "tools/tool_input.h"

namespace belvedere::tools {
namespace {

struct ScreenshotInput {};

/// CV_8UC3, blue green red, as PNG. libpng itself: OpenCV's codecs take 0.14 s to load.
Result<std::string> encodePng(const cv::Mat& picture) {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = static_cast<png_uint_32>(picture.cols);
    image.height = static_cast<png_uint_32>(picture.rows);
    image.format = PNG_FORMAT_BGR;
    image.flags = PNG_IMAGE_FLAG_FAST;  // the file lives as long as the session: speed over size
    png_alloc_size_t n_bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
    std::string png(n_bytes, '\0');
    const auto row_bytes = static_cast<png_int_32>(picture.step[0]);
    if (png_image_write_to_memory(&image, png.data(), &n_bytes, 0, picture.data, row_bytes,
                                  nullptr) == 0) {
        return fail(ErrorCode::Internal, "screenshot: {}", image.message);
    }
    png.resize(n_bytes);
    return png;
}

/// A picture of `size` as PNG.
Result<std::string> encodePicture(const cv::Mat& screen, PixelSize size) {
    try {
        cv::Mat picture;
        cv::cvtColor(screen, picture, cv::COLOR_BGRA2BGR);
        if (size.width != picture.cols || size.height != picture.rows) {
            const bool shrinks = size.width <= picture.cols && size.height <= picture.rows;
            cv::resize(picture, picture, cv::Size(size.width, size.height), 0, 0,
                       shrinks ? cv::INTER_AREA : cv::INTER_CUBIC);
        }
        return encodePng(picture);
    } catch (const cv::Exception& exception) {
        return fail(ErrorCode::Internal, "screenshot: {}", exception.what());
    }
}

class Screenshot : public TypedTool<ScreenshotInput> {
  public:
    explicit Screenshot(std::shared_ptr<ScreenLog> log)
        : TypedTool(Fields<ScreenshotInput>()), log_(std::move(log)) {}

    [[nodiscard]] std::string name() const override { return "screenshot"; }

    [[nodiscard]] std::string description() const override {
        return "Takes a picture of the whole screen (X11, all monitors), scaled to the size the "
               "model sees. The pixels "
               "of this picture are the coordinates of click. Everything visible on the screen is "
               "in it; the pointer is "
               "not.";
    }

    [[nodiscard]] agent::ToolKind kind() const override { return agent::ToolKind::Read; }

    [[nodiscard]] bool alwaysAsks() const override { return true; }

  protected:
    [[nodiscard]] std::string titleOf(const ScreenshotInput&) const override {
        return "Take a screenshot";
    }

    [[nodiscard]] std::string subjectOf(const ScreenshotInput&) const override { return "screen"; }

    [[nodiscard]] agent::Verdict verdictOf(const ScreenshotInput&) const override {
        return agent::Verdict::Ask;
    }

    Result<agent::ToolOutput> runTyped(const ScreenshotInput& input,
                                       const agent::ToolContext& context) override;

  private:
    std::shared_ptr<ScreenLog> log_;  ///< shared with click; it has its own lock
};

Result<agent::ToolOutput> Screenshot::runTyped(const ScreenshotInput&,
                                               const agent::ToolContext& context) {
    const std::unique_ptr<XDisplay> display = BV_TRY(XDisplay::open());
    const cv::Mat screen = BV_TRY(display->capture());
    CoordinateRecord record;
    record.physical = {screen.cols, screen.rows};
    record.sent = BV_TRY(encoderSize(record.physical));

    agent::ToolOutput output;
    output.image_png = BV_TRY(encodePicture(screen, record.sent));
    log_->note(context.session_id, record);
    output.text = fmt::format(
        "Picture of {}x{} pixels, showing the screen of {}x{}. Coordinates of click are pixels of "
        "this picture, (0, 0) is "
        "its upper left.\n{}",
        record.sent.width, record.sent.height, record.physical.width, record.physical.height,
        waylandNote());
    output.data = {{"origin", {record.origin.x, record.origin.y}},
                   {"physical_size", {record.physical.width, record.physical.height}},
                   {"sent_size", {record.sent.width, record.sent.height}},
                   {"scale", {record.scaleX(), record.scaleY()}}};
    return output;
}

}  // namespace

std::unique_ptr<agent::Tool> makeScreenshot(std::shared_ptr<ScreenLog> log) {
    return std::make_unique<Screenshot>(std::move(log));
}

}  // namespace belvedere::tools
