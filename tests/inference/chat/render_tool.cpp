// SPDX-License-Identifier: Apache-2.0
// For compare_with_jinja2.py: reads one JSON object a line, {"template": ..., "variables": {...}},
// and answers each with
// {"text": ...} or {"error": ...} on a line. Not part of the tests.

#include <iostream>
#include <string>

#include <nlohmann/json.hpp>

#include "inference/chat/template.h"

int main() {
    using Json = nlohmann::ordered_json;
    using belvedere::inference::ChatTemplate;
    std::ios::sync_with_stdio(false);
    for (std::string line; std::getline(std::cin, line);) {
        const Json request = Json::parse(line, nullptr, false);
        if (request.is_discarded()) {
            std::cout << R"({"error":"invalid request"})" << std::endl;
            continue;
        }
        Json answer;
        auto compiled = ChatTemplate::compile(request["template"].get<std::string>());
        if (!compiled.has_value()) {
            answer["error"] = compiled.error().message;
            answer["unsupported"] = compiled.error().code == belvedere::ErrorCode::Unsupported;
        } else if (auto rendered = compiled->render(request["variables"]); rendered.has_value()) {
            answer["text"] = rendered->text;
        } else {
            answer["error"] = rendered.error().message;
            answer["unsupported"] = rendered.error().code == belvedere::ErrorCode::Unsupported;
        }
        std::cout << answer.dump() << std::endl;
    }
    return 0;
}
