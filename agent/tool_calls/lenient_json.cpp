// SPDX-License-Identifier: Apache-2.0
#include "agent/tool_calls/lenient_json.h"

#include <charconv>
#include <iterator>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "agent/tool_calls/markers.h"
#include "agent/tool_calls/parser.h"

namespace belvedere::agent {

namespace {

constexpr std::string_view kLeftQuote = "\xE2\x80\x9C";   // U+201C
constexpr std::string_view kRightQuote = "\xE2\x80\x9D";  // U+201D

void appendUtf8(std::string& out, uint32_t code) {
    const auto byte = [&](uint32_t value) { out += static_cast<char>(value); };
    if (code < 0x80U) {
        byte(code);
    } else if (code < 0x800U) {
        byte(0xC0U | (code >> 6));
        byte(0x80U | (code & 0x3FU));
    } else if (code < 0x10000U) {
        byte(0xE0U | (code >> 12));
        byte(0x80U | ((code >> 6) & 0x3FU));
        byte(0x80U | (code & 0x3FU));
    } else {
        byte(0xF0U | (code >> 18));
        byte(0x80U | ((code >> 12) & 0x3FU));
        byte(0x80U | ((code >> 6) & 0x3FU));
        byte(0x80U | (code & 0x3FU));
    }
}

class Reader {
  public:
    explicit Reader(std::string_view text) : text_(text) {}

    [[nodiscard]] size_t pos() const { return pos_; }

    Result<Json> value(size_t depth) {
        if (depth > kMaxCallDepth) {
            return fail(ErrorCode::InvalidArgument, "nested deeper than {} levels", kMaxCallDepth);
        }
        skipWhiteSpace();
        if (pos_ == text_.size()) {
            return missing("a value");
        }
        if (text_[pos_] == '{') {
            return object(depth);
        }
        if (text_[pos_] == '[') {
            return array(depth);
        }
        if (openingQuoteBytes(rest()) > 0) {
            return Json(BV_TRY(string()));
        }
        return scalar();
    }

  private:
    [[nodiscard]] std::string_view rest() const { return text_.substr(pos_); }

    [[nodiscard]] tl::unexpected<Error> missing(const char* what) const {
        return fail(ErrorCode::InvalidArgument, "{} is missing at byte {}{}", what, pos_,
                    pos_ == text_.size() ? ", where the text ends" : "");
    }

    void skipWhiteSpace() {
        pos_ = std::min(text_.find_first_not_of(kWhiteSpace, pos_), text_.size());
    }

    bool take(char c) {
        skipWhiteSpace();
        if (pos_ < text_.size() && text_[pos_] == c) {
            ++pos_;
            return true;
        }
        return false;
    }

    Result<Json> object(size_t depth) {
        ++pos_;
        Json json = Json::object();
        auto& members = json.get_ref<Json::object_t&>();
        std::unordered_map<std::string, size_t> index;  // the last of two equal names counts
        while (!take('}')) {
            skipWhiteSpace();
            if (openingQuoteBytes(rest()) == 0) {
                return missing("a name in quotes or '}'");
            }
            std::string name = BV_TRY(string());
            if (!take(':')) {
                return missing("':'");
            }
            Json member = BV_TRY(value(depth + 1));
            const auto [it, is_new] = index.emplace(name, members.size());
            if (is_new) {
                members.emplace_back(std::move(name), std::move(member));
            } else {
                std::next(members.begin(), static_cast<std::ptrdiff_t>(it->second))->second =
                    std::move(member);
            }
            if (!take(',')) {
                if (!take('}')) {
                    return missing("',' or '}'");
                }
                break;
            }
        }
        return json;
    }

    Result<Json> array(size_t depth) {
        ++pos_;
        Json json = Json::array();
        while (!take(']')) {
            json.push_back(BV_TRY(value(depth + 1)));
            if (!take(',')) {
                if (!take(']')) {
                    return missing("',' or ']'");
                }
                break;
            }
        }
        return json;
    }

