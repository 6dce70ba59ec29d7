// SPDX-License-Identifier: Apache-2.0
#pragma once

// The methods of Python's str, dict and list that templates call. One rendering, one thread.

#include <string_view>

#include "inference/chat/jinja/runtime.h"

namespace belvedere::inference::jinja {

enum class MethodKind {
    None,         ///< no such attribute: look for an item
    Callable,     ///< callMethod knows it
    Forbidden,    ///< would change a value: the sandbox hides it
    Unsupported,  ///< Python has it, this implementation does not
};

[[nodiscard]] MethodKind methodKind(const Value& object, std::string_view name);

/// Errors: InvalidArgument for wrong arguments. Requires: methodKind(object, name) is Callable.
[[nodiscard]] Result<Value> callMethod(Runtime& runtime,
                                       const Value& object,
                                       std::string_view name,
                                       const CallArguments& arguments);

// Text operations that filters share; they keep the provenance of every piece.

enum class TrimSide { Left, Right, Both };

/// Without the characters of `characters` (null: white space) at the ends.
[[nodiscard]] Text trimText(Runtime& runtime,
                            const Text& text,
                            const Text* characters,
                            TrimSide side);

/// Every `from` becomes `to`, at most `count` times when it is not negative.
[[nodiscard]] Result<Text> replaceText(
    Runtime& runtime, const Text& text, const Text& from, const Text& to, int64_t count);

/// The items with `separator` between; every item must be text.
[[nodiscard]] Result<Text> joinTexts(Runtime& runtime,
                                     const Text& separator,
                                     const std::vector<Text>& items);

/// The text with its case changed by `change` (toUpper, ...); provenance is kept where no byte
/// moves.
[[nodiscard]] Value mapText(Runtime& runtime,
                            const Text& text,
                            std::string (*change)(std::string_view));

/// The text in the middle of `width` characters.
[[nodiscard]] Result<Text> padText(
    Runtime& runtime, const Text& text, int64_t n_left, int64_t n_right, const Text& fill);

}  // namespace belvedere::inference::jinja
