// SPDX-License-Identifier: Apache-2.0
#pragma once

// Turns a stream of bytes into valid UTF-8: holds back a character until its last byte has come,
// and replaces what can never become one by U+FFFD. One stream per answer; one thread at a time.
// Source: The Unicode Standard 15.0, section 3.9, "U+FFFD Substitution of Maximal Subparts".

#include <string>
#include <string_view>

namespace belvedere::inference {

class Utf8Stream {
  public:
    /// The complete characters that `bytes` finishes, possibly none.
    [[nodiscard]] std::string push(std::string_view bytes);

    /// The end of the stream: U+FFFD when a character is still incomplete, else nothing. The stream
    /// is then empty again.
    [[nodiscard]] std::string flush();

  private:
    std::string held_;  ///< the first bytes of one character, at most three
};

}  // namespace belvedere::inference
