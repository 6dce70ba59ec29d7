// SPDX-License-Identifier: Apache-2.0
#pragma once

// May this tool call run? The verdict is the strictest of all that apply (Allow < Ask < Deny),
// except that an explicit allow by the user lowers a tool's own Ask. An error while checking
// denies; unsure means ask. Precedence, highest first:
//   1. built-in denials      2. the user's denials     3. the user's asks
//   4. the user's allows (session, then always)        5. the tool's default   6. the global
//   default: ask
// Pure functions of their arguments; any thread.

#include <string>
#include <vector>

#include "agent/message.h"
#include "kernels/base/result.h"

namespace belvedere::agent {

enum class ToolKind { Read, Write, Execute, Network };
enum class Verdict { Allow, Ask, Deny };

struct PermissionRule {
    Verdict verdict = Verdict::Ask;
    std::string tool;     ///< name, or "*"
    std::string pattern;  ///< glob over the call's subject (path or command); empty: every call
};

struct PermissionPolicy {
    std::vector<PermissionRule>
        rules;  ///< the user's, from the config file and from "always" answers
};

struct PermissionDecision {
    Verdict verdict = Verdict::Ask;
    std::string reason;  ///< which rule decided, for the card and the log
};

/// What is asked: everything the card shows.
struct PermissionQuestion {
    std::string call_id;
    std::string tool;
    ToolKind kind = ToolKind::Execute;
    std::string title;    ///< "Run `make test`"
    std::string subject;  ///< what rules match: a path or a command line
    Json arguments;
    std::string reason;
    std::string preview;  ///< a diff for edits, the command for commands; may be empty
};

enum class PermissionAnswer { AllowOnce, AllowForSession, Deny };

/// `tool_default` is what the tool says for this input; `always_asks` tools (run_command, screen
/// input) can not be lowered below Ask by a rule.
[[nodiscard]] PermissionDecision decidePermission(const PermissionPolicy& policy,
                                                  const std::string& tool,
                                                  const std::string& subject,
                                                  Verdict tool_default,
                                                  bool always_asks);

}  // namespace belvedere::agent
