// SPDX-License-Identifier: Apache-2.0
#include "inference/chat/jinja/interpreter.h"

#include <algorithm>
#include <ctime>

#include "inference/chat/jinja/variables.h"

namespace belvedere::inference::jinja {
namespace {

/// The system's local time as if it were a time of day without a zone.
[[nodiscard]] std::chrono::sys_seconds localNow() {
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    return std::chrono::sys_seconds(std::chrono::seconds(now + local.tm_gmtoff));
}

[[nodiscard]] RenderedText renderedText(const Text& text) {
    RenderedText rendered;
    rendered.text = text.bytes();
    size_t begin = 0;
    for (const TextRun& run : text.runs()) {
        rendered.spans.push_back({begin, run.end, run.origin.trusted, run.origin.source});
        begin = run.end;
    }
    return rendered;
}

}  // namespace

const Value* Scope::find(int name, size_t& n_searched) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->outer_.get()) {
        n_searched += 1 + scope->variables_.size();
        for (const auto& [id, value] : scope->variables_) {
            if (id == name) {
                return &value;
            }
        }
    }
    return nullptr;
}

void Scope::set(int name, Value value) {
    for (auto& [id, old] : variables_) {
        if (id == name) {
            old = std::move(value);
            return;
        }
    }
    variables_.emplace_back(name, std::move(value));
}

Interpreter::Interpreter(const Program& program,
                         const TemplateLimits& limits,
                         const RenderOptions& options)
    : program_(program),
      options_(options),
      runtime_(limits, options.now.has_value() ? *options.now : localNow()),
      scope_(std::make_shared<Scope>(nullptr)),
      output_(std::make_unique<TextBuilder>(&runtime_.meter)),
      captured_text_(Text()) {}

Interpreter::~Interpreter() {
    scope_->clear();
    for (const auto& scope : captured_scopes_) {
        scope->clear();
    }
    for (const auto& space : namespaces_) {
        space->attributes.clear();
    }
}

void Interpreter::setFunctions() {
    constexpr std::pair<std::string_view, BuiltinFunction> kFunctions[] = {
        {"range", BuiltinFunction::Range},
        {"dict", BuiltinFunction::Dict},
        {"namespace", BuiltinFunction::Namespace},
        {"raise_exception", BuiltinFunction::RaiseException},
        {"strftime_now", BuiltinFunction::StrftimeNow},
    };
    for (size_t id = 0; id < program_.names.size(); ++id) {
        for (const auto& [name, function] : kFunctions) {
            if (program_.names[id] == name) {
                scope_->set(static_cast<int>(id), runtime_.heap.callable(function));
            }
        }
    }
}

/// Only those that the template names: the others cost nothing.
Result<void> Interpreter::setVariables(const nlohmann::ordered_json& variables) {
    if (!variables.is_object()) {
        return fail(ErrorCode::InvalidArgument, "the variables of a template must be an object");
    }
    const SourceMap sources = BV_TRY(indexSources(options_.sources, variables));
    for (size_t id = 0; id < program_.names.size(); ++id) {
        const std::string& name = program_.names[id];
        const auto found = variables.find(name);
        if (found != variables.end()) {
            const bool is_trusted = std::ranges::count(options_.trusted_variables, name) > 0;
            scope_->set(static_cast<int>(id),
                        BV_TRY(valueFromJson(runtime_, *found, "/" + escapePointerPart(name),
                                             is_trusted, sources)));
        }
    }
    return {};
}

const Value* Interpreter::findVariable(int name) {
    size_t n_searched = 0;
    const Value* found = scope_->find(name, n_searched);
    runtime_.meter.spend(n_searched / 64);
    return found;
}

Result<RenderedText> Interpreter::run(const nlohmann::ordered_json& variables) {
    setFunctions();
    BV_TRY(setVariables(variables));
    Result<Flow> flow = execute(program_.body);
    if (!flow.has_value()) {
        return failWithContext(std::move(flow).error(), fmt::format("line {}", line_));
    }
    return renderedText(output_->finish());
}

}  // namespace belvedere::inference::jinja
