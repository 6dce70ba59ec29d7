// SPDX-License-Identifier: Apache-2.0
#include "agent/update_plan.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace belvedere::agent {

std::string UpdatePlanTool::description() const {
    return "Shows the user your plan for a task of several steps. Send the whole list each time: "
           "the new one replaces the "
           "old. Keep exactly one step in_progress while you work, and say in evidence what shows "
           "that a step is done.";
}

Json UpdatePlanTool::parameters() const {
    const Json text = {{"type", "string"}};
    Json step = Json::object();
    step["type"] = "object";
    step["properties"] = {
        {"id",
         {{"type", "string"}, {"description", "Short and unique; its number where left out"}}},
        {"title", {{"type", "string"}, {"description", "What will be done, in a few words"}}},
        {"status",
         {{"type", "string"}, {"enum", {"pending", "in_progress", "done", "failed", "skipped"}}}},
        {"depends_on",
         {{"type", "array"}, {"items", text}, {"description", "Ids of steps that come first"}}},
        {"evidence", {{"type", "string"}, {"description", "What shows that the step is done"}}}};
    step["required"] = {"title", "status"};
    return {{"type", "object"},
            {"properties", {{"steps", {{"type", "array"}, {"items", std::move(step)}}}}},
            {"required", Json::array({"steps"})}};
}

std::string UpdatePlanTool::title(const Json&) const {
    return "Update the plan";
}

Result<ToolOutput> UpdatePlanTool::run(const Json& arguments, const ToolContext& context) {
    const Plan plan = BV_TRY(planFromJson(arguments));
    if (context.set_plan) {
        context.set_plan(plan);
    }
    const auto n_done =
        std::count_if(plan.steps.begin(), plan.steps.end(), [](const PlanStep& step) {
            return step.status == StepStatus::Done || step.status == StepStatus::Skipped;
        });
    ToolOutput output;
    output.text = fmt::format("plan saved: {} of {} steps done", n_done, plan.steps.size());
    output.data = planToJson(plan);
    return output;
}

}  // namespace belvedere::agent
