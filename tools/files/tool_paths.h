// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the file tools have in common: limits, the path that rules match, paths for people. Any
// thread.

#include <cstdint>
#include <string>

#include "tools/files/text.h"
#include "tools/files/walk.h"
#include "tools/tool_input.h"
#include "tools/workspace.h"

namespace belvedere::tools {

inline constexpr uint64_t kMaxFileBytes = 16 << 20;  ///< files that tools read whole

/// The path as permission rules see it: relative to the workspace, links followed, so that
/// "./a/../key" is "key". Outside the workspace (the call will be refused): as it was written.
[[nodiscard]] inline std::string subjectPath(const Workspace& workspace, const std::string& path) {
    const Result<std::filesystem::path> resolved = workspace.resolve(path);
    return showText(resolved.has_value() ? workspace.relative(*resolved) : path).text;
}

[[nodiscard]] inline std::string shownPath(const std::string& path) {
    return showText(path).text;
}

/// A path that may be written: inside the workspace and not in .git, where a written hook would run
/// as a program.
[[nodiscard]] inline Result<std::filesystem::path> resolveForWriting(const Workspace& workspace,
                                                                     const std::string& path) {
    std::filesystem::path resolved = BV_TRY(workspace.resolve(path));
    if (path.ends_with('/')) {
        return fail(ErrorCode::InvalidArgument, "path {}: names a folder", path);
    }
    if (isInsideGit(workspace.relative(resolved))) {
        return fail(ErrorCode::InvalidArgument, "path {}: is inside .git, which tools do not write",
                    path);
    }
    return resolved;
}

/// Names of keys and passwords are not read without asking.
[[nodiscard]] inline agent::Verdict verdictForReading(const Workspace& workspace,
                                                      const std::string& path) {
    const Result<std::filesystem::path> resolved = workspace.resolve(path);
    const bool is_secret =
        looksLikeSecretFile(path) ||
        (resolved.has_value() && looksLikeSecretFile(workspace.relative(*resolved)));
    return is_secret ? agent::Verdict::Ask : agent::Verdict::Allow;
}

}  // namespace belvedere::tools
