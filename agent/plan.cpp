// SPDX-License-Identifier: Apache-2.0
#include "agent/plan.h"

#include <array>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace belvedere::agent {

namespace {

constexpr size_t kMaxSteps = 200;

struct StatusName {
    StepStatus status;
    const char* name;
};

constexpr std::array<StatusName, 5> kStatusNames = {{{StepStatus::Pending, "pending"},
                                                     {StepStatus::InProgress, "in_progress"},
                                                     {StepStatus::Done, "done"},
                                                     {StepStatus::Failed, "failed"},
                                                     {StepStatus::Skipped, "skipped"}}};

std::optional<StepStatus> statusFromName(const std::string& name) {
    for (const StatusName& entry : kStatusNames) {
        if (name == entry.name) {
            return entry.status;
        }
    }
    if (name == "completed") {  // what many models were trained to write
        return StepStatus::Done;
    }
    return std::nullopt;
}

Result<std::string> textField(const Json& json, const char* key, const std::string& where) {
    const auto it = json.find(key);
    if (it == json.end() || it->is_null()) {
        return std::string();
    }
    if (it->is_number_integer()) {
        return it->dump();  // ids are often written as numbers
    }
    if (!it->is_string()) {
        return fail(ErrorCode::InvalidArgument, "{}: \"{}\" must be a string", where, key);
    }
    return it->get<std::string>();
}

Result<std::vector<std::string>> dependencies(const Json& json, const std::string& where) {
    std::vector<std::string> ids;
    const auto it = json.find("depends_on");
    if (it == json.end() || it->is_null()) {
        return ids;
    }
    if (!it->is_array()) {
        return fail(ErrorCode::InvalidArgument, "{}: \"depends_on\" must be an array of ids",
                    where);
    }
    for (const Json& id : *it) {
        if (!id.is_string() && !id.is_number_integer()) {
            return fail(ErrorCode::InvalidArgument, "{}: \"depends_on\" must hold ids of steps",
                        where);
        }
        ids.push_back(id.is_string() ? id.get<std::string>() : id.dump());
    }
    return ids;
}

Result<PlanStep> stepFromJson(const Json& json, size_t number) {
    const std::string where = fmt::format("step {}", number);
    if (!json.is_object()) {
        return fail(ErrorCode::InvalidArgument, "{} must be an object with a title", where);
    }
    PlanStep step;
    step.id = BV_TRY(textField(json, "id", where));
    step.title = BV_TRY(textField(json, "title", where));
    step.evidence = BV_TRY(textField(json, "evidence", where));
    step.depends_on = BV_TRY(dependencies(json, where));
    if (step.id.empty()) {
        step.id = std::to_string(number);
    }
    if (step.title.find_first_not_of(" \t\r\n") == std::string::npos) {
        return fail(ErrorCode::InvalidArgument, "{}: the title is empty", where);
    }
    const std::string status = BV_TRY(textField(json, "status", where));
    if (!status.empty()) {
        const std::optional<StepStatus> known = statusFromName(status);
        if (!known) {
            return fail(
                ErrorCode::InvalidArgument,
                "{}: unknown status \"{}\"; use pending, in_progress, done, failed or skipped",
                where, status);
        }
        step.status = *known;
    }
    return step;
}

/// Removes steps whose dependencies are all removed, until none is left (Kahn): what stays is a
/// cycle.
Result<void> checkDependencies(const std::vector<PlanStep>& steps) {
    std::map<std::string, size_t> index;
    for (size_t i = 0; i < steps.size(); ++i) {
        if (!index.emplace(steps[i].id, i).second) {
            return fail(ErrorCode::InvalidArgument, "two steps have the id \"{}\"", steps[i].id);
        }
    }
    std::vector<size_t> n_open(steps.size(), 0);
    std::vector<std::vector<size_t>> followers(steps.size());
    for (size_t i = 0; i < steps.size(); ++i) {
        for (const std::string& id : steps[i].depends_on) {
            const auto it = index.find(id);
            if (it == index.end()) {
                return fail(ErrorCode::InvalidArgument,
                            "step \"{}\" depends on \"{}\", which does not exist", steps[i].id, id);
            }
            followers[it->second].push_back(i);
            ++n_open[i];
        }
    }
    std::vector<size_t> ready;
    for (size_t i = 0; i < steps.size(); ++i) {
        if (n_open[i] == 0) {
            ready.push_back(i);
        }
    }
    for (size_t done = 0; done < ready.size(); ++done) {
        for (const size_t follower : followers[ready[done]]) {
            if (--n_open[follower] == 0) {
                ready.push_back(follower);
            }
        }
    }
    for (size_t i = 0; i < steps.size(); ++i) {
        if (n_open[i] != 0) {
            return fail(ErrorCode::InvalidArgument, "step \"{}\" depends on itself in a circle",
                        steps[i].id);
        }
    }
    return {};
}

}  // namespace

const char* stepStatusName(StepStatus status) {
    for (const StatusName& entry : kStatusNames) {
        if (entry.status == status) {
            return entry.name;
        }
    }
    return "pending";
}

Json planToJson(const Plan& plan) {
    Json steps = Json::array();
    for (const PlanStep& step : plan.steps) {
        Json json = {
            {"id", step.id}, {"title", step.title}, {"status", stepStatusName(step.status)}};
        if (!step.depends_on.empty()) {
            json["depends_on"] = step.depends_on;
        }
        if (!step.evidence.empty()) {
            json["evidence"] = step.evidence;
        }
        steps.push_back(std::move(json));
    }
    return {{"steps", std::move(steps)}};
}

Result<Plan> planFromJson(const Json& json) {
    const Json* steps = json.is_array() ? &json : nullptr;
    if (json.is_object() && json.contains("steps")) {
        steps = &json["steps"];
    }
    if (steps == nullptr || !steps->is_array()) {
        return fail(ErrorCode::InvalidArgument, "a plan needs \"steps\", an array");
    }
    if (steps->size() > kMaxSteps) {
        return fail(ErrorCode::InvalidArgument, "a plan has at most {} steps, this one has {}",
                    kMaxSteps, steps->size());
    }
    Plan plan;
    for (const Json& step : *steps) {
        plan.steps.push_back(BV_TRY(stepFromJson(step, plan.steps.size() + 1)));
    }
    BV_TRY(checkDependencies(plan.steps));
    return plan;
}

}  // namespace belvedere::agent
