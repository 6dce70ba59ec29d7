// SPDX-License-Identifier: Apache-2.0
#pragma once

// A repository of given pieces: all of them are the context of every question. Any thread.

#include <memory>
#include <string>
#include <vector>

#include "agent/context_source.h"

namespace belvedere::testing {

class FakeContextSource : public agent::ContextSource {
  public:
    void add(const std::string& path,
             size_t first_line,
             size_t last_line,
             const std::string& text) {
        auto piece = std::make_shared<agent::SourcePiece>();
        piece->path = path;
        piece->first_line = first_line;
        piece->last_line = last_line;
        piece->text = "\n### " + path + ":" + std::to_string(first_line) + "-" +
                      std::to_string(last_line) + "\n" + text;
        pieces_.push_back(std::move(piece));
    }

    /// A name that no file has: questions with it ask for nothing else.
    void addAbsent(const std::string& name) { absent_names_.push_back(name); }

    [[nodiscard]] std::string name() const override { return "fake"; }

    [[nodiscard]] std::string root() const override { return "/fake"; }

    [[nodiscard]] Result<agent::ContextChoice> choose(std::string_view question,
                                                      size_t /*budget_tokens*/,
                                                      std::stop_token /*stop*/) const override {
        agent::ContextChoice choice;
        choice.pieces = pieces_;
        choice.best = pieces_;
        choice.is_whole_repository = true;
        choice.n_files = choice.n_files_total = pieces_.size();
        for (const auto& piece : pieces_) {
            choice.n_tokens += piece->text.size();
        }
        choice.n_tokens_total = choice.n_tokens;
        for (const std::string& name : absent_names_) {
            if (question.find(name) != std::string_view::npos) {
                choice.absent_names.push_back(name);
            }
        }
        choice.asks_only_absent = !choice.absent_names.empty();
        return choice;
    }

  private:
    std::vector<std::shared_ptr<const agent::SourcePiece>> pieces_;
    std::vector<std::string> absent_names_;
};

}  // namespace belvedere::testing
