// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tool calls that are written as JSON objects, as models write them. Any thread.

#include <string_view>
#include <vector>

#include "agent/message.h"
#include "agent/model/language_model.h"
#include "kernels/base/result.h"

namespace belvedere::agent {

/// {"name": ..., "arguments": {...}}; also "parameters" for "arguments", arguments as a string of
/// JSON, the call inside "function", a "functions." prefix. Errors: InvalidArgument saying what is
/// wrong.
[[nodiscard]] Result<ToolCall> callFromJson(const Json& json, const std::vector<ToolSpec>& tools);

/// The calls of a whole text: one object, several one after another, or an array of them; a code
/// fence around is dropped. At least one. Errors: InvalidArgument.
[[nodiscard]] Result<std::vector<ToolCall>> callsFromText(std::string_view text,
                                                          const std::vector<ToolSpec>& tools);

/// Finds the end of JSON in streamed text without reading it: knows only strings and brackets.
class JsonScanner {
  public:
    /// Looks at the character at `pos` of `text` and moves behind it. False: more text is needed to
    /// decide.
    bool advance(std::string_view text, size_t& pos, bool is_last);

    [[nodiscard]] bool inString() const { return quote_ != 0; }

    [[nodiscard]] size_t depth() const { return depth_; }

    /// A bracket was opened, and all are closed again.
    [[nodiscard]] bool isComplete() const { return has_begun_ && depth_ == 0 && quote_ == 0; }

  private:
    size_t depth_ = 0;
    char quote_ = 0;  ///< first byte of the quote that began the string; 0: outside
    bool has_begun_ = false;
};

}  // namespace belvedere::agent
