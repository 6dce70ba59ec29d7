// SPDX-License-Identifier: Apache-2.0
#include "tools/files/edit_file.h"

#include "tools/files/diff.h"
#include "tools/files/file_io.h"
#include "tools/files/replacement.h"
#include "tools/files/tool_paths.h"

namespace belvedere::tools {
namespace {

struct EditFileInput {
    std::string path;
    std::string old_text;
    std::string new_text;
    bool replace_all = false;
};

Fields<EditFileInput> editFileFields() {
    using In = EditFileInput;
    return {{&In::path,
             {.name = "path",
              .description = "The file, relative to the workspace.",
              .is_required = true,
              .aliases = {"file_path", "filename", "file"}}},
            {&In::old_text,
             {.name = "old_text",
              .description = "The text to replace, exactly as it stands in the file, without line "
                             "numbers. It must "
                             "occur once: include lines around it.",
              .is_required = true,
              .aliases = {"old_string", "old_str", "search", "old"}}},
            {&In::new_text,
             {.name = "new_text",
              .description = "The text to put in its place; may be empty.",
              .is_required = true,
              .aliases = {"new_string", "new_str", "replace", "replacement", "new"}}},
            {&In::replace_all,
             {.name = "replace_all",
              .description = "Replace every occurrence. Default: false.",
              .aliases = {"all", "global"}}}};
}

/// An edit that would apply.
struct PlannedEdit {
    std::filesystem::path path;
    std::string relative;
    FileContent old_content;
    Replacement replacement;
};

class EditFile : public TypedTool<EditFileInput> {
  public:
    EditFile(std::shared_ptr<const Workspace> workspace, std::shared_ptr<ReadLog> log)
        : TypedTool(editFileFields()), workspace_(std::move(workspace)), log_(std::move(log)) {}

    [[nodiscard]] std::string name() const override { return "edit_file"; }

    [[nodiscard]] std::string description() const override {
        return "Replaces a text in a file of the workspace by another. The file must have been "
               "read with read_file and "
               "be unchanged since; old_text must occur exactly once unless replace_all is set. "
               "Line feeds match the "
               "file's own line ends; every byte outside the replaced text stays. Files above 16 "
               "MiB and binary files "
               "are refused.";
    }

    [[nodiscard]] agent::ToolKind kind() const override { return agent::ToolKind::Write; }

  protected:
    [[nodiscard]] std::string titleOf(const EditFileInput& input) const override {
        return "Edit " + shownPath(input.path);
    }

    [[nodiscard]] std::string subjectOf(const EditFileInput& input) const override {
        return subjectPath(*workspace_, input.path);
    }

    [[nodiscard]] std::string previewOf(const EditFileInput& input) const override {
        const Result<PlannedEdit> edit = plan(input, nullptr);
        return edit.has_value()
                   ? unifiedDiff(edit->relative, &edit->old_content.bytes, &edit->replacement.bytes)
                   : edit.error().message;
    }

    Result<agent::ToolOutput> runTyped(const EditFileInput& input,
                                       const agent::ToolContext& context) override;

  private:
    /// With a session also checks that it has seen the file as it is.
    [[nodiscard]] Result<PlannedEdit> plan(const EditFileInput& input,
                                           const std::string* session_id) const;

    std::shared_ptr<const Workspace> workspace_;  ///< immutable
    std::shared_ptr<ReadLog> log_;
};

Result<PlannedEdit> EditFile::plan(const EditFileInput& input,
                                   const std::string* session_id) const {
    PlannedEdit edit;
    edit.path = BV_TRY(resolveForWriting(*workspace_, input.path));
    edit.relative = workspace_->relative(edit.path);
    edit.old_content = BV_TRY(readWholeFile(*workspace_, edit.path, kMaxFileBytes));
    if (isBinary(edit.old_content.bytes)) {
        return fail(ErrorCode::Unsupported, "{}: is a binary file", shownPath(edit.relative));
    }
    if (session_id != nullptr) {
        BV_TRY(log_->checkSeen(*session_id, edit.relative, edit.old_content.bytes));
    }
    Result<Replacement> replacement =
        replaceText(edit.old_content.bytes, input.old_text, input.new_text,
                    input.replace_all ? ReplaceCount::All : ReplaceCount::One);
    if (!replacement.has_value()) {
        return failWithContext(std::move(replacement).error(), shownPath(edit.relative));
    }
    edit.replacement = std::move(*replacement);
    if (edit.replacement.bytes == edit.old_content.bytes) {
        return fail(ErrorCode::InvalidArgument, "{}: the edit would change nothing",
                    shownPath(edit.relative));
    }
    return edit;
}

Result<agent::ToolOutput> EditFile::runTyped(const EditFileInput& input,
                                             const agent::ToolContext& context) {
    const PlannedEdit edit = BV_TRY(plan(input, &context.session_id));
    BV_TRY(writeWholeFile(*workspace_, edit.path, edit.replacement.bytes, &edit.old_content));
    log_->noteSeen(context.session_id, edit.relative, edit.replacement.bytes);

    const std::string diff =
        unifiedDiff(edit.relative, &edit.old_content.bytes, &edit.replacement.bytes);
    const std::vector<size_t>& lines = edit.replacement.lines;
    agent::ToolOutput output;
    output.text =
        lines.size() == 1
            ? fmt::format("edited {} at line {}\n", shownPath(edit.relative), lines[0])
            : fmt::format("edited {} at {} places\n", shownPath(edit.relative), lines.size());
    output.data = {{"path", shownPath(edit.relative)},
                   {"diff", diff},
                   {"n_replaced", lines.size()},
                   {"lines", lines}};
    return output;
}

}  // namespace

std::unique_ptr<agent::Tool> makeEditFile(std::shared_ptr<const Workspace> workspace,
                                          std::shared_ptr<ReadLog> log) {
    return std::make_unique<EditFile>(std::move(workspace), std::move(log));
}

}  // namespace belvedere::tools
