// SPDX-License-Identifier: Apache-2.0
#pragma once

// The task graph of a session: steps with status, dependencies and evidence. A value; the turn
// thread owns the current one.

#include <string>
#include <vector>

#include "agent/message.h"
#include "kernels/base/result.h"

namespace belvedere::agent {

enum class StepStatus { Pending, InProgress, Done, Failed, Skipped };

struct PlanStep {
    std::string id;
    std::string title;
    StepStatus status = StepStatus::Pending;
    std::vector<std::string> depends_on;  ///< ids of earlier steps
    std::string evidence;                 ///< what shows that it is done
};

struct Plan {
    std::vector<PlanStep> steps;
};

[[nodiscard]] const char* stepStatusName(StepStatus status);  ///< "pending", "in_progress", ...

[[nodiscard]] Json planToJson(const Plan& plan);

/// Errors: InvalidArgument naming the step: empty title, duplicate id, unknown or cyclic
/// dependency, unknown status.
[[nodiscard]] Result<Plan> planFromJson(const Json& json);

}  // namespace belvedere::agent
