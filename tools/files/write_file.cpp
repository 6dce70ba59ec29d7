// SPDX-License-Identifier: Apache-2.0
#include "tools/files/write_file.h"

#include "tools/files/diff.h"
#include "tools/files/file_io.h"
#include "tools/files/tool_paths.h"

namespace belvedere::tools {
namespace {

struct WriteFileInput {
    std::string path;
    std::string content;
};

Fields<WriteFileInput> writeFileFields() {
    using In = WriteFileInput;
    return {{&In::path,
             {.name = "path",
              .description = "The file, relative to the workspace. Missing folders are made.",
              .is_required = true,
              .aliases = {"file_path", "filename", "file"}}},
            {&In::content,
             {.name = "content",
              .description = "The whole new content.",
              .is_required = true,
              .aliases = {"contents", "text", "file_text"}}}};
}

class WriteFile : public TypedTool<WriteFileInput> {
  public:
    WriteFile(std::shared_ptr<const Workspace> workspace, std::shared_ptr<ReadLog> log)
        : TypedTool(writeFileFields()), workspace_(std::move(workspace)), log_(std::move(log)) {}

    [[nodiscard]] std::string name() const override { return "write_file"; }

    [[nodiscard]] std::string description() const override {
        return "Writes a whole text file of the workspace, byte for byte as given, in one step. A "
               "file that exists "
               "must have been read with read_file and be unchanged since; prefer edit_file for "
               "it. At most 16 MiB. "
               "Nothing inside .git is written.";
    }

    [[nodiscard]] agent::ToolKind kind() const override { return agent::ToolKind::Write; }

  protected:
    [[nodiscard]] std::string titleOf(const WriteFileInput& input) const override {
        return "Write " + shownPath(input.path);
    }

    [[nodiscard]] std::string subjectOf(const WriteFileInput& input) const override {
        return subjectPath(*workspace_, input.path);
    }

    [[nodiscard]] std::string previewOf(const WriteFileInput& input) const override;

    Result<agent::ToolOutput> runTyped(const WriteFileInput& input,
                                       const agent::ToolContext& context) override;

  private:
    std::shared_ptr<const Workspace> workspace_;  ///< immutable
    std::shared_ptr<ReadLog> log_;
};

std::string diffOf(const std::string& relative,
                   const FileContent* old_content,
                   const std::string& text) {
    if (old_content != nullptr && isBinary(old_content->bytes)) {
        return fmt::format("replaces a binary file of {} bytes\n", old_content->bytes.size());
    }
    return unifiedDiff(relative, old_content == nullptr ? nullptr : &old_content->bytes, &text);
}

/// What the model may not have meant: line ends or a byte order mark that the old file had and the
/// new one has not.
std::string lostForm(const std::string& old_bytes, const std::string& new_bytes) {
    std::string notes;
    if (countLineEnds(old_bytes).n_crlf > 0 && countLineEnds(new_bytes).n_crlf == 0) {
        notes += "[the old file had CRLF line ends, the new one has none]\n";
    }
    if (old_bytes.starts_with(kUtf8Bom) && !new_bytes.starts_with(kUtf8Bom)) {
        notes += "[the old file had a UTF-8 byte order mark, the new one has none]\n";
    }
    return notes;
}

std::string WriteFile::previewOf(const WriteFileInput& input) const {
    const Result<std::filesystem::path> path = resolveForWriting(*workspace_, input.path);
    if (!path.has_value()) {
        return path.error().message;
    }
    const auto old_content = readFileIfThere(*workspace_, *path, kMaxFileBytes);
    if (!old_content.has_value()) {
        return old_content.error().message;
    }
    return diffOf(workspace_->relative(*path), *old_content ? &**old_content : nullptr,
                  input.content);
}

Result<agent::ToolOutput> WriteFile::runTyped(const WriteFileInput& input,
                                              const agent::ToolContext& context) {
    const std::filesystem::path path = BV_TRY(resolveForWriting(*workspace_, input.path));
    if (input.content.size() > kMaxFileBytes) {
        return fail(ErrorCode::InvalidArgument,
                    "write_file: content: {} bytes, more than the limit of {}",
                    input.content.size(), kMaxFileBytes);
    }
    const std::string relative = workspace_->relative(path);
    const std::optional<FileContent> old_content =
        BV_TRY(readFileIfThere(*workspace_, path, kMaxFileBytes));
    if (old_content) {
        BV_TRY(log_->checkSeen(context.session_id, relative, old_content->bytes));
    }
    const FileContent* replaced = old_content ? &*old_content : nullptr;
    BV_TRY(writeWholeFile(*workspace_, path, input.content, replaced));
    log_->noteSeen(context.session_id, relative, input.content);

    const std::string shown = shownPath(relative);
    agent::ToolOutput output;
    output.text =
        fmt::format("{} {}: {} lines, {} bytes\n", replaced == nullptr ? "created" : "replaced",
                    shown, linesWithEnds(input.content).size(), input.content.size());
    if (replaced != nullptr) {
        output.text += lostForm(replaced->bytes, input.content);
    }
    output.data = {{"path", shown},
                   {"diff", diffOf(relative, replaced, input.content)},
                   {"is_new", replaced == nullptr}};
    return output;
}

}  // namespace

std::unique_ptr<agent::Tool> makeWriteFile(std::shared_ptr<const Workspace> workspace,
                                           std::shared_ptr<ReadLog> log) {
    return std::make_unique<WriteFile>(std::move(workspace), std::move(log));
}

}  // namespace belvedere::tools
