// SPDX-License-Identifier: Apache-2.0
#pragma once

// Cuts text into the pieces that byte-level BPE merges inside. One hand-written function for each
// published regular expression: it gives the match at a position as a backtracking regex engine
// would. Bytes that are not UTF-8 are punctuation of one byte. Pieces are never empty and together
// they are the text. Any thread. Source: the Split patterns of the models' tokenizer.json files,
// quoted in split_patterns.cpp.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "inference/tokenizer/unicode_class.h"
#include "inference/tokenizer/utf8.h"
#include "inference/tokenizer/vocabulary.h"

namespace belvedere::inference {

/// The rule of a name in tokenizer.ggml.pre; nullopt for one we do not know.
[[nodiscard]] std::optional<SplitRule> splitRuleOfPre(std::string_view pre);

/// The rule of a regular expression in tokenizer.json; nullopt for one we do not know.
[[nodiscard]] std::optional<SplitRule> splitRuleOfPattern(std::string_view regex);

namespace split {

using ClassMask = uint32_t;

constexpr ClassMask maskOf(CharClass c) {
    return 1U << static_cast<uint32_t>(c);
}

constexpr ClassMask kMark = maskOf(CharClass::Mark);
constexpr ClassMask kNumber = maskOf(CharClass::Number);
constexpr ClassMask kNewline = maskOf(CharClass::Newline);
constexpr ClassMask kSpace = maskOf(CharClass::Space) | kNewline;
constexpr ClassMask kLetter =
    maskOf(CharClass::Upper) | maskOf(CharClass::Lower) | maskOf(CharClass::Caseless);
constexpr ClassMask kPunctuation = maskOf(CharClass::Other) | kMark;  // [^\s\p{L}\p{N}]
constexpr ClassMask kUpperRun = maskOf(CharClass::Upper) | maskOf(CharClass::Caseless) | kMark;
constexpr ClassMask kLowerRun = maskOf(CharClass::Lower) | maskOf(CharClass::Caseless) | kMark;

constexpr std::array<uint8_t, 128> makeAsciiMasks() {
    std::array<uint8_t, 128> masks{};
    for (size_t c = 0; c < masks.size(); ++c) {
        CharClass value = CharClass::Other;
        if (c >= 'A' && c <= 'Z') {
            value = CharClass::Upper;
        } else if (c >= 'a' && c <= 'z') {
            value = CharClass::Lower;
        } else if (c >= '0' && c <= '9') {
            value = CharClass::Number;
        } else if (c == '\n' || c == '\r') {
            value = CharClass::Newline;
        } else if (c == ' ' || (c >= '\t' && c <= '\r')) {
            value = CharClass::Space;
        }
        masks[c] = static_cast<uint8_t>(maskOf(value));
    }
    return masks;
}

inline constexpr std::array<uint8_t, 128> kAsciiMasks = makeAsciiMasks();

struct Char {
    ClassMask mask = 0;  ///< 0 at the end of the text: then it is in no class
    uint32_t n_bytes = 0;

