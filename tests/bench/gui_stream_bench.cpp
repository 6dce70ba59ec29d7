// SPDX-License-Identifier: Apache-2.0
// What one frame costs the GUI thread while an answer streams at 5,000 tokens a second: the batch
// of events applied, the growing row laid out, the view painted. Prints milliseconds beside the 16
// ms of a frame. Run it on a display: xvfb-run -a build/release/bin/gui_stream_bench
#include <QApplication>
#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "app/models/transcript_model.h"
#include "app/views/transcript_view.h"

namespace belvedere::app {
namespace {

constexpr int kTokensPerSecond = 5000;
constexpr int kFrameMs = 16;
constexpr size_t kTokensPerFrame = size_t{kTokensPerSecond} * kFrameMs / 1000;

/// Prose, lists and code in turn, as models write them; four characters a token.
std::string nextTokens(size_t frame) {
    static const std::string text =
        "The cache is cut into **pages** of `128` tokens [src/pages.h:1-7], so that a prefix can "
        "be "
        "shared between sequences without a copy.\n\n- one page for each block\n- the last one is "
        "partial\n\n```cpp\nint pagesFor(int n_tokens) {\n    return (n_tokens + kPageTokens - 1) "
        "/ "
        "kPageTokens;  // rounded up\n}\n```\n\n";
    std::string tokens;
    for (size_t i = 0; i < kTokensPerFrame * 4; ++i) {
        tokens += text[(frame * kTokensPerFrame * 4 + i) % text.size()];
    }
    return tokens;
}

void report(const char* what, std::vector<double> times) {
    std::sort(times.begin(), times.end());
    const auto at = [&](double share) {
        return times[static_cast<size_t>(share * static_cast<double>(times.size() - 1))];
    };
    fmt::print("{:<28} median {:6.2f} ms   p99 {:6.2f} ms   largest {:6.2f} ms\n", what, at(0.5),
               at(0.99), times.back());
}

int run() {
    using Clock = std::chrono::steady_clock;
    auto theme = Theme::load();
    if (!theme.has_value()) {
        fmt::print(stderr, "{}\n", theme.error().message);
        return 1;
    }
    TranscriptModel model;
    TranscriptView view(**theme, nullptr);
    view.resize(900, 800);
    view.setTranscript(&model);
    view.show();
    QApplication::processEvents();
    model.apply({{1, agent::TurnStarted{"s", "How is the cache organised?"}}});
    std::vector<double> first;
    std::vector<double> last;
    constexpr size_t kFrames = 250;  // 20,000 tokens in 4 s
    for (size_t frame = 0; frame < kFrames; ++frame) {
        const std::string tokens = nextTokens(frame);
        const auto start = Clock::now();
        model.apply({{1, agent::TextDelta{tokens}}});
        QApplication::processEvents();
        view.viewport()->repaint();
        const std::chrono::duration<double, std::milli> time = Clock::now() - start;
        (frame < kFrames / 2 ? first : last).push_back(time.count());
    }
    fmt::print("{} tokens a second: {} a frame of {} ms\n", kTokensPerSecond, kTokensPerFrame,
               kFrameMs);
    report("answer up to 10,000 tokens", first);
    report("up to 20,000 tokens", last);
    return 0;
}

}  // namespace
}  // namespace belvedere::app

int main(int argc, char** argv) {
    const QApplication qt(argc, argv);
    return belvedere::app::run();
}
