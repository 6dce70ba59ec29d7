// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "inference/chat/jinja/html.h"
#include "inference/chat/jinja/methods.h"
#include "inference/chat/jinja/search.h"
#include "inference/chat/jinja/unicode.h"

namespace belvedere::inference::jinja {
namespace {

/// Whether the point bytes[begin, end) is one to trim.
[[nodiscard]] bool isTrimmed(std::string_view bytes,
                             size_t begin,
                             size_t end,
                             const Text* characters) {
    if (characters == nullptr) {
        size_t at = begin;
        return isSpace(nextPoint(bytes, at));
    }
    // UTF-8 finds whole code points only: no code point's bytes occur inside another's.
    return characters->bytes().find(bytes.substr(begin, end - begin)) != std::string_view::npos;
}

/// Python's replacement of an empty text: before each character and at the end.
[[nodiscard]] Result<Text> insertEverywhere(Runtime& runtime,
                                            const Text& text,
                                            const Text& to,
                                            size_t count) {
    const size_t n = std::min(count, text.nPoints() + 1);
    if (n > 0 && to.bytes().size() > runtime.limits.max_value_bytes / n) {
        return fail(ErrorCode::Corrupt, "replacing {} times needs too much memory", n);
    }
    BV_TRY(runtime.reserve(text.bytes().size() + n * to.bytes().size()));
    runtime.meter.spend(text.nPoints() / 4);
    TextBuilder builder(&runtime.meter);
    size_t at = 0;
    for (size_t i = 0; i < n; ++i) {
        builder.append(to);
        const size_t begin = at;
        if (at < text.bytes().size()) {
            (void)nextPoint(text.bytes(), at);
        }
        builder.append(text, begin, at);
    }
    builder.append(text, at, text.bytes().size());
    return builder.finish(text.isMarkup());
}

}  // namespace

Text trimText(Runtime& runtime, const Text& text, const Text* characters, TrimSide side) {
    const std::string_view bytes = text.bytes();
    const size_t n_steps =
        1 + (characters == nullptr ? 0 : characters->bytes().size() / 64);  // for each character
    size_t begin = 0;
    size_t end = bytes.size();
    while (side != TrimSide::Right && begin < end && runtime.meter.spend(n_steps)) {
        size_t next = begin;
        (void)nextPoint(bytes, next);
        if (!isTrimmed(bytes, begin, next, characters)) {
            break;
        }
        begin = next;
    }
    while (side != TrimSide::Left && begin < end && runtime.meter.spend(n_steps)) {
        const size_t previous = previousOffset(bytes, end);
        if (!isTrimmed(bytes, previous, end, characters)) {
            break;
        }
        end = previous;
    }
    return sliceText(runtime, text, begin, end);
}

Result<Text> replaceText(
    Runtime& runtime, const Text& text, const Text& from, const Text& plain_to, int64_t count) {
    const Text to = text.isMarkup() ? BV_TRY(escapeHtml(runtime, plain_to)) : plain_to;
    const size_t most = count < 0 ? SIZE_MAX : static_cast<size_t>(count);
    if (from.empty()) {
        return insertEverywhere(runtime, text, to, most);
    }
    const std::string_view bytes = text.bytes();
    runtime.meter.spendBytes(searchCost(bytes, from.bytes()));
    TextBuilder builder(&runtime.meter);
    size_t begin = 0;
    size_t n_done = 0;
    for (size_t found = findBytes(bytes, from.bytes());
         found != std::string_view::npos && n_done < most;
         found = findBytes(bytes, from.bytes(), begin)) {
        builder.append(text, begin, found);
        builder.append(to);
        begin = found + from.bytes().size();
        ++n_done;
        runtime.meter.spend(1);
        if (!runtime.meter.hasRoomFor(builder.size())) {
            return fail(ErrorCode::Corrupt, "replacing {} times needs too much memory", n_done);
        }
    }
    if (n_done == 0) {
        return text;
    }
    builder.append(text, begin, bytes.size());
    BV_TRY(runtime.reserve(builder.size()));
    return builder.finish(text.isMarkup());
}

Result<Text> joinTexts(Runtime& runtime, const Text& separator, const std::vector<Text>& items) {
    size_t n_bytes = 0;
    for (const Text& item : items) {
        n_bytes += item.bytes().size() + separator.bytes().size();
        if (n_bytes > runtime.limits.max_value_bytes) {
            return fail(ErrorCode::Corrupt, "joining {} texts needs too much memory", items.size());
        }
    }
    BV_TRY(runtime.reserve(n_bytes));
    runtime.meter.spend(items.size() / 8);
    TextBuilder builder(&runtime.meter);
    for (size_t i = 0; i < items.size(); ++i) {
        if (i > 0) {
            builder.append(separator);
        }
        builder.append(items[i]);
    }
    return builder.finish(separator.isMarkup());
}

Value mapText(Runtime& runtime, const Text& text, std::string (*change)(std::string_view)) {
    runtime.meter.spendBytes(text.bytes().size() * 16);  // decodes each character
    const std::string mapped = change(text.bytes());
    if (!text.isAscii()) {
        return derivedText(runtime, mapped, {&text});
    }
    TextBuilder builder(&runtime.meter);  // one byte for one byte, so the runs stay
    size_t begin = 0;
    for (const TextRun& run : text.runs()) {
        builder.append(std::string_view(mapped).substr(begin, run.end - begin), run.origin);
        begin = run.end;
    }
    return builder.finish(text.isMarkup());
}

Result<Text> padText(
    Runtime& runtime, const Text& text, int64_t n_left, int64_t n_right, const Text& fill) {
    if (n_left <= 0 && n_right <= 0) {
        return text;
    }
    const size_t left = static_cast<size_t>(std::max<int64_t>(n_left, 0));
    const size_t right = static_cast<size_t>(std::max<int64_t>(n_right, 0));
    constexpr size_t kMaxPadding = 1U << 20;
    if (left > kMaxPadding || right > kMaxPadding) {
        return fail(ErrorCode::Corrupt, "padding a text with more than {} characters", kMaxPadding);
    }
    BV_TRY(runtime.reserve(text.bytes().size() + (left + right) * fill.bytes().size()));
    TextBuilder builder(&runtime.meter);
    for (size_t i = 0; i < left; ++i) {
        builder.append(fill);
    }
    builder.append(text);
    for (size_t i = 0; i < right; ++i) {
        builder.append(fill);
    }
    return builder.finish(text.isMarkup());
}

}  // namespace belvedere::inference::jinja
