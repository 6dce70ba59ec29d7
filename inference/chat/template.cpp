// SPDX-License-Identifier: Apache-2.0
#include "inference/chat/template.h"

#include <utility>

#include "inference/chat/jinja/interpreter.h"
#include "inference/chat/jinja/parser.h"

namespace belvedere::inference {

Result<ChatTemplate> ChatTemplate::compile(std::string_view source,
                                           const TemplateLimits& limits,
                                           std::string name) {
    Result<jinja::Program> program = jinja::parseTemplate(source);
    if (!program.has_value()) {
        return failWithContext(std::move(program).error(), name);
    }
    ChatTemplate compiled;
    compiled.name_ = std::move(name);
    compiled.source_ = source;
    compiled.limits_ = limits;
    compiled.program_ = std::make_shared<const jinja::Program>(std::move(*program));
    return compiled;
}

Result<RenderedText> ChatTemplate::render(const nlohmann::ordered_json& variables,
                                          const RenderOptions& options) const {
    Result<RenderedText> rendered = jinja::Interpreter(*program_, limits_, options).run(variables);
    if (!rendered.has_value()) {
        return failWithContext(std::move(rendered).error(), name_);
    }
    return rendered;
}

}  // namespace belvedere::inference
