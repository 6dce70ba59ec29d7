// SPDX-License-Identifier: Apache-2.0
#include "agent/permission.h"

#include <optional>
#include <string_view>

#include <fmt/format.h>

namespace belvedere::agent {

namespace {

constexpr size_t kMaxPatternBytes = 4096;

Result<void> checkPattern(std::string_view pattern) {
    if (pattern.size() > kMaxPatternBytes) {
        return fail(ErrorCode::InvalidArgument, "a pattern is longer than {} bytes",
                    kMaxPatternBytes);
    }
    if (pattern.find('\0') != std::string_view::npos) {
        return fail(ErrorCode::InvalidArgument, "a pattern holds a zero byte");
    }
    const size_t last = pattern.find_last_not_of('\\');
    const size_t n_backslashes = pattern.size() - (last == std::string_view::npos ? 0 : last + 1);
    if (n_backslashes % 2 != 0) {
        return fail(ErrorCode::InvalidArgument, "the pattern \"{}\" ends in a backslash", pattern);
    }
    return {};
}

/// Requires: checkPattern(pattern).
/// `*` any run of characters, `?` one character, `\` takes the next one literally. `*` also matches
/// '/': a subject is as often a command line as a path, and a denial must not be escaped by a
/// deeper folder. Greedy with one point of return: O(n * m).
bool globMatches(std::string_view pattern, std::string_view text) {
    size_t p = 0;
    size_t t = 0;
    size_t star = std::string_view::npos;
    size_t star_text = 0;
    while (t < text.size()) {
        const size_t literal = p < pattern.size() && pattern[p] == '\\' ? p + 1 : p;
        if (p < pattern.size() && literal == p && pattern[p] == '*') {
            star = p++;
            star_text = t;
        } else if (p < pattern.size() &&
                   ((literal == p && pattern[p] == '?') || pattern[literal] == text[t])) {
            p = literal + 1;
            ++t;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            t = ++star_text;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*') {
        ++p;
    }
    return p == pattern.size();
}

Result<bool> ruleMatches(const PermissionRule& rule,
                         const std::string& tool,
                         const std::string& subject) {
    if (rule.tool.empty()) {
        return fail(ErrorCode::InvalidArgument, "rule without a tool");
    }
    BV_TRY(checkPattern(rule.tool));
    BV_TRY(checkPattern(rule.pattern));
    return globMatches(rule.tool, tool) &&
           (rule.pattern.empty() || globMatches(rule.pattern, subject));
}

std::string describe(const PermissionRule& rule) {
    const char* verdict = rule.verdict == Verdict::Deny  ? "denied"
                          : rule.verdict == Verdict::Ask ? "to be asked"
                                                         : "allowed";
    return rule.pattern.empty()
               ? fmt::format("{} by your rule for {}", verdict, rule.tool)
               : fmt::format("{} by your rule for {}: {}", verdict, rule.tool, rule.pattern);
}

/// 1. What no rule can allow. Kept short on purpose: the workspace rule and the sandbox are the
/// tools' own work.
std::optional<std::string> builtInDenial(const std::string& tool, const std::string& subject) {
    if (tool.empty()) {
        return "denied: the call names no tool";
    }
    if (subject.find('\0') != std::string::npos) {
        return "denied: a path or command with a zero byte in it";
    }
    return std::nullopt;
}

}  // namespace

PermissionDecision decidePermission(const PermissionPolicy& policy,
                                    const std::string& tool,
                                    const std::string& subject,
                                    Verdict tool_default,
                                    bool always_asks) {
    if (const std::optional<std::string> reason = builtInDenial(tool, subject)) {
        return {Verdict::Deny, *reason};
    }
    // The strictest of the user's matching rules: 2. denials, 3. asks, 4. allows.
    const PermissionRule* strictest = nullptr;
    for (const PermissionRule& rule : policy.rules) {
        const Result<bool> matches = ruleMatches(rule, tool, subject);
        if (!matches.has_value()) {
            return {Verdict::Deny, "denied: a rule cannot be checked: " + matches.error().message};
        }
        if (*matches && (strictest == nullptr || strictest->verdict < rule.verdict)) {
            strictest = &rule;
        }
    }
    if (strictest != nullptr && strictest->verdict != Verdict::Allow) {
        return {strictest->verdict, describe(*strictest)};
    }
    // 5. A tool may deny by itself; no allow lowers that.
    if (tool_default == Verdict::Deny) {
        return {Verdict::Deny, "denied by the tool"};
    }
    if (always_asks) {
        return {Verdict::Ask, fmt::format("{} always asks", tool)};
    }
    if (strictest != nullptr) {
        return {Verdict::Allow, describe(*strictest)};
    }
    if (tool_default == Verdict::Allow) {
        return {Verdict::Allow, fmt::format("{} only reads", tool)};
    }
    return {Verdict::Ask, "no rule allows it"};
}

}  // namespace belvedere::agent
