// SPDX-License-Identifier: Apache-2.0
#pragma once

// Text as the words the search compares: identifiers whole and split at case, underscores and
// digits, and ordinary words, all in lower case and without their endings, so that "sizes of pages"
// meets kPageSize. The same for pieces and for questions. Pure functions; any thread.

#include <string>
#include <string_view>
#include <vector>

namespace belvedere::tools {

/// Bumped when the words of some text change: a stored index of another version is made anew.
inline constexpr int kWordsVersion = 1;

/// A letter, digit or underscore. Bytes of other scripts count as letters: their words stay whole.
[[nodiscard]] bool isWordByte(char c);

/// ASCII letters in lower case; other bytes stay.
[[nodiscard]] std::string lowered(std::string_view text);

/// An identifier's parts in lower case: "kMaxFileBytes" -> k max file bytes; "HTTPServer2" -> http
/// server 2.
[[nodiscard]] std::vector<std::string> splitIdentifier(std::string_view identifier);

/// "caches", "cached", "caching" -> "cach". Words that are no plain lower-case ASCII stay as they
/// are.
[[nodiscard]] std::string stem(std::string word);

/// The word under which appendWords() lists an identifier as a whole; empty where it lists none.
[[nodiscard]] std::string wholeWord(std::string_view identifier);

/// Appends the words of `text`, each followed by a blank: per identifier of several parts the whole
/// in lower case, and the stems of its parts. Frequent words of English and of programming
/// languages are left out.
void appendWords(std::string_view text, std::string& words);

[[nodiscard]] bool isStopWord(std::string_view lower_case_word);

}  // namespace belvedere::tools