    [[nodiscard]] bool in(ClassMask classes) const { return (mask & classes) != 0; }
};

inline Char charAt(const char* p, const char* end) {
    if (p >= end) {
        return {};
    }
    const auto byte = static_cast<unsigned char>(*p);
    if (byte < 0x80) {
        return {kAsciiMasks[byte], 1};
    }
    const CodePoint c = decodeUtf8(p, end);
    return {maskOf(charClass(c.value)), c.n_bytes};
}

/// The end of the run of characters in `classes` that starts at p.
inline const char* skip(const char* p, const char* end, ClassMask classes) {
    for (Char c = charAt(p, end); c.in(classes); c = charAt(p, end)) {
        p += c.n_bytes;
    }
    return p;
}

/// The bytes of 's 't 're 've 'm 'll 'd at p, 0 if there is none. Requires: *p is an apostrophe.
/// Case-blind, U+017F (long s) is an s: Unicode case folding, as in the regex engines that trained
/// with (?i:).
template <bool kCaseBlind>
uint32_t contraction(const char* p, const char* end) {
    const auto letter = [&](int i) -> char {
        if (end - p <= i) {
            return 0;
        }
        const char c = p[i];
        return kCaseBlind && c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
    };
    switch (letter(1)) {
        case 's':
        case 't':
        case 'm':
        case 'd':
            return 2;
        case 'r':
        case 'v':
            return letter(2) == 'e' ? 3 : 0;
        case 'l':
            return letter(2) == 'l' ? 3 : 0;
        default:
            return kCaseBlind && letter(1) == '\xC5' && letter(2) == '\xBF' ? 3 : 0;
    }
}

struct SpaceRun {
    const char* end = nullptr;
    const char* last = nullptr;           ///< the start of the last character
    const char* after_newline = nullptr;  ///< the end of the last line break, null if there is none
};

inline SpaceRun spaceRun(const char* p, const char* end) {
    SpaceRun run{p, p, nullptr};
    for (Char c = charAt(p, end); c.in(kSpace); c = charAt(run.end, end)) {
        run.last = run.end;
        run.end += c.n_bytes;
        if (c.in(kNewline)) {
            run.after_newline = run.end;
        }
    }
    return run;
}

/// \s+(?!\S)|\s+ : the run without its last character, which belongs to the word behind it, unless
/// there is no such word or no other character.
inline const char* spaceEnd(const SpaceRun& run, const char* begin, bool word_follows) {
    return word_follows && run.last != begin ? run.last : run.end;
}

/// GPT-2's pattern. With kSingleDigits the text counts as cut before and after each digit.
template <bool kSingleDigits>
const char* gpt2End(const char* p, const char* end) {
    if (*p == '\'') {
        if (const uint32_t n = contraction<false>(p, end); n != 0) {
            return p + n;
        }
    }
    const char* word = *p == ' ' ? p + 1 : p;
    const Char first = charAt(word, end);
    if (first.in(kLetter)) {
        return skip(word, end, kLetter);
    }
    if (first.in(kPunctuation)) {
        return skip(word, end, kPunctuation);
    }
    if (first.in(kNumber) && !(kSingleDigits && word != p)) {
        return kSingleDigits ? word + first.n_bytes : skip(word, end, kNumber);
    }
    const SpaceRun run = spaceRun(p, end);
    const bool cut = run.end == end || (kSingleDigits && charAt(run.end, end).in(kNumber));
    return spaceEnd(run, p, !cut);
}

inline const char* numberEnd(const char* p, const char* end, int max_digits) {
    for (Char c = charAt(p, end); max_digits > 0 && c.in(kNumber); c = charAt(p, end)) {
        p += c.n_bytes;
        --max_digits;
    }
    return p;
}

/// The branches after words and numbers, common to all younger patterns:
///  ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+    (with kSlash: [\r\n/]*)
template <bool kSlash>
const char* punctuationOrSpaceEnd(const char* p, const char* end) {
    const char* q = skip(*p == ' ' ? p + 1 : p, end, kPunctuation);
    if (q != p && (*p != ' ' || q != p + 1)) {
        while (q < end && (*q == '\r' || *q == '\n' || (kSlash && *q == '/'))) {
            ++q;
        }
        return q;
    }
    const SpaceRun run = spaceRun(p, end);
    return run.after_newline != nullptr ? run.after_newline : spaceEnd(run, p, run.end != end);
}

/// The pattern of Qwen2 and, with three digits, of Llama 3.
template <int kMaxDigits>
const char* qwen2End(const char* p, const char* end) {
    if (*p == '\'') {
        if (const uint32_t n = contraction<true>(p, end); n != 0) {
            return p + n;
        }
    }
    const Char first = charAt(p, end);
    if (first.in(kLetter)) {
        return skip(p, end, kLetter);
    }
    if (first.in(kNumber)) {
        return numberEnd(p, end, kMaxDigits);
    }
    if (!first.in(kNewline) && charAt(p + first.n_bytes, end).in(kLetter)) {
        return skip(p + first.n_bytes, end, kLetter);
    }
    return punctuationOrSpaceEnd<false>(p, end);
}

/// [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+ at p, null if it does not match. The
/// two classes overlap: where no lower-case letter follows the first run, it gives back characters
/// up to its last one of the second class.
inline const char* mixedRunEnd(const char* p, const char* end) {
    const char* after_shared = nullptr;
    for (Char c = charAt(p, end); c.in(kUpperRun); c = charAt(p, end)) {
        p += c.n_bytes;
        if (c.in(kLowerRun)) {
            after_shared = p;
        }
    }
    const char* lower_end = skip(p, end, kLowerRun);
    return lower_end != p ? lower_end : after_shared;
}

/// The pattern of GPT-4o (o200k), also of MiniMax-M2 and M3.
template <bool kSlash>
const char* gpt4oEnd(const char* p, const char* end) {
    const Char first = charAt(p, end);
    if (first.in(kNumber)) {
        return numberEnd(p, end, 3);
    }
    // [^\r\n\p{L}\p{N}]? is greedy: with the character before the word if there may be one, else
    // without.
    const bool has_prefix = !first.in(kNewline | kLetter);
    const char* word = has_prefix ? p + first.n_bytes : p;
    const char* word_end = mixedRunEnd(word, end);
    if (word_end == nullptr && has_prefix) {
        word_end = mixedRunEnd(p, end);
    }
    if (word_end == nullptr) {  // the second branch: capitals only
        word_end = skip(word, end, kUpperRun);
        if (word_end == word) {
            return punctuationOrSpaceEnd<kSlash>(p, end);
        }
    }
    return word_end < end && *word_end == '\'' ? word_end + contraction<true>(word_end, end)
                                               : word_end;
}

template <class PieceEnd, class Sink>
void forEach(std::string_view text, PieceEnd pieceEnd, Sink&& sink) {
    const char* p = text.data();
    const char* const end = p + text.size();
    while (p < end) {
        const char* const piece_end = pieceEnd(p, end);
        sink(std::string_view(p, static_cast<size_t>(piece_end - p)));
        p = piece_end;
    }
}

}  // namespace split

/// Calls sink(std::string_view piece) for each piece of `text`, in order. Requires: rule is not
/// FromPre.
template <class Sink>
void forEachPiece(SplitRule rule, std::string_view text, Sink&& sink) {
    switch (rule) {
        case SplitRule::Gpt2:
            return split::forEach(text, split::gpt2End<false>, sink);
        case SplitRule::SmolLm:
            return split::forEach(text, split::gpt2End<true>, sink);
        case SplitRule::Qwen2:
            return split::forEach(text, split::qwen2End<1>, sink);
        case SplitRule::Llama3:
            return split::forEach(text, split::qwen2End<3>, sink);
        case SplitRule::Gpt4o:
            return split::forEach(text, split::gpt4oEnd<true>, sink);
        case SplitRule::Gpt4oNoSlash:
            return split::forEach(text, split::gpt4oEnd<false>, sink);
        case SplitRule::FromPre:
            return;
    }
}

}  // namespace belvedere::inference
