// SPDX-License-Identifier: Apache-2.0
#include "agent/tool_calls/parser.h"

#include <utility>

#include "agent/tool_calls/bare_json_parser.h"
#include "agent/tool_calls/markers.h"
#include "agent/tool_calls/minimax_m3_parser.h"
#include "agent/tool_calls/reasoning_splitter.h"
#include "agent/tool_calls/tagged_parser.h"

namespace belvedere::agent {

namespace {

constexpr size_t kMaxRawBytes =
    2000;  // of a malformed call: enough for a person and the model to recognise it

/// ToolCallFormat::None: all is text.
class PlainParser : public ToolCallParser {
  public:
    void feed(std::string_view chunk, ParserEvents& out) override {
        addText(out, ParserEvent::Kind::Text, chunk);
    }

    void finish(StreamEnd, ParserEvents&) override {}
};

std::unique_ptr<ToolCallParser> makeCallParser(const ParserOptions& options) {
    const auto tagged = [&](TaggedFormat format) {
        return makeTaggedParser(format, options.tools);
    };
    switch (options.format) {
        case ToolCallFormat::None:
            return std::make_unique<PlainParser>();
        case ToolCallFormat::Hermes:
            // Small models often leave the tags out.
            return makeBareJsonParser(BareJsonNames::KnownTools, options.tools,
                                      tagged(TaggedFormat::HermesJson));
        case ToolCallFormat::QwenXml:
            return tagged(TaggedFormat::QwenXml);
        case ToolCallFormat::LlamaJson:
            return makeBareJsonParser(BareJsonNames::Any, options.tools,
                                      tagged(TaggedFormat::HermesJson));
        case ToolCallFormat::MinimaxM2:
            return tagged(TaggedFormat::MinimaxM2);
        case ToolCallFormat::MinimaxM3:
            return makeMinimaxM3Parser(options.tools);
    }
    return std::make_unique<PlainParser>();
}

}  // namespace

std::unique_ptr<ToolCallParser> makeToolCallParser(const ParserOptions& options) {
    ReasoningMarkers markers;
    if (options.format == ToolCallFormat::MinimaxM3 || options.has_minimax_thinking) {
        markers.open = "<mm:think>";
        markers.close = "</mm:think>";
    }
    // A call that begins inside reasoning ends it, where the marker of a block is not something a
    // model would only mention.
    if (options.format == ToolCallFormat::MinimaxM3) {
        markers.implicit_end = kMinimaxM3BlockOpen;
    } else if (options.format == ToolCallFormat::MinimaxM2) {
        markers.implicit_end = "<minimax:tool_call>";
    }
    return std::make_unique<ReasoningSplitter>(markers, options.starts_in_thinking,
                                               makeCallParser(options));
}

void addText(ParserEvents& out, ParserEvent::Kind kind, std::string_view text) {
    if (text.empty()) {
        return;
    }
    if (out.empty() || out.back().kind != kind) {
        out.emplace_back();
        out.back().kind = kind;
    }
    out.back().text += text;
}

void addCall(ParserEvents& out, ParserEvent::Kind kind, ToolCall call) {
    ParserEvent event;
    event.kind = kind;
    event.call = std::move(call);
    out.push_back(std::move(event));
}

void addMalformed(ParserEvents& out, std::string name, std::string_view raw, std::string reason) {
    ParserEvent event;
    event.kind = ParserEvent::Kind::MalformedCall;
    event.call.name = std::move(name);
    event.text = raw.size() <= kMaxRawBytes ? std::string(raw)
                                            : std::string(cutAtCharacter(raw, kMaxRawBytes)) + "…";
    event.reason = std::move(reason);
    out.push_back(std::move(event));
}

const ToolSpec* findTool(const std::vector<ToolSpec>& tools, std::string_view name) {
    for (const ToolSpec& tool : tools) {
        if (tool.name == name) {
            return &tool;
        }
    }
    return nullptr;
}

std::string toolName(std::string_view written, const std::vector<ToolSpec>& tools) {
    constexpr std::string_view kPrefix = "functions.";
    std::string_view name = trimmed(written);
    if (name.starts_with(kPrefix) && findTool(tools, name) == nullptr) {
        name.remove_prefix(kPrefix.size());
    }
    return std::string(name);
}

}  // namespace belvedere::agent
