// SPDX-License-Identifier: Apache-2.0
#include "inference/chat/jinja/html.h"

#include <array>

namespace belvedere::inference::jinja {

Text markSafe(Runtime& runtime, const Text& text, bool is_markup) {
    if (text.isMarkup() == is_markup) {
        return text;
    }
    runtime.meter.spendBytes(text.bytes().size());
    TextBuilder builder(&runtime.meter);
    builder.append(text);
    return builder.finish(is_markup);
}

Result<Text> escapeHtml(Runtime& runtime, const Text& text) {
    constexpr std::string_view kSpecial = "&<>\"'";
    constexpr std::array<std::string_view, 5> kEntities = {"&amp;", "&lt;", "&gt;", "&#34;",
                                                           "&#39;"};
    if (text.isMarkup()) {
        return text;
    }
    BV_TRY(runtime.reserve(text.bytes().size()));
    TextBuilder builder(&runtime.meter);
    size_t begin = 0;
    for (const TextRun& run : text.runs()) {
        std::string escaped;
        for (const char c : text.bytes().substr(begin, run.end - begin)) {
            const size_t special = kSpecial.find(c);
            if (special == std::string_view::npos) {
                escaped.push_back(c);
            } else {
                escaped += kEntities[special];
            }
        }
        builder.append(escaped, run.origin);
        begin = run.end;
    }
    return builder.finish(true);
}

}  // namespace belvedere::inference::jinja
