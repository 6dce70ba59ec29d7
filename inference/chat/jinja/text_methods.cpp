// SPDX-License-Identifier: Apache-2.0
#include "inference/chat/jinja/text_methods.h"

#include <algorithm>
#include <array>

#include "inference/chat/jinja/format.h"
#include "inference/chat/jinja/html.h"
#include "inference/chat/jinja/methods.h"
#include "inference/chat/jinja/operators.h"
#include "inference/chat/jinja/search.h"
#include "inference/chat/jinja/unicode.h"

namespace belvedere::inference::jinja {
namespace {

using Bound = std::vector<const Value*>;

[[nodiscard]] bool isGiven(const Value* value) {
    return value != nullptr && !is<NoneType>(*value);
}

[[nodiscard]] Result<Value> trimmed(Runtime& runtime,
                                    const Text& text,
                                    const CallArguments& arguments,
                                    TrimSide side) {
    const Bound bound = BV_TRY(bindArguments("str.strip", arguments, {"chars"}, 0));
    if (!isGiven(bound[0])) {
        return Value(trimText(runtime, text, nullptr, side));
    }
    const Text characters = BV_TRY(requireText(*bound[0], "the argument of str.strip"));
    return Value(trimText(runtime, text, &characters, side));
}

[[nodiscard]] Result<Value> strip(Runtime& runtime,
                                  const Text& text,
                                  const CallArguments& arguments) {
    return trimmed(runtime, text, arguments, TrimSide::Both);
}

[[nodiscard]] Result<Value> lstrip(Runtime& runtime,
                                   const Text& text,
                                   const CallArguments& arguments) {
    return trimmed(runtime, text, arguments, TrimSide::Left);
}

[[nodiscard]] Result<Value> rstrip(Runtime& runtime,
                                   const Text& text,
                                   const CallArguments& arguments) {
    return trimmed(runtime, text, arguments, TrimSide::Right);
}

using Pieces = std::vector<std::pair<size_t, size_t>>;  // byte ranges

constexpr size_t kStepsPerPiece = 4;  // each becomes a text of its own

[[nodiscard]] Pieces splitAt(Meter& meter,
                             std::string_view bytes,
                             std::string_view separator,
                             size_t most) {
    Pieces pieces;
    size_t begin = 0;
    while (pieces.size() < most && meter.spend(kStepsPerPiece)) {
        const size_t found = findBytes(bytes, separator, begin);
        if (found == std::string_view::npos) {
            break;
        }
        pieces.emplace_back(begin, found);
        begin = found + separator.size();
    }
    pieces.emplace_back(begin, bytes.size());
    return pieces;
}

[[nodiscard]] Pieces splitAtFromRight(Meter& meter,
                                      std::string_view bytes,
                                      std::string_view separator,
                                      size_t most) {
    Pieces pieces;
    size_t end = bytes.size();
    while (pieces.size() < most && meter.spend(kStepsPerPiece)) {
        const size_t found = rfindBytes(bytes.substr(0, end), separator);
        if (found == std::string_view::npos) {
            break;
        }
        pieces.emplace_back(found + separator.size(), end);
        end = found;
    }
    pieces.emplace_back(0, end);
    std::ranges::reverse(pieces);
    return pieces;
}

[[nodiscard]] size_t skipSpaces(std::string_view bytes, size_t at, bool skip_spaces) {
    while (at < bytes.size()) {
        size_t next = at;
        if (isSpace(nextPoint(bytes, next)) != skip_spaces) {
            break;
        }
        at = next;
    }
    return at;
}

[[nodiscard]] size_t skipSpacesBack(std::string_view bytes, size_t end, bool skip_spaces) {
    while (end > 0) {
        const size_t previous = previousOffset(bytes, end);
        size_t probe = previous;
        if (isSpace(nextPoint(bytes, probe)) != skip_spaces) {
            break;
        }
        end = previous;
    }
    return end;
}

[[nodiscard]] Pieces splitAtSpaces(Meter& meter, std::string_view bytes, size_t most) {
    Pieces pieces;
    for (size_t begin = skipSpaces(bytes, 0, true);
         begin < bytes.size() && meter.spend(kStepsPerPiece);) {
        if (pieces.size() == most) {
            pieces.emplace_back(begin, skipSpacesBack(bytes, bytes.size(), true));
            break;
        }
        const size_t end = skipSpaces(bytes, begin, false);
        pieces.emplace_back(begin, end);
        begin = skipSpaces(bytes, end, true);
    }
    return pieces;
}

[[nodiscard]] Pieces splitAtSpacesFromRight(Meter& meter, std::string_view bytes, size_t most) {
    Pieces pieces;
    for (size_t end = skipSpacesBack(bytes, bytes.size(), true);
         end > 0 && meter.spend(kStepsPerPiece);) {
        if (pieces.size() == most) {
            pieces.emplace_back(skipSpaces(bytes, 0, true), end);
            break;
        }
        const size_t begin = skipSpacesBack(bytes, end, false);
        pieces.emplace_back(begin, end);
        end = skipSpacesBack(bytes, begin, true);
    }
    std::ranges::reverse(pieces);
    return pieces;
}

[[nodiscard]] Result<Value> listOfPieces(Runtime& runtime, const Text& text, const Pieces& pieces) {
    BV_TRY(runtime.check());
    std::vector<Value> items;
    for (const auto& [begin, end] : pieces) {
        items.emplace_back(sliceText(runtime, text, begin, end));
        if (runtime.meter.outOfMemory()) {
            break;
        }
    }
    BV_TRY(runtime.check());
    return runtime.heap.list(std::move(items));
}

[[nodiscard]] Result<Value> splitText(Runtime& runtime,
                                      const Text& text,
                                      const CallArguments& arguments,
                                      bool from_right) {
    const Bound bound = BV_TRY(bindArguments("str.split", arguments, {"sep", "maxsplit"}, 0));
    const int64_t wanted =
        bound[1] == nullptr ? -1 : BV_TRY(requireInteger(*bound[1], "maxsplit of str.split"));
    const size_t most = wanted < 0 ? SIZE_MAX : static_cast<size_t>(wanted);
    const std::string_view bytes = text.bytes();
    BV_TRY(runtime.reserve(bytes.size()));
    if (!isGiven(bound[0])) {
        return listOfPieces(runtime, text,
                            from_right ? splitAtSpacesFromRight(runtime.meter, bytes, most)
                                       : splitAtSpaces(runtime.meter, bytes, most));
    }
    const Text separator = BV_TRY(requireText(*bound[0], "the separator of str.split"));
    if (separator.empty()) {
        return typeError("str.split: empty separator");
    }
    runtime.meter.spendBytes(searchCost(bytes, separator.bytes()));
    return listOfPieces(runtime, text,
                        from_right ? splitAtFromRight(runtime.meter, bytes, separator.bytes(), most)
                                   : splitAt(runtime.meter, bytes, separator.bytes(), most));
}

[[nodiscard]] Result<Value> split(Runtime& runtime,
                                  const Text& text,
                                  const CallArguments& arguments) {
    return splitText(runtime, text, arguments, false);
}

[[nodiscard]] Result<Value> rsplit(Runtime& runtime,
                                   const Text& text,
                                   const CallArguments& arguments) {
    return splitText(runtime, text, arguments, true);
}

[[nodiscard]] bool isLineBreak(char32_t point) {
    return (point >= 0x0A && point <= 0x0D) || (point >= 0x1C && point <= 0x1E) || point == 0x85 ||
           point == 0x2028 || point == 0x2029;
}

[[nodiscard]] Result<Value> splitLines(Runtime& runtime,
                                       const Text& text,
                                       const CallArguments& arguments) {
    const Bound bound = BV_TRY(bindArguments("str.splitlines", arguments, {"keepends"}, 0));
    const bool keeps_ends = bound[0] != nullptr && isTrue(*bound[0]);
    const std::string_view bytes = text.bytes();
    BV_TRY(runtime.reserve(bytes.size()));
    Pieces pieces;
    size_t begin = 0;
    for (size_t at = 0; at < bytes.size() && runtime.meter.spend(0);) {
        const size_t end = at;
        const char32_t point = nextPoint(bytes, at);
        if (!isLineBreak(point)) {
            continue;
        }
        if (point == '\r' && at < bytes.size() && bytes[at] == '\n') {
            ++at;
        }
        pieces.emplace_back(begin, keeps_ends ? at : end);
        runtime.meter.spend(kStepsPerPiece);
        begin = at;
    }
    if (begin < bytes.size()) {
        pieces.emplace_back(begin, bytes.size());
    }
    return listOfPieces(runtime, text, pieces);
}

/// text[start:end] as Python's methods take it.
[[nodiscard]] Result<Text> window(Runtime& runtime,
                                  const Text& text,
                                  const Value* start,
                                  const Value* end) {
    if (start == nullptr && end == nullptr) {
        return text;
    }
    const Value part = BV_TRY(sliceOf(runtime, text, start, end, nullptr));
    return *asText(part);
}

[[nodiscard]] Result<Value> hasAffix(Runtime& runtime,
                                     const Text& text,
                                     const CallArguments& arguments,
                                     bool at_start) {
    const std::string_view name = at_start ? "str.startswith" : "str.endswith";
    const Bound bound = BV_TRY(bindArguments(name, arguments, {"affix", "start", "end"}, 1));
    const Text part = BV_TRY(window(runtime, text, bound[1], bound[2]));
    std::vector<Value> candidates = {*bound[0]};
    const Sequence* several = asSequence(*bound[0]);
    if (several != nullptr && several->kind == SequenceKind::Tuple) {
        candidates = several->items;
    }
    bool is_found = false;
    for (const Value& candidate : candidates) {
        const Text affix = BV_TRY(requireText(candidate, fmt::format("the argument of {}", name)));
        is_found = is_found || (at_start ? part.bytes().starts_with(affix.bytes())
                                         : part.bytes().ends_with(affix.bytes()));
    }
    return Value(is_found);
}

[[nodiscard]] Result<Value> startsWith(Runtime& runtime,
                                       const Text& text,
                                       const CallArguments& arguments) {
    return hasAffix(runtime, text, arguments, true);
}

[[nodiscard]] Result<Value> endsWith(Runtime& runtime,
                                     const Text& text,
                                     const CallArguments& arguments) {
    return hasAffix(runtime, text, arguments, false);
}

[[nodiscard]] Result<Value> removeAffix(Runtime& runtime,
                                        const Text& text,
                                        const CallArguments& arguments,
                                        bool at_start) {
    const Bound bound = BV_TRY(bindArguments("str.removeprefix", arguments, {"affix"}, 1));
    const Text affix = BV_TRY(requireText(*bound[0], "the argument of str.removeprefix"));
    const std::string_view bytes = text.bytes();
    const size_t n = affix.bytes().size();
    if (at_start && bytes.starts_with(affix.bytes())) {
        return Value(sliceText(runtime, text, n, bytes.size()));
    }
    if (!at_start && bytes.ends_with(affix.bytes())) {
        return Value(sliceText(runtime, text, 0, bytes.size() - n));
    }
    return Value(text);
}

[[nodiscard]] Result<Value> removePrefix(Runtime& runtime,
                                         const Text& text,
                                         const CallArguments& arguments) {
    return removeAffix(runtime, text, arguments, true);
}

[[nodiscard]] Result<Value> removeSuffix(Runtime& runtime,
                                         const Text& text,
                                         const CallArguments& arguments) {
    return removeAffix(runtime, text, arguments, false);
}

[[nodiscard]] Result<Value> replace(Runtime& runtime,
                                    const Text& text,
                                    const CallArguments& arguments) {
    const Bound bound = BV_TRY(bindArguments("str.replace", arguments, {"old", "new", "count"}, 2));
    const Text from = BV_TRY(requireText(*bound[0], "the text that str.replace looks for"));
    const Text to = BV_TRY(requireText(*bound[1], "the replacement of str.replace"));
    const int64_t count =
        bound[2] == nullptr ? -1 : BV_TRY(requireInteger(*bound[2], "the count of str.replace"));
    return Value(BV_TRY(replaceText(runtime, text, from, to, count)));
}

template <std::string (*kChange)(std::string_view)>
[[nodiscard]] Result<Value> changeCase(Runtime& runtime,
                                       const Text& text,
                                       const CallArguments& arguments) {
    (void)BV_TRY(bindArguments("a str method", arguments, {}, 0));
    return mapText(runtime, text, kChange);
}

/// Where `part` stands, counted in characters; -1 for nowhere.
[[nodiscard]] Result<Value> locate(Runtime& runtime,
                                   const Text& text,
                                   const CallArguments& arguments,
                                   bool from_right) {
    const Bound bound = BV_TRY(bindArguments("str.find", arguments, {"sub", "start", "end"}, 1));
    const Text part = BV_TRY(requireText(*bound[0], "the argument of str.find"));
    const bool is_windowed = isGiven(bound[1]) || isGiven(bound[2]);
    if (is_windowed) {
        return fail(ErrorCode::Unsupported, "str.find with a start is not supported");
    }
    runtime.meter.spendBytes(searchCost(text.bytes(), part.bytes()));
    BV_TRY(runtime.check());
    const size_t found =
        from_right ? rfindBytes(text.bytes(), part.bytes()) : findBytes(text.bytes(), part.bytes());
    const bool is_found = found != std::string_view::npos;
    return Value(is_found ? static_cast<int64_t>(countPoints(text.bytes().substr(0, found)))
                          : int64_t{-1});
}

[[nodiscard]] Result<Value> find(Runtime& runtime,
                                 const Text& text,
                                 const CallArguments& arguments) {
    return locate(runtime, text, arguments, false);
}

[[nodiscard]] Result<Value> rfind(Runtime& runtime,
                                  const Text& text,
                                  const CallArguments& arguments) {
    return locate(runtime, text, arguments, true);
}

[[nodiscard]] Result<Value> index(Runtime& runtime,
                                  const Text& text,
                                  const CallArguments& arguments) {
    const Value found = BV_TRY(locate(runtime, text, arguments, false));
    if (asInteger(found) == -1) {
        return typeError("str.index: substring not found");
    }
    return found;
}

[[nodiscard]] Result<Value> count(Runtime& runtime,
                                  const Text& text,
                                  const CallArguments& arguments) {
    const Bound bound = BV_TRY(bindArguments("str.count", arguments, {"sub", "start", "end"}, 1));
    const Text part = BV_TRY(requireText(*bound[0], "the argument of str.count"));
    const Text searched = BV_TRY(window(runtime, text, bound[1], bound[2]));
    runtime.meter.spendBytes(searchCost(searched.bytes(), part.bytes()));
    BV_TRY(runtime.check());
    if (part.empty()) {
        return Value(static_cast<int64_t>(searched.nPoints()) + 1);
    }
    int64_t n_found = 0;
    for (size_t at = findBytes(searched.bytes(), part.bytes()); at != std::string_view::npos;
         at = findBytes(searched.bytes(), part.bytes(), at + part.bytes().size())) {
        ++n_found;
    }
    runtime.meter.spend(static_cast<size_t>(n_found) / 8);
    return Value(n_found);
}

[[nodiscard]] Result<Value> join(Runtime& runtime,
                                 const Text& text,
                                 const CallArguments& arguments) {
    const Bound bound = BV_TRY(bindArguments("str.join", arguments, {"iterable"}, 1));
    const SequencePtr items = BV_TRY(iterateShared(runtime, *bound[0]));
    std::vector<Text> texts;
    for (const Value& item : items->items) {
        texts.push_back(BV_TRY(requireText(item, "each item of str.join")));
    }
    return Value(BV_TRY(joinTexts(runtime, text, texts)));
}

[[nodiscard]] Result<Value> partitionText(Runtime& runtime,
                                          const Text& text,
                                          const CallArguments& arguments,
                                          bool from_right) {
    const Bound bound = BV_TRY(bindArguments("str.partition", arguments, {"sep"}, 1));
    const Text separator = BV_TRY(requireText(*bound[0], "the separator of str.partition"));
    if (separator.empty()) {
        return typeError("str.partition: empty separator");
    }
    runtime.meter.spendBytes(searchCost(text.bytes(), separator.bytes()));
    const std::string_view bytes = text.bytes();
    const size_t found =
        from_right ? rfindBytes(bytes, separator.bytes()) : findBytes(bytes, separator.bytes());
    if (found == std::string_view::npos) {
        const Value nothing = markSafe(runtime, Text(), text.isMarkup());
        return from_right ? runtime.heap.tuple({nothing, nothing, text})
                          : runtime.heap.tuple({text, nothing, nothing});
    }
    const size_t after = found + separator.bytes().size();
    return runtime.heap.tuple({sliceText(runtime, text, 0, found),
                               sliceText(runtime, text, found, after),
                               sliceText(runtime, text, after, bytes.size())});
}

[[nodiscard]] Result<Value> partition(Runtime& runtime,
                                      const Text& text,
                                      const CallArguments& arguments) {
    return partitionText(runtime, text, arguments, false);
}

[[nodiscard]] Result<Value> rpartition(Runtime& runtime,
                                       const Text& text,
                                       const CallArguments& arguments) {
    return partitionText(runtime, text, arguments, true);
}

enum class Alignment { Left, Center, Right };

template <Alignment kAlignment>
[[nodiscard]] Result<Value> align(Runtime& runtime,
                                  const Text& text,
                                  const CallArguments& arguments) {
    const Bound bound = BV_TRY(bindArguments("str.ljust", arguments, {"width", "fillchar"}, 1));
    const int64_t width = BV_TRY(requireInteger(*bound[0], "the width of str.ljust"));
    const Value space = runtime.heap.text(" ", kValueOrigin);
    const Text fill =
        BV_TRY(requireText(bound[1] == nullptr ? space : *bound[1], "the fill of str.ljust"));
    if (fill.nPoints() != 1) {
        return typeError("the fill character must be exactly one character long");
    }
    const int64_t n = static_cast<int64_t>(text.nPoints());
    const int64_t missing = width > n ? width - n : 0;
    if (kAlignment == Alignment::Left) {
        return Value(BV_TRY(padText(runtime, text, 0, missing, fill)));
    }
    if (kAlignment == Alignment::Right) {
        return Value(BV_TRY(padText(runtime, text, missing, 0, fill)));
    }
    const int64_t left = missing / 2 + (missing & width & 1);  // as CPython rounds
    return Value(BV_TRY(padText(runtime, text, left, missing - left, fill)));
}

[[nodiscard]] Result<Value> zeroFill(Runtime& runtime,
                                     const Text& text,
                                     const CallArguments& arguments) {
    const Bound bound = BV_TRY(bindArguments("str.zfill", arguments, {"width"}, 1));
    const int64_t width = BV_TRY(requireInteger(*bound[0], "the width of str.zfill"));
    const int64_t n = static_cast<int64_t>(text.nPoints());
    const bool has_sign = text.bytes().starts_with('+') || text.bytes().starts_with('-');
    const Text zero = *asText(runtime.heap.text("0", kValueOrigin));
    const Text digits = sliceText(runtime, text, has_sign ? 1 : 0, text.bytes().size());
    const Text padded = BV_TRY(padText(runtime, digits, width > n ? width - n : 0, 0, zero));
    TextBuilder builder(&runtime.meter);
    builder.append(text, 0, has_sign ? 1 : 0);
    builder.append(padded);
    return Value(builder.finish());
}

/// Whether every character of a text that is not empty passes `test`.
template <bool (*kTest)(char)>
[[nodiscard]] Result<Value> everyCharacter(Runtime& runtime,
                                           const Text& text,
                                           const CallArguments& arguments) {
    (void)BV_TRY(bindArguments("a str method", arguments, {}, 0));
    runtime.meter.spendBytes(text.bytes().size());
    if (!text.isAscii()) {
        return fail(ErrorCode::Unsupported,
                    "str.isalpha and its like are not supported for text beyond ASCII");
    }
    return Value(!text.empty() && std::ranges::all_of(text.bytes(), kTest));
}

[[nodiscard]] bool isAsciiDigit(char c) {
    return c >= '0' && c <= '9';
}

[[nodiscard]] bool isAsciiLower(char c) {
    return c >= 'a' && c <= 'z';
}

[[nodiscard]] bool isAsciiUpper(char c) {
    return c >= 'A' && c <= 'Z';
}

[[nodiscard]] bool isAsciiAlpha(char c) {
    return isAsciiLower(c) || isAsciiUpper(c);
}

[[nodiscard]] bool isAsciiAlnum(char c) {
    return isAsciiAlpha(c) || isAsciiDigit(c);
}

[[nodiscard]] Result<Value> isSpaceOnly(Runtime& runtime,
                                        const Text& text,
                                        const CallArguments& arguments) {
    (void)BV_TRY(bindArguments("str.isspace", arguments, {}, 0));
    runtime.meter.spendBytes(text.bytes().size());
    return Value(!text.empty() && skipSpaces(text.bytes(), 0, true) == text.bytes().size());
}

[[nodiscard]] Result<Value> isAsciiOnly(Runtime&,
                                        const Text& text,
                                        const CallArguments& arguments) {
    (void)BV_TRY(bindArguments("str.isascii", arguments, {}, 0));
    return Value(text.isAscii());
}

/// isupper and islower: at least one cased character, and none that the change would alter.
template <std::string (*kChange)(std::string_view)>
[[nodiscard]] Result<Value> isCase(Runtime& runtime,
                                   const Text& text,
                                   const CallArguments& arguments) {
    (void)BV_TRY(bindArguments("a str method", arguments, {}, 0));
    runtime.meter.spendBytes(text.bytes().size() * 4);
    if (!text.isAscii()) {
        return fail(ErrorCode::Unsupported,
                    "str.isupper and str.islower are not supported for text beyond ASCII");
    }
    return Value(std::ranges::any_of(text.bytes(), isAsciiAlpha) &&
                 kChange(text.bytes()) == text.bytes());
}

constexpr std::array<std::pair<std::string_view, TextMethod>, 36> kMethods = {{
    {"capitalize", changeCase<toCapitalized>},
    {"center", align<Alignment::Center>},
    {"count", count},
    {"endswith", endsWith},
    {"find", find},
    {"format", formatBraces},
    {"index", index},
    {"isalnum", everyCharacter<isAsciiAlnum>},
    {"isalpha", everyCharacter<isAsciiAlpha>},
    {"isascii", isAsciiOnly},
    {"isdecimal", everyCharacter<isAsciiDigit>},
    {"isdigit", everyCharacter<isAsciiDigit>},
    {"islower", isCase<toLower>},
    {"isnumeric", everyCharacter<isAsciiDigit>},
    {"isspace", isSpaceOnly},
    {"isupper", isCase<toUpper>},
    {"join", join},
    {"ljust", align<Alignment::Left>},
    {"lower", changeCase<toLower>},
    {"lstrip", lstrip},
    {"partition", partition},
    {"removeprefix", removePrefix},
    {"removesuffix", removeSuffix},
    {"replace", replace},
    {"rfind", rfind},
    {"rjust", align<Alignment::Right>},
    {"rpartition", rpartition},
    {"rsplit", rsplit},
    {"rstrip", rstrip},
    {"split", split},
    {"splitlines", splitLines},
    {"startswith", startsWith},
    {"strip", strip},
    {"title", changeCase<toTitle>},
    {"upper", changeCase<toUpper>},
    {"zfill", zeroFill},
}};

}  // namespace

TextMethod findTextMethod(std::string_view name) {
    const auto found =
        std::ranges::find(kMethods, name, &std::pair<std::string_view, TextMethod>::first);
    return found == kMethods.end() ? nullptr : found->second;
}

}  // namespace belvedere::inference::jinja
