// SPDX-License-Identifier: Apache-2.0
#pragma once

// The arguments of a tool as a plain struct. One list of fields gives the JSON schema the model
// sees and the reader of what it sends. Reading forgives form (other spellings of a name, numbers
// and booleans as strings, a call that is a bare string) and never guesses meaning: a missing,
// unknown or ill-typed argument is an error that names it. Values; any thread.
//
//     struct ReadFileInput { std::string path; int64_t limit = 2000; };
//     const Fields<ReadFileInput> kFields = {
//         {&ReadFileInput::path, {.name = "path", .description = "The file.", .is_required =
//         true}},
//         {&ReadFileInput::limit, {.name = "limit", .description = "Lines.", .min = 1, .max =
//         2000}}};

#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "agent/tool.h"

namespace belvedere::tools {

using agent::Json;

enum class FieldType { Text, Integer, Boolean };  // the order of Field::Member

struct FieldInfo {
    std::string name;         ///< snake_case; camelCase and kebab-case of it are understood too
    std::string description;  ///< for the model
    bool is_required = false;
    std::vector<std::string> aliases = {};  ///< other names that models use
    std::vector<std::string> choices = {};  ///< text: the only values
    int64_t min = std::numeric_limits<int64_t>::min();
    int64_t max = std::numeric_limits<int64_t>::max();
    FieldType type = FieldType::Text;  ///< set by Field
};

template <class Input>
struct Field {
    using Member = std::variant<std::string Input::*, int64_t Input::*, bool Input::*>;

    Field(Member where, FieldInfo what) : member(where), info(std::move(what)) {
        info.type = static_cast<FieldType>(member.index());
    }

    Member member;
    FieldInfo info;
};

template <class Input>
using Fields = std::vector<Field<Input>>;

/// {"type": "object", "properties": ..., "required": [...]}.
[[nodiscard]] Json makeSchema(const std::vector<FieldInfo>& fields);

/// The values of the fields, in their order; null where an optional one was left out. Text is a
/// JSON string, an integer a number within its limits, a boolean a boolean. Errors: InvalidArgument
/// naming the argument.
[[nodiscard]] Result<std::vector<Json>> readArguments(const std::vector<FieldInfo>& fields,
                                                      const Json& arguments);

/// A tool whose input is a struct. title, subject and preview get what could be read.
template <class Input>
class TypedTool : public agent::Tool {
  public:
    explicit TypedTool(Fields<Input> fields) : fields_(std::move(fields)) {
        for (const Field<Input>& field : fields_) {
            infos_.push_back(field.info);
        }
    }

    [[nodiscard]] Json parameters() const final { return makeSchema(infos_); }

    [[nodiscard]] std::string title(const Json& arguments) const final {
        const Result<Input> input = read(arguments);
        return input.has_value() ? titleOf(*input) : name();
    }

    [[nodiscard]] std::string subject(const Json& arguments) const final {
        const Result<Input> input = read(arguments);
        return input.has_value() ? subjectOf(*input) : std::string();
    }

    [[nodiscard]] std::string preview(const Json& arguments) const final {
        const Result<Input> input = read(arguments);
        return input.has_value() ? previewOf(*input) : input.error().message;
    }

    [[nodiscard]] agent::Verdict defaultVerdict(const Json& arguments) const final {
        const Result<Input> input = read(arguments);
        return input.has_value() ? verdictOf(*input) : agent::Verdict::Ask;
    }

    Result<agent::ToolOutput> run(const Json& arguments, const agent::ToolContext& context) final {
        const Input input = BV_TRY(read(arguments));
        return runTyped(input, context);
    }

  protected:
    [[nodiscard]] virtual std::string titleOf(const Input& input) const = 0;
    [[nodiscard]] virtual std::string subjectOf(const Input& input) const = 0;

    [[nodiscard]] virtual std::string previewOf(const Input& input) const {
        (void)input;
        return {};
    }

    [[nodiscard]] virtual agent::Verdict verdictOf(const Input& input) const {
        (void)input;
        return kind() == agent::ToolKind::Read ? agent::Verdict::Allow : agent::Verdict::Ask;
    }

    virtual Result<agent::ToolOutput> runTyped(const Input& input,
                                               const agent::ToolContext& context) = 0;

  private:
    [[nodiscard]] Result<Input> read(const Json& arguments) const {
        Result<std::vector<Json>> values = readArguments(infos_, arguments);
        if (!values.has_value()) {
            return failWithContext(std::move(values).error(), name());
        }
        Input input;
        if constexpr (!std::is_empty_v<Input>) {  // no field, no member
            for (size_t i = 0; i < fields_.size(); ++i) {
                const Json& value = (*values)[i];
                if (!value.is_null()) {
                    std::visit([&](auto member) { value.get_to(input.*member); },
                               fields_[i].member);
                }
            }
        }
        return input;
    }

    Fields<Input> fields_;
    std::vector<FieldInfo> infos_;
};

}  // namespace belvedere::tools
