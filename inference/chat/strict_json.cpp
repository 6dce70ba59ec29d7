// SPDX-License-Identifier: Apache-2.0
#include "inference/chat/strict_json.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace belvedere::inference {
namespace {

using Json = nlohmann::ordered_json;

/// Receives the parser's events and builds the value, or stops with an error.
class Builder final : public nlohmann::json_sax<Json> {
  public:
    bool null() override { return add(nullptr); }

    bool boolean(bool value) override { return add(value); }

    bool number_integer(number_integer_t value) override { return add(value); }

    bool number_unsigned(number_unsigned_t value) override {
        if (value > static_cast<number_unsigned_t>(INT64_MAX)) {
            return stop(fmt::format("the number {} does not fit in 64 bits", value));
        }
        return add(value);
    }

    bool number_float(number_float_t value, const string_t& digits) override {
        const bool is_whole = digits.find_first_of(".eE") == std::string::npos;
        if (is_whole || !std::isfinite(value)) {
            return stop(fmt::format("the number {} does not fit in 64 bits", digits.substr(0, 40)));
        }
        return add(value);
    }

    bool string(string_t& value) override { return add(std::move(value)); }

    bool binary(binary_t&) override { return stop("unexpected binary data"); }

    bool start_object(size_t) override { return open(Json::object()); }

    bool key(string_t& name) override {
        if (open_.back()->contains(name)) {
            return stop(fmt::format("the name '{}' is given twice", name));
        }
        name_ = std::move(name);
        return true;
    }

    bool end_object() override { return close(); }

    bool start_array(size_t) override { return open(Json::array()); }

    bool end_array() override { return close(); }

    bool parse_error(size_t position,
                     const std::string& token,
                     const nlohmann::detail::exception&) override {
        return stop(
            fmt::format("invalid JSON at byte {}, near '{}'", position, token.substr(0, 40)));
    }

    [[nodiscard]] const std::string& problem() const { return problem_; }

    [[nodiscard]] Json take() { return std::move(root_); }

  private:
    bool stop(std::string problem) {
        problem_ = std::move(problem);
        return false;
    }

    /// Adds a value to the innermost open container and returns where it stands.
    Json& place(Json value) {
        if (open_.empty()) {
            root_ = std::move(value);
            return root_;
        }
        if (open_.back()->is_array()) {
            open_.back()->push_back(std::move(value));
            return open_.back()->back();
        }
        Json& member = (*open_.back())[name_];
        member = std::move(value);
        return member;
    }

    bool add(Json value) {
        (void)place(std::move(value));
        return true;
    }

    bool open(Json container) {
        constexpr size_t kMaxNesting = 100;
        if (open_.size() >= kMaxNesting) {
            return stop(fmt::format("values nest deeper than {}", kMaxNesting));
        }
        open_.push_back(&place(std::move(container)));
        return true;
    }

    bool close() {
        open_.pop_back();
        return true;
    }

    Json root_;
    std::vector<Json*> open_;  // a container does not move while one inside it is open
    std::string name_;
    std::string problem_;
};

}  // namespace

Result<nlohmann::ordered_json> parseStrictJson(std::string_view text) {
    Builder builder;
    if (!Json::sax_parse(text.begin(), text.end(), &builder)) {
        return fail(ErrorCode::InvalidArgument, "{}", builder.problem());
    }
    return builder.take();
}

}  // namespace belvedere::inference
