// SPDX-License-Identifier: Apache-2.0
// The table of permission.h: precedence, patterns, and what happens when a check fails.

#include "agent/permission.h"

#include <gtest/gtest.h>

namespace belvedere::testing {
namespace {

using agent::PermissionPolicy;
using agent::PermissionRule;
using agent::Verdict;

Verdict decide(const std::vector<PermissionRule>& rules,
               const std::string& tool,
               const std::string& subject,
               Verdict tool_default,
               bool always_asks = false) {
    PermissionPolicy policy;
    policy.rules = rules;
    return agent::decidePermission(policy, tool, subject, tool_default, always_asks).verdict;
}

TEST(Permission, WithoutRulesTheToolDecides) {
    EXPECT_EQ(decide({}, "read_file", "a", Verdict::Allow), Verdict::Allow);
    EXPECT_EQ(decide({}, "write_file", "a", Verdict::Ask), Verdict::Ask);
    EXPECT_EQ(decide({}, "odd", "a", Verdict::Deny), Verdict::Deny);
}

TEST(Permission, AnAllowLowersAnAsk) {
    EXPECT_EQ(
        decide({{Verdict::Allow, "write_file", "src/*"}}, "write_file", "src/a.cpp", Verdict::Ask),
        Verdict::Allow);
    EXPECT_EQ(
        decide({{Verdict::Allow, "write_file", "src/*"}}, "write_file", "doc/a.md", Verdict::Ask),
        Verdict::Ask);
}

TEST(Permission, TheStrictestOfTheUsersRulesWinsInAnyOrder) {
    const PermissionRule allow{Verdict::Allow, "*", ""};
    const PermissionRule ask{Verdict::Ask, "write_file", "*.cpp"};
    const PermissionRule deny{Verdict::Deny, "write_file", "secret*"};
    for (const auto& rules : {std::vector{allow, ask, deny}, std::vector{deny, ask, allow},
                              std::vector{ask, deny, allow}}) {
        EXPECT_EQ(decide(rules, "write_file", "secret.cpp", Verdict::Allow), Verdict::Deny);
        EXPECT_EQ(decide(rules, "write_file", "a.cpp", Verdict::Allow), Verdict::Ask);
        EXPECT_EQ(decide(rules, "write_file", "a.txt", Verdict::Ask), Verdict::Allow);
    }
}

TEST(Permission, AToolThatAlwaysAsksIsNeverAllowedByARule) {
    EXPECT_EQ(decide({{Verdict::Allow, "*", ""}}, "run_command", "ls", Verdict::Ask, true),
              Verdict::Ask);
    EXPECT_EQ(
        decide({{Verdict::Allow, "run_command", "ls"}}, "run_command", "ls", Verdict::Allow, true),
        Verdict::Ask);
    EXPECT_EQ(decide({{Verdict::Deny, "run_command", "rm*"}}, "run_command", "rm -rf /",
                     Verdict::Ask, true),
              Verdict::Deny);
}

TEST(Permission, AStarReachesOverFolders) {
    EXPECT_EQ(decide({{Verdict::Deny, "*", "*.pem"}}, "read_file", "a/b/c.pem", Verdict::Allow),
              Verdict::Deny);
}

TEST(Permission, ABrokenRuleDenies) {
    for (const std::string& pattern :
         {std::string("a\\"), std::string("a\0b", 3), std::string(5000, '*')}) {
        EXPECT_EQ(decide({{Verdict::Allow, "*", pattern}}, "read_file", "a", Verdict::Allow),
                  Verdict::Deny);
    }
}

TEST(Permission, AHostilePatternIsDecidedQuickly) {
    std::string pattern;
    for (int i = 0; i < 2000; ++i) {
        pattern += "*a";
    }
    EXPECT_EQ(decide({{Verdict::Allow, "*", pattern}}, "write_file", std::string(4000, 'b'),
                     Verdict::Ask),
              Verdict::Ask);
}

TEST(Permission, SaysWhichRuleDecided) {
    PermissionPolicy policy;
    policy.rules = {{Verdict::Deny, "write_file", "secret*"}};
    const auto decision =
        agent::decidePermission(policy, "write_file", "secret.txt", Verdict::Ask, false);
    EXPECT_NE(decision.reason.find("secret*"), std::string::npos) << decision.reason;
}

}  // namespace
}  // namespace belvedere::testing
