// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface of a tool and the registry. A tool keeps no state between calls that the
// conversation does not show; its errors are results the model sees. run() is called on the turn
// thread.

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "agent/message.h"
#include "agent/permission.h"
#include "agent/plan.h"
#include "kernels/base/result.h"

namespace belvedere::agent {

/// What a tool gives back: text for the model, data for the window.
struct ToolOutput {
    std::string text;
    Json data = Json::object();  ///< e.g. {"path", "diff"}, {"exit_code"}
    std::string image_png;       ///< a screenshot; empty: none
    bool is_error =
        false;  ///< the call ran and failed (exit code, no match): the model should react
};

/// What a call may use while it runs.
struct ToolContext {
    std::string session_id;
    std::string call_id;
    std::stop_token stop;
    std::function<void(std::string_view)> on_output;  ///< live output for the window; may be empty
    std::function<void(const Plan&)> set_plan;        ///< for update_plan
};

class Tool {
  public:
    virtual ~Tool() = default;

    [[nodiscard]] virtual std::string name() const = 0;
    [[nodiscard]] virtual std::string description() const = 0;  ///< one paragraph, limits included
    /// JSON schema of the arguments (an object), made from the typed input.
    [[nodiscard]] virtual Json parameters() const = 0;
    [[nodiscard]] virtual ToolKind kind() const = 0;
    [[nodiscard]] virtual std::string title(const Json& arguments) const = 0;  ///< "Read src/a.cpp"
    [[nodiscard]] virtual std::string subject(
        const Json& arguments) const = 0;  ///< path or command, for rules

    [[nodiscard]] virtual std::string preview(const Json& arguments) const {
        (void)arguments;
        return {};
    }

    /// Read: Allow; everything else: Ask.
    [[nodiscard]] virtual Verdict defaultVerdict(const Json& arguments) const {
        (void)arguments;
        return kind() == ToolKind::Read ? Verdict::Allow : Verdict::Ask;
    }

    [[nodiscard]] virtual bool alwaysAsks() const { return false; }

    /// Errors are shown to the model as the call's result.
    virtual Result<ToolOutput> run(const Json& arguments, const ToolContext& context) = 0;
};

/// The tools of one workspace, by name; filled once, then read-only.
class ToolRegistry {
  public:
    void add(std::unique_ptr<Tool> tool);
    [[nodiscard]] Tool* find(std::string_view name) const;  ///< nullptr: none

    [[nodiscard]] const std::vector<std::unique_ptr<Tool>>& all() const { return tools_; }

  private:
    std::vector<std::unique_ptr<Tool>> tools_;
};

}  // namespace belvedere::agent