    Result<std::string> string() {
        const char opening = text_[pos_];
        pos_ += openingQuoteBytes(rest());
        std::string out;
        while (pos_ < text_.size()) {
            if (const size_t n = closingQuoteBytes(rest(), opening); n > 0) {
                pos_ += n;
                return out;
            }
            if (text_[pos_] == '\\' && pos_ + 1 < text_.size()) {
                BV_TRY(escape(out));
            } else {
                out += text_[pos_++];
            }
        }
        return missing("the closing quote of a string");
    }

    Result<void> escape(std::string& out) {
        constexpr std::string_view kNames = "bfnrt";
        constexpr std::string_view kValues = "\b\f\n\r\t";
        const char c = text_[pos_ + 1];
        pos_ += 2;
        if (c == 'u') {
            return unicodeEscape(out);
        }
        const size_t known = kNames.find(c);
        out += known == std::string_view::npos ? c : kValues[known];
        return {};
    }

    std::optional<uint32_t> fourHexDigits() {
        uint32_t code = 0;
        const std::string_view digits = text_.substr(std::min(pos_, text_.size()), 4);
        const auto [end, error] =
            std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
        if (digits.size() != 4 || error != std::errc() || end != digits.data() + 4) {
            return std::nullopt;
        }
        pos_ += 4;
        return code;
    }

    Result<void> unicodeEscape(std::string& out) {
        constexpr uint32_t kReplacement = 0xFFFD;
        const std::optional<uint32_t> first = fourHexDigits();
        if (!first) {
            return missing("four hexadecimal digits");
        }
        uint32_t code = *first;
        if (code >= 0xD800U && code < 0xDC00U && rest().starts_with("\\u")) {
            const size_t before = pos_;
            pos_ += 2;
            const std::optional<uint32_t> second = fourHexDigits();
            if (second && *second >= 0xDC00U && *second < 0xE000U) {
                code = 0x10000U + ((code - 0xD800U) << 10) + (*second - 0xDC00U);
            } else {
                pos_ = before;
            }
        }
        appendUtf8(out, code >= 0xD800U && code < 0xE000U ? kReplacement : code);
        return {};
    }

    Result<Json> scalar() {
        const size_t end = std::min(text_.find_first_of(" \t\r\n,:;]}<`", pos_), text_.size());
        const std::string_view word = text_.substr(pos_, end - pos_);
        const std::optional<Json> value = scalarFrom(word);
        if (!value) {
            return missing("a value");
        }
        pos_ = end;
        return *value;
    }

    static std::optional<Json> scalarFrom(std::string_view word) {
        if (word == "true" || word == "True") {
            return Json(true);
        }
        if (word == "false" || word == "False") {
            return Json(false);
        }
        if (word == "null" || word == "None") {
            return Json(nullptr);
        }
        // The strict reader knows what a number is; it sees one word, so its own nesting does not
        // matter.
        Json number = word.empty() ? Json() : Json::parse(word, nullptr, false);
        return number.is_number() ? std::optional<Json>(std::move(number)) : std::nullopt;
    }

    std::string_view text_;
    size_t pos_ = 0;
};

}  // namespace

size_t openingQuoteBytes(std::string_view text) {
    if (text.starts_with('"') || text.starts_with('\'')) {
        return 1;
    }
    return text.starts_with(kLeftQuote) || text.starts_with(kRightQuote) ? kLeftQuote.size() : 0;
}

size_t closingQuoteBytes(std::string_view text, char opening) {
    if (opening == '"' || opening == '\'') {
        return text.starts_with(opening) ? 1 : 0;
    }
    return text.starts_with(kRightQuote) || text.starts_with(kLeftQuote) ? kRightQuote.size() : 0;
}

Result<LenientValue> readLenientJson(std::string_view text) {
    Reader reader(text);
    LenientValue result;
    result.value = BV_TRY(reader.value(1));
    result.n_bytes = reader.pos();
    return result;
}

}  // namespace belvedere::agent
