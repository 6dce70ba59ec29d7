// SPDX-License-Identifier: Apache-2.0
#include "tools/files/glob.h"

#include <re2/re2.h>

namespace belvedere::tools {
namespace {

/// The regular expression of the wild card at `at`, which is moved behind it; empty for any other
/// character.
std::string wildCard(std::string_view pattern, size_t& at) {
    if (pattern.substr(at).starts_with("**/")) {
        at += 3;
        return "(?:.*/)?";
    }
    if (pattern.substr(at).starts_with("**")) {
        at += 2;
        return ".*";
    }
    if (pattern[at] == '*') {
        ++at;
        return "[^/]*";
    }
    if (pattern[at] == '?') {
        ++at;
        return "[^/]";
    }
    if (pattern[at] == '[') {
        const size_t end = pattern.find(']', at + 2);  // "[]a]" contains a ']'
        if (end != std::string_view::npos) {
            std::string set(pattern.substr(at + 1, end - at - 1));
            at = end + 1;
            const bool is_negated = set.starts_with('!') || set.starts_with('^');
            std::string quoted;
            for (const char c : set.substr(is_negated ? 1 : 0)) {
                quoted += c == '-' ? "-" : re2::RE2::QuoteMeta(std::string(1, c));
            }
            return (is_negated ? "[^/" : "[") + quoted + "]";
        }
    }
    return {};
}

Result<std::string> toExpression(const std::string& pattern) {
    std::string expression;
    int n_open = 0;
    size_t at = 0;
    while (at < pattern.size()) {
        const std::string wild = wildCard(pattern, at);
        if (!wild.empty()) {
            expression += wild;
            continue;
        }
        const char c = pattern[at++];
        if (c == '{') {
            expression += "(?:";
            ++n_open;
        } else if (c == '}' && n_open > 0) {
            expression += ")";
            --n_open;
        } else if (c == ',' && n_open > 0) {
            expression += "|";
        } else {
            // A byte of a longer character stays as it is: quoting would tear it.
            expression += static_cast<unsigned char>(c) < 0x80
                              ? re2::RE2::QuoteMeta(std::string(1, c))
                              : std::string(1, c);
        }
    }
    if (n_open > 0) {
        return fail(ErrorCode::InvalidArgument, "pattern {}: a '{{' has no '}}'", pattern);
    }
    return expression;
}

}  // namespace

Result<Glob> Glob::parse(const std::string& pattern) {
    std::string_view wanted = pattern;
    while (wanted.starts_with("./")) {
        wanted.remove_prefix(2);
    }
    const std::string expression = BV_TRY(toExpression(std::string(wanted)));
    re2::RE2::Options options;
    options.set_log_errors(false);
    options.set_dot_nl(true);
    auto compiled = std::make_shared<const re2::RE2>(expression, options);
    if (!compiled->ok()) {
        return fail(ErrorCode::InvalidArgument, "pattern {}: {}", pattern, compiled->error());
    }
    return Glob(std::move(compiled), wanted.find('/') != std::string_view::npos);
}

bool Glob::matches(std::string_view path) const {
    if (!is_whole_path_) {
        path = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
    }
    return re2::RE2::FullMatch(re2::StringPiece(path.data(), path.size()), *expression_);
}

}  // namespace belvedere::tools
