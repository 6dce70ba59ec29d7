// SPDX-License-Identifier: Apache-2.0
#pragma once

// Files of the workspace, opened so that a link put in place after Workspace::resolve() is not
// followed: a resolved path has no links, so each of its folders is opened in turn without
// following any (path_resolution(7); the same guarantee as openat2 with RESOLVE_NO_SYMLINKS, on
// every kernel and inside every sandbox). Any thread.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "kernels/base/result.h"
#include "tools/unique_fd.h"
#include "tools/workspace.h"

namespace belvedere::tools {

/// Which file, in which state: differs when somebody wrote it.
struct FileIdentity {
    uint64_t device = 0;
    uint64_t inode = 0;
    int64_t n_bytes = 0;
    int64_t modified_ns = 0;

    bool operator==(const FileIdentity&) const = default;
};

struct FileContent {
    std::string bytes;
    FileIdentity identity;
    mode_t mode = 0;
};

/// `path` as resolve() gave it. Errors: NotFound, InvalidArgument (a folder, a device), Io.
[[nodiscard]] Result<UniqueFd> openFolder(const Workspace& workspace,
                                          const std::filesystem::path& path);

/// Errors: as openFolder; Unsupported with both sizes where it has more than max_bytes.
[[nodiscard]] Result<FileContent> readWholeFile(const Workspace& workspace,
                                                const std::filesystem::path& path,
                                                uint64_t max_bytes);

/// Nullopt where there is no such file.
[[nodiscard]] Result<std::optional<FileContent>> readFileIfThere(const Workspace& workspace,
                                                                 const std::filesystem::path& path,
                                                                 uint64_t max_bytes);

/// Puts `bytes` in place in one step: written and flushed beside it, then renamed; readers see the
/// old file or the new one. With `replaced` that very state must still be there and its mode is
/// kept; without, no file may be there. Missing parent folders are made. Errors: InvalidArgument
/// where that does not hold, or the file is read-only; Io.
Result<void> writeWholeFile(const Workspace& workspace,
                            const std::filesystem::path& path,
                            std::string_view bytes,
                            const FileContent* replaced);

}  // namespace belvedere::tools
