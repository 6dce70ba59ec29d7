// SPDX-License-Identifier: Apache-2.0
#include "inference/chat/jinja/text.h"

#include <algorithm>

#include "inference/chat/jinja/unicode.h"

namespace belvedere::inference::jinja {
Text::Data::Data(Meter* meter, std::string b, std::vector<TextRun> r, bool markup)
    : bytes(std::move(b)),
      runs(std::move(r)),
      n_points(countPoints(bytes)),
      is_markup(markup),
      charge(meter, kNodeBytes + bytes.capacity() + runs.capacity() * sizeof(TextRun)) {}

Text::Text(Meter* meter, std::string bytes, std::vector<TextRun> runs, bool is_markup) {
    if (!bytes.empty() || is_markup) {
        data_ = std::make_shared<const Data>(meter, std::move(bytes), std::move(runs), is_markup);
    }
}

bool Text::isTrusted() const {
    return std::ranges::all_of(runs(), [](const TextRun& run) { return run.origin.trusted; });
}

void TextBuilder::append(std::string_view bytes, Origin origin) {
    if (bytes.empty()) {
        return;
    }
    bytes_.append(bytes);
    if (!runs_.empty() && runs_.back().origin == origin) {
        runs_.back().end = bytes_.size();
    } else {
        runs_.push_back({bytes_.size(), origin});
    }
}

void TextBuilder::append(const Text& text, size_t begin, size_t end) {
    const std::span<const TextRun> runs = text.runs();
    auto run = std::ranges::upper_bound(runs, begin, {}, &TextRun::end);
    for (; begin < end; ++run) {
        const size_t run_end = std::min(run->end, end);
        append(text.bytes().substr(begin, run_end - begin), run->origin);
        begin = run_end;
    }
}

}  // namespace belvedere::inference::jinja
