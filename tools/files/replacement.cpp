// SPDX-License-Identifier: Apache-2.0
#include "tools/files/replacement.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "tools/files/closest_match.h"
#include "tools/files/text.h"

namespace belvedere::tools {
namespace {

constexpr size_t kMaxLinesNamed = 10;

struct Span {
    size_t begin = 0;
    size_t end = 0;
};

std::string withoutCarriageReturns(std::string_view text) {
    std::string result;
    result.reserve(text.size());
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '\r' || i + 1 == text.size() || text[i + 1] != '\n') {
            result += text[i];
        }
    }
    return result;
}

/// Bytes that match at `at`, where a line feed of old_text also matches CRLF; 0: none. old_text is
/// not empty.
size_t matchAt(std::string_view bytes, size_t at, std::string_view old_text) {
    size_t i = at;
    for (const char c : old_text) {
        if (c == '\n' && i + 1 < bytes.size() && bytes[i] == '\r' && bytes[i + 1] == '\n') {
            i += 2;
        } else if (i < bytes.size() && bytes[i] == c) {
            ++i;
        } else {
            return 0;
        }
    }
    return i - at;
}

/// Where old_text stands, without overlaps. Its first byte finds the candidates; "\r\n" is entered
/// at its '\r'.
std::vector<Span> findAll(std::string_view bytes, std::string_view old_text) {
    std::vector<Span> spans;
    const std::string_view starts = old_text.front() == '\n' ? "\r\n" : old_text.substr(0, 1);
    size_t at = bytes.find_first_of(starts);
    while (at != std::string_view::npos) {
        const size_t n = matchAt(bytes, at, old_text);
        if (n > 0) {
            spans.push_back({at, at + n});
        }
        at = bytes.find_first_of(starts, at + std::max<size_t>(n, 1));
    }
    return spans;
}

size_t lineOf(std::string_view bytes, size_t at) {
    return 1 + static_cast<size_t>(std::ranges::count(bytes.substr(0, at), '\n'));
}

/// new_text with the line ends of the piece it replaces, else of the file.
std::string withLineEndsOf(std::string_view bytes, const Span& span, std::string_view new_text) {
    LineEnds ends = countLineEnds(bytes.substr(span.begin, span.end - span.begin));
    if (ends.n_crlf + ends.n_lf == 0) {
        ends = countLineEnds(bytes);
    }
    const std::string plain = withoutCarriageReturns(new_text);
    if (ends.n_crlf <= ends.n_lf) {
        return plain;
    }
    std::string result;
    for (const char c : plain) {
        if (c == '\n') {
            result += '\r';
        }
        result += c;
    }
    return result;
}

Result<void> checkTexts(std::string_view bytes,
                        std::string_view old_text,
                        std::string_view new_text) {
    if (old_text.empty()) {
        return fail(
            ErrorCode::InvalidArgument,
            "old_text: is empty; copy the lines to change, or use write_file for a whole file");
    }
    if (old_text == new_text) {
        return fail(ErrorCode::InvalidArgument, "new_text: is the same as old_text");
    }
    const bool is_ascii =
        std::ranges::all_of(new_text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
    if (!is_ascii && !isUtf8(bytes)) {
        return fail(ErrorCode::InvalidArgument,
                    "new_text: has characters outside ASCII, but the file is not UTF-8; nothing "
                    "was changed, as the "
                    "file would hold two encodings");
    }
    return {};
}

}  // namespace

Result<Replacement> replaceText(std::string_view bytes,
                                std::string_view old_text,
                                std::string_view new_text,
                                ReplaceCount count) {
    BV_TRY(checkTexts(bytes, old_text, new_text));
    // Carriage returns in old_text that are in the file too: the model sees and means them, nothing
    // is translated.
    const bool is_byte_exact = old_text.find('\r') != std::string_view::npos &&
                               bytes.find(old_text) != std::string_view::npos;
    const std::string wanted =
        is_byte_exact ? std::string(old_text) : withoutCarriageReturns(old_text);
    const std::vector<Span> spans = findAll(bytes, wanted);
    if (spans.empty()) {
        return fail(ErrorCode::InvalidArgument, "old_text: not found, nothing was changed; {}",
                    describeClosestMatch(bytes, wanted));
    }
    Replacement result;
    for (const Span& span : spans) {
        result.lines.push_back(lineOf(bytes, span.begin));
    }
    if (spans.size() > 1 && count == ReplaceCount::One) {
        const auto named =
            result.lines.begin() + static_cast<ptrdiff_t>(std::min(spans.size(), kMaxLinesNamed));
        return fail(ErrorCode::InvalidArgument,
                    "old_text: found {} times (lines {}{}), nothing was changed; add lines around "
                    "the one you mean, "
                    "or set replace_all",
                    spans.size(), fmt::join(result.lines.begin(), named, ", "),
                    named == result.lines.end() ? "" : ", ...");
    }
    size_t at = 0;
    for (const Span& span : spans) {
        result.bytes += bytes.substr(at, span.begin - at);
        result.bytes +=
            is_byte_exact ? std::string(new_text) : withLineEndsOf(bytes, span, new_text);
        at = span.end;
    }
    result.bytes += bytes.substr(at);
    return result;
}

}  // namespace belvedere::tools
