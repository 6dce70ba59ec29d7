// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a repository offers the agent: pieces of source for a question, within a budget of tokens.
// Implemented in tools/repository; the agent lays the pieces out in the prompt and checks citations
// against them. Any thread.

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "agent/message.h"
#include "kernels/base/result.h"

namespace belvedere::agent {

struct ContextChoice {
    std::vector<std::shared_ptr<const SourcePiece>>
        pieces;  ///< in the order of the prompt: stable, by path and line
    /// The pieces that answer this question best, best first, at most a handful; all of them are in
    /// `pieces`. Where they already stand in the conversation's context, it can go on there.
    std::vector<std::shared_ptr<const SourcePiece>> best;
    bool is_whole_repository = false;
    size_t n_files = 0;  ///< files with a piece in `pieces`
    size_t n_files_total = 0;
    size_t n_tokens = 0;
    size_t n_tokens_total = 0;
    /// Names of code in the question that stand in no file of the repository, as they are spelled
    /// there.
    std::vector<std::string> absent_names;
    bool asks_only_absent = false;  ///< the question names code, and all of that is absent
};

class ContextSource {
  public:
    virtual ~ContextSource() = default;

    [[nodiscard]] virtual std::string name() const = 0;  ///< for people: the folder's name
    [[nodiscard]] virtual std::string root() const = 0;  ///< absolute path

    /// The whole repository where it fits budget_tokens, else the pieces that rank best for the
    /// question. Errors: Cancelled; Io, Corrupt from the index; NotFound where the folder has
    /// vanished.
    [[nodiscard]] virtual Result<ContextChoice> choose(std::string_view question,
                                                       size_t budget_tokens,
                                                       std::stop_token stop) const = 0;
};

}  // namespace belvedere::agent
