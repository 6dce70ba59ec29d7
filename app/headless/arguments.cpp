// SPDX-License-Identifier: Apache-2.0
#include "app/headless/arguments.h"

#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

namespace belvedere::app {
namespace {

using inference::Attention;
using inference::Compute;
using Setter =
    std::function<Result<void>(Arguments&, const std::string& name, const std::string& value)>;

template <class T>
Result<T> parseNumber(const std::string& name, const std::string& value) {
    T number{};
    const char* end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, number);
    if (error != std::errc() || stop != end || value.empty()) {
        return fail(ErrorCode::InvalidArgument, "{}: expected a number, found \"{}\"", name, value);
    }
    return number;
}

Setter text(std::string Arguments::* field) {
    return [field](Arguments& arguments, const std::string& name,
                   const std::string& value) -> Result<void> {
        if (value.empty()) {
            return fail(ErrorCode::InvalidArgument, "{}: the value is empty", name);
        }
        arguments.*field = value;
        return {};
    };
}

template <class T>
Setter number(std::optional<T> Arguments::* field) {
    return [field](Arguments& arguments, const std::string& name,
                   const std::string& value) -> Result<void> {
        arguments.*field = BV_TRY(parseNumber<T>(name, value));
        return {};
    };
}

/// One of some words.
template <class T>
Setter choice(std::optional<T> Arguments::* field, std::vector<std::pair<std::string, T>> words) {
    return [field, words = std::move(words)](Arguments& arguments, const std::string& name,
                                             const std::string& value) -> Result<void> {
        std::string expected;
        for (const auto& [word, meaning] : words) {
            if (value == word) {
                arguments.*field = meaning;
                return {};
            }
            expected += (expected.empty() ? "" : " or ") + word;
        }
        return fail(ErrorCode::InvalidArgument, "{}: expected {}, found \"{}\"", name, expected,
                    value);
    };
}

Setter cacheType(std::optional<kernels::CacheType> Arguments::* field) {
    std::vector<std::pair<std::string, kernels::CacheType>> words;
    for (const kernels::CacheTypeInfo& info : kernels::kCacheTypes) {
        words.emplace_back(info.name, info.type);
    }
    return choice(field, std::move(words));
}

Result<void> addAdapter(Arguments& arguments,
                        const std::string& /*name*/,
                        const std::string& value) {
    arguments.adapters.push_back(BV_TRY(parseAdapter(value)));
    return {};
}

Setter media(inference::MediaKind kind) {
    return [kind](Arguments& arguments, const std::string& name,
                  const std::string& value) -> Result<void> {
        if (value.empty()) {
            return fail(ErrorCode::InvalidArgument, "{}: the value is empty", name);
        }
        arguments.media.push_back({kind, value});
        return {};
    };
}

const std::map<std::string, Setter>& valueOptions() {
    static const std::map<std::string, Setter> kOptions = {
        {"--model", text(&Arguments::model)},
        {"--adapter", addAdapter},
        {"--mmproj", text(&Arguments::mmproj)},
        {"--image", media(inference::MediaKind::Image)},
        {"--video", media(inference::MediaKind::Video)},
        {"--repo", text(&Arguments::repository)},
        {"--session", text(&Arguments::session)},
        {"--snapshot", text(&Arguments::snapshot)},
        {"--questions", text(&Arguments::questions)},
        {"--template", text(&Arguments::template_file)},
        {"--input", text(&Arguments::input)},
        {"--output", text(&Arguments::output)},
        {"--budget", number(&Arguments::budget)},
        {"--threads", number(&Arguments::n_threads)},
        {"--context", number(&Arguments::context_tokens)},
        {"--chunk", number(&Arguments::chunk)},
        {"--max-tokens", number(&Arguments::max_tokens)},
        {"--prompt", number(&Arguments::n_prompt)},
        {"--depth", number(&Arguments::n_depth)},
        {"--fps", number(&Arguments::frames_per_second)},
        {"--temperature", number(&Arguments::temperature)},
        {"--seed", number(&Arguments::seed)},
        {"--compute",
         choice(&Arguments::compute, {{"exact", Compute::Exact}, {"fast", Compute::Fast}})},
        {"--attention",
         choice(&Arguments::attention, {{"msa", Attention::Msa}, {"dense", Attention::Dense}})},
        {"--cache-type", cacheType(&Arguments::cache_type)},
        {"--index-cache-type", cacheType(&Arguments::index_cache_type)},
        {"--speculative", choice(&Arguments::speculative, {{"on", true}, {"off", false}})},
    };
    return kOptions;
}

const std::map<std::string, bool Arguments::*>& flagOptions() {
    static const std::map<std::string, bool Arguments::*> kOptions = {
        {"--all", &Arguments::all},   {"--plain", &Arguments::plain},
        {"--json", &Arguments::json}, {"--work", &Arguments::work},
        {"--yes", &Arguments::yes},   {"--help", &Arguments::help},
        {"-h", &Arguments::help},     {"--version", &Arguments::version},
    };
    return kOptions;
}

}  // namespace

Result<inference::AdapterFile> parseAdapter(const std::string& word) {
    inference::AdapterFile adapter{word};
    const size_t colon = word.rfind(':');
    if (colon != std::string::npos) {
        const Result<float> scale = parseNumber<float>("--adapter", word.substr(colon + 1));
        if (!scale || !std::isfinite(*scale)) {
            return fail(ErrorCode::InvalidArgument,
                        "--adapter {}: expected FILE or FILE:scale, the scale a number", word);
        }
        adapter = {word.substr(0, colon), *scale};
    }
    if (adapter.path.empty()) {
        return fail(ErrorCode::InvalidArgument, "--adapter {}: the file is missing", word);
    }
    return adapter;
}

Result<Arguments> parseArguments(const std::vector<std::string>& words) {
    Arguments arguments;
    bool options_ended = false;
    for (size_t i = 0; i < words.size(); ++i) {
        const std::string& word = words[i];
        if (options_ended || word.empty() || word[0] != '-' || word == "-") {
            if (arguments.command.empty() && !options_ended) {
                arguments.command = word;
            } else {
                arguments.positional.push_back(word);
            }
            continue;
        }
        if (word == "--") {
            options_ended = true;
            continue;
        }
        if (const auto flag = flagOptions().find(word); flag != flagOptions().end()) {
            arguments.*(flag->second) = true;
            continue;
        }
        const size_t equals = word.find('=');
        const std::string name = word.substr(0, equals);
        const auto option = valueOptions().find(name);
        if (option == valueOptions().end()) {
            return fail(ErrorCode::InvalidArgument, "{}: unknown option: see belvedere --help",
                        name);
        }
        if (equals == std::string::npos && i + 1 == words.size()) {
            return fail(ErrorCode::InvalidArgument, "{}: a value must follow", name);
        }
        const std::string value =
            equals == std::string::npos ? words[++i] : word.substr(equals + 1);
        BV_TRY(option->second(arguments, name, value));
    }
    return arguments;
}

}  // namespace belvedere::app
