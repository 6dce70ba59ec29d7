// SPDX-License-Identifier: Apache-2.0
#include "tools/files/read_file.h"

#include <algorithm>

#include "tools/files/file_io.h"
#include "tools/files/tool_paths.h"

namespace belvedere::tools {
namespace {

constexpr int64_t kMaxLines = 2000;
constexpr size_t kMaxShownBytes = 64 * 1024;
constexpr size_t kMaxLineBytes = 2000;

struct ReadFileInput {
    std::string path;
    int64_t offset = 1;
    int64_t limit = kMaxLines;
};

Fields<ReadFileInput> readFileFields() {
    using In = ReadFileInput;
    return {{&In::path,
             {.name = "path",
              .description = "The file, relative to the workspace.",
              .is_required = true,
              .aliases = {"file_path", "filename", "file"}}},
            {&In::offset,
             {.name = "offset",
              .description = "First line to show, counted from 1. Default: 1.",
              .aliases = {"start_line", "first_line", "start"},
              .min = 1}},
            {&In::limit,
             {.name = "limit",
              .description = "Most lines to show. Default and maximum: 2000.",
              .aliases = {"n_lines", "max_lines"},
              .min = 1,
              .max = kMaxLines}}};
}

class ReadFile : public TypedTool<ReadFileInput> {
  public:
    ReadFile(std::shared_ptr<const Workspace> workspace, std::shared_ptr<ReadLog> log)
        : TypedTool(readFileFields()), workspace_(std::move(workspace)), log_(std::move(log)) {}

    [[nodiscard]] std::string name() const override { return "read_file"; }

    [[nodiscard]] std::string description() const override {
        return "Reads a text file of the workspace. Each line is shown as its number, a tab and "
               "its text. At most 2000 "
               "lines and 64 KiB a call (use offset and limit for the rest); lines are cut at 2000 "
               "bytes; files above "
               "16 MiB and binary files are refused. Needed before edit_file, and before "
               "write_file on a file that "
               "exists.";
    }

    [[nodiscard]] agent::ToolKind kind() const override { return agent::ToolKind::Read; }

  protected:
    [[nodiscard]] std::string titleOf(const ReadFileInput& input) const override {
        return "Read " + shownPath(input.path);
    }

    [[nodiscard]] std::string subjectOf(const ReadFileInput& input) const override {
        return subjectPath(*workspace_, input.path);
    }

    [[nodiscard]] agent::Verdict verdictOf(const ReadFileInput& input) const override {
        return verdictForReading(*workspace_, input.path);
    }

    Result<agent::ToolOutput> runTyped(const ReadFileInput& input,
                                       const agent::ToolContext& context) override;

  private:
    std::shared_ptr<const Workspace> workspace_;  ///< immutable
    std::shared_ptr<ReadLog> log_;
};

/// The numbered lines, as many as the limits allow.
struct ShownLines {
    std::string text;
    size_t n_lines = 0;
    size_t n_cut_lines = 0;
    size_t n_escapes = 0;  ///< bytes that stand as \xNN
};

ShownLines showLines(const std::vector<std::string_view>& lines, size_t first, size_t n_wanted) {
    ShownLines shown;
    const size_t end = std::min(lines.size(), first + n_wanted);
    for (size_t i = first; i < end; ++i) {
        const ShownText line = showText(withoutLineEnd(lines[i]));
        const std::string_view cut = cutText(line.text, kMaxLineBytes);
        const bool is_cut = cut.size() < line.text.size();
        const std::string row = fmt::format("{}\t{}{}\n", i + 1, cut, is_cut ? " [line cut]" : "");
        if (shown.n_lines > 0 && shown.text.size() + row.size() > kMaxShownBytes) {
            break;
        }
        shown.text += row;
        shown.n_cut_lines += is_cut ? 1 : 0;
        shown.n_escapes += line.n_invalid_bytes + line.n_controls;
        ++shown.n_lines;
    }
    return shown;
}

/// What the numbered lines can not show.
std::string notesOn(const std::string& bytes, const ShownLines& shown) {
    std::string notes;
    const LineEnds ends = countLineEnds(bytes);
    if (ends.n_crlf > 0) {
        notes += ends.n_lf == 0 ? "[lines end with CRLF]\n"
                                : fmt::format("[mixed line ends: {} with CRLF, {} with LF]\n",
                                              ends.n_crlf, ends.n_lf);
    }
    if (bytes.starts_with(kUtf8Bom)) {
        notes += "[starts with a UTF-8 byte order mark]\n";
    }
    if (shown.n_escapes > 0) {
        notes += fmt::format(
            "[{} bytes are no printable UTF-8 and shown as \\xNN; old_text of an edit can not "
            "contain them]\n",
            shown.n_escapes);
    }
    if (shown.n_cut_lines > 0) {
        notes += fmt::format("[{} lines were cut at {} bytes]\n", shown.n_cut_lines, kMaxLineBytes);
    }
    if (!bytes.empty() && !bytes.ends_with('\n')) {
        notes += "[no line end at the end of the file]\n";
    }
    return notes;
}

Result<agent::ToolOutput> ReadFile::runTyped(const ReadFileInput& input,
                                             const agent::ToolContext& context) {
    const std::filesystem::path path = BV_TRY(workspace_->resolve(input.path));
    const FileContent content = BV_TRY(readWholeFile(*workspace_, path, kMaxFileBytes));
    const std::string relative = workspace_->relative(path);
    if (isBinary(content.bytes)) {
        return fail(ErrorCode::Unsupported,
                    "{}: is a binary file (it has NUL bytes; {} bytes in all)", shownPath(relative),
                    content.bytes.size());
    }
    std::string_view text = content.bytes;
    if (text.starts_with(kUtf8Bom)) {
        text.remove_prefix(kUtf8Bom.size());
    }
    const std::vector<std::string_view> lines = linesWithEnds(text);
    const size_t first = static_cast<size_t>(input.offset) - 1;
    if (first > 0 && first >= lines.size()) {
        return fail(ErrorCode::InvalidArgument, "{}: offset {} is behind its {} lines",
                    shownPath(relative), input.offset, lines.size());
    }
    const ShownLines shown = showLines(lines, first, static_cast<size_t>(input.limit));
    log_->noteSeen(context.session_id, relative, content.bytes);

    agent::ToolOutput output;
    output.text = lines.empty() ? "[the file is empty]\n" : shown.text;
    const size_t last = first + shown.n_lines;
    if (last < lines.size()) {
        output.text += fmt::format("[lines {} to {} of {}; go on with offset {}]\n", first + 1,
                                   last, lines.size(), last + 1);
    }
    output.text += notesOn(content.bytes, shown);
    output.data = {{"path", shownPath(relative)},
                   {"first_line", first + 1},
                   {"last_line", last},
                   {"n_lines", lines.size()}};
    return output;
}

}  // namespace

std::unique_ptr<agent::Tool> makeReadFile(std::shared_ptr<const Workspace> workspace,
                                          std::shared_ptr<ReadLog> log) {
    return std::make_unique<ReadFile>(std::move(workspace), std::move(log));
}

}  // namespace belvedere::tools
