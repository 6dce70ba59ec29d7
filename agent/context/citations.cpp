// SPDX-License-Identifier: Apache-2.0
#include "agent/context/citations.h"

#include <charconv>
#include <optional>
#include <string>

namespace belvedere::agent {

namespace {

constexpr size_t kMaxCitationBytes = 1024;

std::optional<size_t> lineNumber(std::string_view text) {
    size_t line = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), line);
    if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
        return std::nullopt;
    }
    return line;
}

/// "path:first-last", the inside of the brackets.
std::optional<Citation> parse(std::string_view inside, const SourceMap& sources) {
    const size_t colon = inside.rfind(':');
    if (colon == std::string_view::npos || colon == 0) {
        return std::nullopt;
    }
    Citation citation;
    citation.path = inside.substr(0, colon);
    if (!sources.hasFile(citation.path) &&
        (citation.path.find_first_of("/.") == std::string::npos ||
         citation.path.find_first_of("`\"'(){}") != std::string::npos ||
         citation.path.front() == ' ' || citation.path.back() == ' ')) {
        return std::nullopt;
    }
    const std::string_view lines = inside.substr(colon + 1);
    const size_t dash = lines.find('-');
    const std::optional<size_t> first = lineNumber(lines.substr(0, dash));
    const std::optional<size_t> last =
        dash == std::string_view::npos ? first : lineNumber(lines.substr(dash + 1));
    if (!first || !last) {
        return std::nullopt;
    }
    citation.first_line = *first;
    citation.last_line = *last;
    citation.is_in_context = *first >= 1 && sources.covers(citation.path, *first, *last);
    return citation;
}

bool followsExpression(std::string_view answer, size_t pos) {
    if (pos == 0) {
        return false;
    }
    const char c = answer[pos - 1];
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == ')' || c == ']';
}

}  // namespace

std::vector<Citation> findCitations(std::string_view answer, const SourceMap& sources) {
    std::vector<Citation> citations;
    size_t last_end = 0;
    for (size_t open = answer.find('['); open != std::string_view::npos;
         open = answer.find('[', open + 1)) {
        const size_t end =
            answer.substr(0, open + kMaxCitationBytes).find_first_of("[]\n", open + 1);
        if (end == std::string_view::npos || answer[end] != ']') {
            continue;
        }
        const bool joins_citation = !citations.empty() && last_end == open;  // [a:1-2][b:3-4]
        if (!joins_citation && followsExpression(answer, open)) {
            continue;
        }
        std::optional<Citation> citation = parse(answer.substr(open + 1, end - open - 1), sources);
        if (citation) {
            citation->text_begin = open;
            citation->text_end = end + 1;
            last_end = end + 1;
            citations.push_back(std::move(*citation));
        }
    }
    return citations;
}

}  // namespace belvedere::agent
