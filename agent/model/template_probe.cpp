// SPDX-License-Identifier: Apache-2.0
#include "agent/model/template_probe.h"

#include <string>
#include <string_view>

namespace belvedere::agent {
namespace {

constexpr const char* kProbeTool = "belvedere_probe";
constexpr const char* kProbeArgument = "probe_argument";

inference::ChatMessage text(const char* role, const char* content) {
    inference::ChatMessage message;
    message.role = role;
    message.content.push_back({inference::ChatPartKind::Text, content, -1});
    return message;
}

/// The rendered prompt as text; empty where the template refuses.
std::string render(const inference::Engine& engine, inference::ChatRequest chat) {
    const Result<inference::Prompt> prompt = engine.buildPrompt({std::move(chat), {}});
    return prompt ? engine.tokenizer().decode(prompt->ids) : std::string();
}

inference::ChatToolSpec probeTool() {
    inference::ChatToolSpec tool;
    tool.name = kProbeTool;
    tool.description = "-";
    tool.parameters = {{"type", "object"},
                       {"properties", {{kProbeArgument, {{"type", "string"}}}}}};
    return tool;
}

/// A conversation in which the tool was called, so that the template shows how it writes a call.
inference::ChatRequest callHistory() {
    inference::ChatRequest chat;
    chat.tools = {probeTool()};
    inference::ChatMessage call;
    call.role = "assistant";
    call.tool_calls.push_back({"call00001", kProbeTool, {{kProbeArgument, "x"}}});
    inference::ChatMessage result = text("tool", "y");
    result.tool_call_id = "call00001";
    result.tool_name = kProbeTool;
    chat.messages = {text("user", "u"), std::move(call), std::move(result)};
    return chat;
}

bool contains(std::string_view haystack, std::string_view needle) {
    return haystack.find(needle) != std::string_view::npos;
}

ToolCallFormat formatOf(std::string_view prompt) {
    if (contains(prompt, "]<]minimax[>[<invoke")) {
        return ToolCallFormat::MinimaxM3;
    }
    if (contains(prompt, "<minimax:tool_call>")) {
        return ToolCallFormat::MinimaxM2;
    }
    if (contains(prompt, std::string("<function=") + kProbeTool)) {
        return ToolCallFormat::QwenXml;
    }
    if (contains(prompt, "<tool_call>")) {
        return ToolCallFormat::Hermes;
    }
    return contains(prompt, "\"parameters\": {\"" + std::string(kProbeArgument))
               ? ToolCallFormat::LlamaJson
               : ToolCallFormat::Hermes;
}

bool endsInThinking(std::string_view prompt) {
    prompt = prompt.substr(0, prompt.find_last_not_of(" \n") + 1);
    for (const std::string_view opening : {"<think>", "<mm:think>"}) {
        if (prompt.size() >= opening.size() &&
            prompt.substr(prompt.size() - opening.size()) == opening) {
            return true;
        }
    }
    return false;
}

}  // namespace

TemplateFacts probeTemplate(const inference::Engine& engine) {
    TemplateFacts facts;
    inference::ChatRequest plain;
    plain.messages = {text("user", "u")};
    facts.starts_in_thinking = endsInThinking(render(engine, plain));

    plain.tools = {probeTool()};
    facts.has_native_tools = contains(render(engine, plain), kProbeTool);
    if (facts.has_native_tools) {
        facts.tool_calls = formatOf(render(engine, callHistory()));
    }
    return facts;
}

}  // namespace belvedere::agent
