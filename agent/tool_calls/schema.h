// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a tool's JSON schema says about a value, and reading text by it. For formats that write
// values as plain text. Any thread.

#include <string>
#include <string_view>
#include <vector>

#include "agent/message.h"

namespace belvedere::agent {

/// The alternatives a schema allows, after $ref, anyOf, oneOf and allOf are followed. Points into
/// the schema, which must outlive it. Bounded: a schema that refers to itself or is huge is
/// followed only so far.
class SchemaView {
  public:
    SchemaView() = default;  ///< nothing is known

    explicit SchemaView(const Json& root);

    [[nodiscard]] SchemaView property(std::string_view name) const;
    [[nodiscard]] SchemaView items() const;

    /// "string", "integer", "number", "boolean", "object", "array", "null".
    [[nodiscard]] bool allows(std::string_view type) const;

    [[nodiscard]] bool isKnown() const { return !alternatives_.empty(); }

  private:
    SchemaView(const Json* root, const Json& node);
    void collect(const Json& node, size_t& n_steps);

    const Json* root_ = nullptr;
    std::vector<const Json*> alternatives_;
};

/// A value that is written as text. By the schema: a string stays as it is; numbers, booleans,
/// null, objects and arrays are parsed, and stay strings where they do not parse, so that the tool
/// can say what is wrong. Without a schema: a string.
[[nodiscard]] Json valueFromText(std::string_view text, const SchemaView& schema);

/// An object, array, or scalar made of named children, in the order written.
struct NamedValue {
    std::string name;
    Json value;
};

/// A value with children. Array schema: their values; object schema: by name; unknown: an array
/// where all are named "item". A name that repeats gives an array. `text` beside the children is
/// kept as "$text".
[[nodiscard]] Json valueFromChildren(std::vector<NamedValue> children,
                                     std::string_view text,
                                     const SchemaView& schema);

/// Strings at the top of `arguments` that the schema wants as a number or boolean, and that are
/// one, become it.
void coerceArguments(Json& arguments, const Json& parameters);

}  // namespace belvedere::agent
