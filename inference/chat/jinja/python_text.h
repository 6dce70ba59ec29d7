// SPDX-License-Identifier: Apache-2.0
#pragma once

// Values as Python's str(), repr() and json.dumps() write them. One rendering, one thread.

#include <optional>
#include <string>

#include "inference/chat/jinja/runtime.h"

namespace belvedere::inference::jinja {

/// repr(real): the shortest digits that read back as the same number; "1e+16", "0.0001", "nan".
[[nodiscard]] std::string floatText(double real);

/// str(value). A text stays as it is, with its provenance.
/// Errors: Unsupported for a value whose Python text holds an address (a function, a generator).
[[nodiscard]] Result<Text> toText(Runtime& runtime, const Value& value);

/// Appends repr(value).
[[nodiscard]] Result<void> appendRepr(Runtime& runtime, std::string& out, const Value& value);

struct JsonStyle {
    std::optional<std::string> indent;  ///< of one level; nullopt: all on one line
    std::string item_separator = ", ";
    std::string key_separator = ": ";
    bool ascii_only = false;
    bool sort_keys = false;
};

/// json.dumps(value). Strings keep their provenance, punctuation and numbers count as values.
/// Errors: InvalidArgument for what JSON cannot hold.
[[nodiscard]] Result<Text> toJson(Runtime& runtime, const Value& value, const JsonStyle& style);

}  // namespace belvedere::inference::jinja
