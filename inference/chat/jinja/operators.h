// SPDX-License-Identifier: Apache-2.0
#pragma once

// Python's operators on values. One rendering, one thread.
// Errors of all: InvalidArgument for types that Python refuses; Unsupported for integers beyond 64
// bits.

#include <string_view>

#include "inference/chat/jinja/ast.h"
#include "inference/chat/jinja/runtime.h"

namespace belvedere::inference::jinja {

/// Every operator but And and Or, which decide whether to look at their right side.
[[nodiscard]] Result<Value> applyBinary(Runtime& runtime,
                                        BinaryOperator operation,
                                        const Value& left,
                                        const Value& right);

[[nodiscard]] Result<Value> negate(const Value& value, bool is_minus);

[[nodiscard]] Result<bool> applyComparison(Runtime& runtime,
                                           Comparison comparison,
                                           const Value& left,
                                           const Value& right);

/// item in container
[[nodiscard]] Result<bool> contains(Runtime& runtime, const Value& container, const Value& item);

/// object.name: methods come before items. Undefined when there is neither.
[[nodiscard]] Result<Value> attributeOf(Runtime& runtime,
                                        const Value& object,
                                        std::string_view name);

/// object[index]: items come before methods. Undefined when there is neither.
[[nodiscard]] Result<Value> itemOf(Runtime& runtime, const Value& object, const Value& index);

/// object[begin:end:step]; null: left out. What cannot be sliced is an error, not undefined.
[[nodiscard]] Result<Value> sliceOf(
    Runtime& runtime, const Value& object, const Value* begin, const Value* end, const Value* step);

}  // namespace belvedere::inference::jinja
