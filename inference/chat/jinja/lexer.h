// SPDX-License-Identifier: Apache-2.0
#pragma once

// Template source to tokens, with Jinja2's rules for white space around tags (trim_blocks and
// lstrip_blocks on). Any thread. Source: Jinja2 3.1 documentation, "Template Designer: Whitespace
// Control"; Python 3 reference, string literals.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/result.h"

namespace belvedere::inference::jinja {

enum class TokenKind {
    Data,
    VariableBegin,
    VariableEnd,
    BlockBegin,
    BlockEnd,
    Name,
    String,
    Integer,
    Float,
    Operator,
    End,
};

struct Token {
    TokenKind kind = TokenKind::End;
    std::string text;  ///< data, name, decoded string, or operator
    int64_t integer = 0;
    double real = 0.0;
    int line = 1;
};

/// The last token is End.
/// Errors: Corrupt for text that is no token, Unsupported for a character or number that this
/// implementation lacks.
[[nodiscard]] Result<std::vector<Token>> tokenize(std::string_view source);

}  // namespace belvedere::inference::jinja
