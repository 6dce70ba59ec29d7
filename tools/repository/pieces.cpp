// SPDX-License-Identifier: Apache-2.0
// The piece rule of the default model's training (its README, "Prompt form"): a piece ends after 32
// lines or, where the file goes on, before the last line of its second half that begins a
// definition. Another rule makes worse answers.

#include <algorithm>
#include <array>

#include "tools/repository/repository.h"
#include "tools/repository/source_text.h"

namespace belvedere::tools {
namespace {

constexpr size_t kMaxPieceLines = 32;
constexpr size_t kMinPieceLines =
    17;  ///< a cut before a definition leaves at least this many lines

bool beginsDefinition(std::string_view line) {
    static constexpr std::array<std::string_view, 12> kStarts = {
        "@",       "def ",    "class ",  "async def ", "    def ", "template",
        "struct ", "static ", "inline ", "void ",      "int ",     "#define "};
    return std::any_of(kStarts.begin(), kStarts.end(),
                       [&](auto start) { return line.starts_with(start); });
}

}  // namespace

std::vector<PieceLines> cutIntoPieces(std::string_view text) {
    text = text.substr(0, text.find_last_not_of(" \t\n\r\f\v") + 1);
    const std::vector<std::string_view> lines = splitLines(text);
    std::vector<PieceLines> pieces;
    size_t begin = 0;  // from 0, as the rule is written
    while (begin < lines.size()) {
        size_t end = std::min(begin + kMaxPieceLines, lines.size());
        if (end < lines.size()) {
            for (size_t cut = end; cut >= begin + kMinPieceLines; --cut) {
                if (beginsDefinition(lines[cut])) {
                    end = cut;
                    break;
                }
            }
        }
        pieces.push_back({begin + 1, end});
        begin = end;
    }
    return pieces;
}

}  // namespace belvedere::tools
