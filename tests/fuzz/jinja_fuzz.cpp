// SPDX-License-Identifier: Apache-2.0
// Chat templates come out of model files: no text may crash the compiler or the interpreter, or
// make them run on. The input is a template; after a NUL byte, the JSON of its variables.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "inference/chat/strict_json.h"
#include "inference/chat/template.h"
#include "kernels/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using belvedere::inference::ChatTemplate;
    using belvedere::inference::TemplateLimits;
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    const size_t split = input.find('\0');
    TemplateLimits limits;
    limits.max_steps = 20'000;
    limits.max_output_bytes = 1U << 18;
    limits.max_value_bytes = 4U << 20;
    auto compiled = ChatTemplate::compile(input.substr(0, split), limits);
    if (!compiled.has_value()) {
        return 0;
    }
    nlohmann::ordered_json variables = {{"messages",
                                         {{{"role", "user"}, {"content", "Hi <b>\n"}},
                                          {{"role", "assistant"}, {"content", nullptr}}}},
                                        {"tools", nullptr},
                                        {"add_generation_prompt", true},
                                        {"bos_token", "<s>"},
                                        {"s", " a\u00e9b "},
                                        {"l", {3, 1.5, "x", nullptr}},
                                        {"d", {{"b", 1}, {"a", {1, 2}}}}};
    if (split != std::string_view::npos) {
        auto parsed = belvedere::inference::parseStrictJson(input.substr(split + 1));
        if (parsed.has_value() && parsed->is_object()) {
            variables = *std::move(parsed);
        }
    }
    belvedere::inference::RenderOptions options;
    options.now = std::chrono::sys_seconds(std::chrono::seconds(1'767'323'045));
    const auto rendered = compiled->render(variables, options);
    if (rendered.has_value()) {
        size_t at = 0;
        for (const auto& span : rendered->spans) {
            BV_CHECK(span.begin == at && span.end > span.begin);
            at = span.end;
        }
        BV_CHECK(at == rendered->text.size());
    }
    return 0;
}
