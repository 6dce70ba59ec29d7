// SPDX-License-Identifier: Apache-2.0
#include "inference/chat/jinja/search.h"

#include <vector>

namespace belvedere::inference::jinja {
namespace {

constexpr size_t kShort =
    16;  // the library's search compares at most this much again for each byte

/// Index of the first occurrence, where text and part are read through `at`, forwards or backwards.
template <class At>
[[nodiscard]] size_t matchLinear(size_t n_text, size_t n_part, At at) {
    std::vector<size_t> border(n_part,
                               0);  // length of the longest proper prefix that is also a suffix
    for (size_t i = 1, k = 0; i < n_part; ++i) {
        while (k > 0 && at.part(i) != at.part(k)) {
            k = border[k - 1];
        }
        k += at.part(i) == at.part(k) ? size_t{1} : size_t{0};
        border[i] = k;
    }
    for (size_t i = 0, k = 0; i < n_text; ++i) {
        while (k > 0 && at.text(i) != at.part(k)) {
            k = border[k - 1];
        }
        k += at.text(i) == at.part(k) ? size_t{1} : size_t{0};
        if (k == n_part) {
            return i + 1 - n_part;
        }
    }
    return std::string_view::npos;
}

struct Forward {
    std::string_view text_bytes;
    std::string_view part_bytes;

    [[nodiscard]] char text(size_t i) const { return text_bytes[i]; }

    [[nodiscard]] char part(size_t i) const { return part_bytes[i]; }
};

struct Backward {
    std::string_view text_bytes;
    std::string_view part_bytes;

    [[nodiscard]] char text(size_t i) const { return text_bytes[text_bytes.size() - 1 - i]; }

    [[nodiscard]] char part(size_t i) const { return part_bytes[part_bytes.size() - 1 - i]; }
};

}  // namespace

size_t findBytes(std::string_view text, std::string_view part, size_t from) {
    if (part.size() <= kShort) {
        return text.find(part, from);
    }
    if (from > text.size() || part.size() > text.size() - from) {
        return std::string_view::npos;
    }
    const std::string_view rest = text.substr(from);
    const size_t found = matchLinear(rest.size(), part.size(), Forward{rest, part});
    return found == std::string_view::npos ? found : from + found;
}

size_t searchCost(std::string_view text, std::string_view part) {
    if (part.size() <= 1) {
        return text.size();
    }
    return part.size() <= kShort ? text.size() * 4 : (text.size() + part.size()) * 12;
}

size_t rfindBytes(std::string_view text, std::string_view part) {
    if (part.size() <= kShort) {
        return text.rfind(part);
    }
    if (part.size() > text.size()) {
        return std::string_view::npos;
    }
    const size_t found = matchLinear(text.size(), part.size(), Backward{text, part});
    return found == std::string_view::npos ? found : text.size() - found - part.size();
}

}  // namespace belvedere::inference::jinja
