// SPDX-License-Identifier: Apache-2.0
#pragma once

// What operators, filters, tests and methods need while a template runs. One rendering, one thread.

#include <chrono>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "inference/chat/jinja/value.h"
#include "inference/chat/template.h"
#include "kernels/base/result.h"

namespace belvedere::inference::jinja {

struct Runtime {
    Runtime(const TemplateLimits& l, std::chrono::sys_seconds n)
        : limits(l), now(n), meter(l.max_value_bytes, l.max_steps), heap(&meter) {}

    Runtime(const Runtime&) = delete;
    Runtime& operator=(const Runtime&) = delete;

    TemplateLimits limits;
    std::chrono::sys_seconds now;
    Meter meter;
    Heap heap;

    /// Errors: Corrupt when the template has used up its steps or its memory.
    [[nodiscard]] Result<void> check() const;

    /// Asked before an operation that makes more text or items than it is given.
    /// Errors: Corrupt when there is no room.
    [[nodiscard]] Result<void> reserve(size_t n_bytes);
};

struct CallArguments {
    std::vector<Value> positional;
    std::vector<std::pair<std::string, Value>> named;
};

/// An error of the template's own making: wrong types, undefined values.
template <class... Args>
[[nodiscard]] tl::unexpected<Error> typeError(fmt::format_string<Args...> text, Args&&... args) {
    return fail(ErrorCode::InvalidArgument, text, std::forward<Args>(args)...);
}

[[nodiscard]] tl::unexpected<Error> undefinedError(const Undefined& value);

/// Arguments by parameter: a pointer for each of `parameters`, null where it was left out (or given
/// as None, when told so). Errors: InvalidArgument when one is missing among the first n_required,
/// given twice, unknown or too many.
[[nodiscard]] Result<std::vector<const Value*>> bindArguments(
    std::string_view callee,
    const CallArguments& arguments,
    std::initializer_list<std::string_view> parameters,
    size_t n_required);

/// An argument that must be a str / an int. `what` names it in the error.
[[nodiscard]] Result<Text> requireText(const Value& value, std::string_view what);
[[nodiscard]] Result<int64_t> requireInteger(const Value& value, std::string_view what);

/// The items that Python's iteration gives: characters, keys, items. A generator is used up by it.
[[nodiscard]] Result<std::vector<Value>> iterate(Runtime& runtime, const Value& value);

/// The same without copying where the value holds its items.
[[nodiscard]] Result<SequencePtr> iterateShared(Runtime& runtime, const Value& value);

/// len(value)
[[nodiscard]] Result<int64_t> lengthOf(const Value& value);

/// Bytes [begin, end) of a text.
[[nodiscard]] Text sliceText(Runtime& runtime, const Text& text, size_t begin, size_t end);

/// Text made by an operation that keeps no provenance: trusted only when everything that went in
/// was.
[[nodiscard]] Value derivedText(Runtime& runtime,
                                std::string_view bytes,
                                std::initializer_list<const Text*> inputs);

}  // namespace belvedere::inference::jinja
