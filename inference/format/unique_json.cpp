// SPDX-License-Identifier: Apache-2.0
#include "inference/format/unique_json.h"

#include <string>
#include <unordered_set>
#include <vector>

#include "inference/format/printable.h"

namespace belvedere::inference {

Result<nlohmann::json> parseUniqueJson(std::string_view text, const char* what, int max_depth) {
    using Json = nlohmann::json;
    std::vector<std::unordered_set<std::string>> keys;
    std::string repeated;
    bool too_deep = false;
    const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
        too_deep = too_deep || depth > max_depth;
        if (event == Json::parse_event_t::object_start) {
            keys.emplace_back();
        } else if (event == Json::parse_event_t::object_end) {
            keys.pop_back();
        } else if (event == Json::parse_event_t::key &&
                   !keys.back().insert(parsed.get<std::string>()).second) {
            repeated = parsed.get<std::string>();
        }
        return !too_deep && repeated.empty();
    };
    Json json = Json::parse(text, watch, false);
    if (too_deep) {
        return fail(ErrorCode::Corrupt, "{} is nested deeper than {}", what, max_depth);
    }
    if (!repeated.empty()) {
        return fail(ErrorCode::Corrupt, "{} has the key \"{}\" twice", what, printable(repeated));
    }
    if (!json.is_object()) {
        return fail(ErrorCode::Corrupt, "{} is no JSON object", what);
    }
    return json;
}

}  // namespace belvedere::inference
