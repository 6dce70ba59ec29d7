// SPDX-License-Identifier: Apache-2.0
#include "agent/tool_calls/json_call.h"

#include <algorithm>
#include <utility>

#include "agent/tool_calls/lenient_json.h"
#include "agent/tool_calls/markers.h"
#include "agent/tool_calls/parser.h"
#include "agent/tool_calls/schema.h"

namespace belvedere::agent {

namespace {

const Json* firstMember(const Json& object, std::initializer_list<const char*> names) {
    for (const char* name : names) {
        const auto it = object.find(name);
        if (it != object.end()) {
            return &*it;
        }
    }
    return nullptr;
}

Result<Json> argumentsFrom(const Json* written) {
    if (written == nullptr || written->is_null()) {
        return Json::object();
    }
    if (written->is_object()) {
        return *written;
    }
    if (written->is_string()) {
        const std::string& text = written->get_ref<const std::string&>();
        if (trimmed(text).empty()) {
            return Json::object();
        }
        const Result<LenientValue> read = readLenientJson(text);
        if (read.has_value() && read->value.is_object() &&
            trimmed(std::string_view(text).substr(read->n_bytes)).empty()) {
            return read->value;
        }
    }
    return fail(ErrorCode::InvalidArgument, "the arguments are not a JSON object");
}

std::string_view withoutFence(std::string_view text) {
    text = trimmed(text);
    if (text.starts_with("```")) {
        const size_t line_end = text.find_first_of("\n{[");
        text.remove_prefix(line_end == std::string_view::npos ? text.size() : line_end);
        if (text.ends_with("```")) {
            text.remove_suffix(3);
        }
    }
    return trimmed(text);
}

}  // namespace

Result<ToolCall> callFromJson(const Json& json, const std::vector<ToolSpec>& tools) {
    if (!json.is_object()) {
        return fail(ErrorCode::InvalidArgument,
                    "a call must be a JSON object with a name and arguments");
    }
    const Json* function = firstMember(json, {"function"});
    if (function != nullptr && function->is_object()) {
        return callFromJson(*function, tools);
    }
    const Json* name = firstMember(json, {"name", "function", "tool"});
    if (name == nullptr || !name->is_string() ||
        trimmed(name->get_ref<const std::string&>()).empty()) {
        return fail(ErrorCode::InvalidArgument, "the call has no \"name\"");
    }
    ToolCall call;
    call.name = toolName(name->get_ref<const std::string&>(), tools);
    call.arguments = BV_TRY(argumentsFrom(firstMember(json, {"arguments", "parameters", "args"})));
    if (const ToolSpec* tool = findTool(tools, call.name)) {
        coerceArguments(call.arguments, tool->parameters);
    }
    return call;
}

Result<std::vector<ToolCall>> callsFromText(std::string_view text,
                                            const std::vector<ToolSpec>& tools) {
    std::vector<ToolCall> calls;
    std::string_view rest = withoutFence(text);
    while (!rest.empty()) {
        const LenientValue read = BV_TRY(readLenientJson(rest));
        if (read.value.is_array()) {
            for (const Json& json : read.value) {
                calls.push_back(BV_TRY(callFromJson(json, tools)));
            }
        } else {
            calls.push_back(BV_TRY(callFromJson(read.value, tools)));
        }
        rest.remove_prefix(read.n_bytes);
        rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r\n,;"), rest.size()));
    }
    if (calls.empty()) {
        return fail(ErrorCode::InvalidArgument, "the call is empty");
    }
    return calls;
}

bool JsonScanner::advance(std::string_view text, size_t& pos, bool is_last) {
    constexpr char kTypographic = '\xE2';  // first of the three bytes of such a quote
    const std::string_view rest = text.substr(pos);
    if (rest.front() == kTypographic && rest.size() < 3 && !is_last) {
        return false;
    }
    if (quote_ != 0) {
        if (rest.front() == '\\') {
            if (rest.size() < 2 && !is_last) {
                return false;
            }
            pos = std::min(pos + 2, text.size());
            return true;
        }
        const size_t n_quote = closingQuoteBytes(rest, quote_);
        quote_ = n_quote > 0 ? '\0' : quote_;
        pos += std::max<size_t>(n_quote, 1);
        return true;
    }
    const size_t n_quote = has_begun_ && depth_ > 0 ? openingQuoteBytes(rest) : 0;
    if (n_quote > 0) {
        quote_ = rest.front();
        pos += n_quote;
        return true;
    }
    if (rest.front() == '{' || rest.front() == '[') {
        has_begun_ = true;
        ++depth_;
    } else if ((rest.front() == '}' || rest.front() == ']') && depth_ > 0) {
        --depth_;
    }
    ++pos;
    return true;
}

}  // namespace belvedere::agent
