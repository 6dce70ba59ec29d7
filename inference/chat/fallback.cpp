// SPDX-License-Identifier: Apache-2.0
#include "inference/chat/fallback.h"

#include <string>
#include <utility>

#include "kernels/base/check.h"

namespace belvedere::inference {
namespace {

constexpr std::string_view kChatMl = R"jinja(
{%- macro text_of(content) -%}
    {%- if content is string -%}
        {{- content -}}
    {%- elif content is not none -%}
        {%- for part in content if part.type == 'text' -%}
            {{- part.text -}}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro -%}
{%- set first = namespace(message=0) -%}
{%- if tools -%}
    {{- '<|im_start|>system\n' -}}
    {%- if messages and messages[0].role == 'system' -%}
        {{- text_of(messages[0].content) + '\n\n' -}}
        {%- set first.message = 1 -%}
    {%- endif -%}
    {{- 'These functions can be called, one JSON signature a line:\n<tools>\n' -}}
    {%- for tool in tools -%}
        {{- tool | tojson + '\n' -}}
    {%- endfor -%}
    {{- '</tools>\nTo call one, write its name and arguments as JSON between these tags:\n' -}}
    {{- '<tool_call>\n{"name": "function name", "arguments": {"argument": "value"}}\n</tool_call>' -}}
    {{- '<|im_end|>\n' -}}
{%- endif -%}
{%- for message in messages[first.message:] -%}
    {%- if message.role == 'tool' -%}
        {{- '<|im_start|>user\n<tool_response>\n' + text_of(message.content) + '\n</tool_response>' -}}
    {%- else -%}
        {{- '<|im_start|>' + message.role + '\n' + text_of(message.content) -}}
        {%- for call in message.tool_calls or [] -%}
            {{- '\n<tool_call>\n{"name": ' + call.function.name | tojson -}}
            {{- ', "arguments": ' + call.function.arguments | tojson + '}\n</tool_call>' -}}
        {%- endfor -%}
    {%- endif -%}
    {{- '<|im_end|>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{- '<|im_start|>assistant\n' -}}
{%- endif -%}
)jinja";

}  // namespace

ChatTemplate fallbackTemplate() {
    Result<ChatTemplate> compiled =
        ChatTemplate::compile(kChatMl, {}, std::string(kFallbackTemplateName));
    BV_CHECK(compiled.has_value());
    return *std::move(compiled);
}

}  // namespace belvedere::inference
