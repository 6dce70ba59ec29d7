// SPDX-License-Identifier: Apache-2.0
#include "tools/workspace.h"

#include <deque>
#include <system_error>

namespace belvedere::tools {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxLinks = 40;  // as Linux: path_resolution(7)

bool isInside(const fs::path& root, const fs::path& path) {
    auto part = path.begin();
    for (const fs::path& root_part : root) {
        if (part == path.end() || *part != root_part) {
            return false;
        }
        ++part;
    }
    return true;
}

void pushFront(std::deque<fs::path>& parts, const fs::path& path) {
    parts.insert(parts.begin(), path.begin(), path.end());
}

/// Follows every link of an absolute path, as the kernel would; what does not exist is taken as it
/// is written. Unlike weakly_canonical it also follows a link whose target is missing: creating
/// that file would create the target.
Result<fs::path> followLinks(const fs::path& start, const fs::path& path) {
    fs::path current = start;
    std::deque<fs::path> parts(path.begin(), path.end());
    int n_links = 0;
    while (!parts.empty()) {
        const fs::path part = std::move(parts.front());
        parts.pop_front();
        if (part.empty() || part == ".") {
            continue;
        }
        if (part == "..") {
            current = current.parent_path();  // of "/" it is "/"
            continue;
        }
        if (part.is_absolute()) {
            current = part;
            continue;
        }
        const fs::path next = current / part;
        std::error_code error;
        const fs::file_status status = fs::symlink_status(next, error);
        if (status.type() == fs::file_type::none) {
            return fail(ErrorCode::Io, "{}: {}", next.string(), error.message());
        }
        if (status.type() != fs::file_type::symlink) {
            current = next;
            continue;
        }
        if (++n_links > kMaxLinks) {
            return fail(ErrorCode::InvalidArgument, "{}: too many symbolic links", next.string());
        }
        const fs::path target = fs::read_symlink(next, error);
        if (error) {
            return fail(ErrorCode::Io, "{}: {}", next.string(), error.message());
        }
        pushFront(parts, target);
    }
    return current;
}

}  // namespace

Result<std::shared_ptr<const Workspace>> Workspace::open(const fs::path& root) {
    std::error_code error;
    fs::path canonical = fs::canonical(root, error);
    if (error == std::errc::no_such_file_or_directory) {
        return fail(ErrorCode::NotFound, "folder {}: does not exist", root.string());
    }
    if (error) {
        return fail(ErrorCode::InvalidArgument, "folder {}: {}", root.string(), error.message());
    }
    if (!fs::is_directory(canonical, error)) {
        return fail(ErrorCode::InvalidArgument, "{}: is not a folder", root.string());
    }
    return std::shared_ptr<const Workspace>(new Workspace(std::move(canonical)));
}

Result<fs::path> Workspace::resolve(std::string_view path) const {
    if (path.empty()) {
        return fail(ErrorCode::InvalidArgument, "the path is empty");
    }
    if (path.find('\0') != std::string_view::npos) {
        return fail(ErrorCode::InvalidArgument, "path {}: has a NUL byte",
                    path.substr(0, path.find('\0')));
    }
    fs::path resolved = BV_TRY(followLinks(root_, fs::path(path)));
    if (!isInside(root_, resolved)) {
        if (resolved == (root_ / fs::path(path)).lexically_normal() ||
            fs::path(path).is_absolute()) {
            return fail(ErrorCode::InvalidArgument, "path {}: is outside the workspace {}", path,
                        root_.string());
        }
        return fail(ErrorCode::InvalidArgument, "path {}: leads to {}, outside the workspace {}",
                    path, resolved.string(), root_.string());
    }
    return resolved;
}

std::string Workspace::relative(const fs::path& path) const {
    return path.lexically_relative(root_).generic_string();
}

}  // namespace belvedere::tools
