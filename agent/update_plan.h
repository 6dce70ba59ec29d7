// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tool with which the model keeps its plan in view of the user. Added by the agent itself to
// the tools it offers; it acts on nothing but the session's plan. Turn thread.

#include <string>

#include "agent/tool.h"

namespace belvedere::agent {

class UpdatePlanTool : public Tool {
  public:
    [[nodiscard]] std::string name() const override { return "update_plan"; }

    [[nodiscard]] std::string description() const override;
    [[nodiscard]] Json parameters() const override;

    [[nodiscard]] ToolKind kind() const override { return ToolKind::Read; }

    [[nodiscard]] std::string title(const Json& arguments) const override;

    [[nodiscard]] std::string subject(const Json&) const override { return {}; }

    /// Errors: InvalidArgument where the steps are no plan (agent/plan.h).
    Result<ToolOutput> run(const Json& arguments, const ToolContext& context) override;
};

}  // namespace belvedere::agent
