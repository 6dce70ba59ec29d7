// SPDX-License-Identifier: Apache-2.0
#pragma once

// A language model that says what a script says: for the loop and the window. Chunks arrive as they
// are written; a reply may wait at its end until it is stopped or released. Any thread.

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "agent/model/language_model.h"

namespace belvedere::testing {

struct FakeReply {
    std::vector<std::string> chunks;
    agent::ReplyEnd end = agent::ReplyEnd::EndOfTurn;
    std::optional<Error> error;                ///< instead of an end
    bool waits = false;                        ///< after its chunks, until stopped or release()
    std::chrono::milliseconds chunk_pause{0};  ///< before each chunk, cut short by a stop
    std::string notice;                        ///< before the first chunk
};

class FakeLanguageModel : public agent::LanguageModel {
  public:
    explicit FakeLanguageModel(agent::ModelDescription description);

    /// The replies, in order; a request without one left fails the turn.
    void add(FakeReply reply);
    /// Lets the replies that wait go on.
    void release();
    /// What was asked, oldest first.
    [[nodiscard]] std::vector<agent::ModelRequest> requests() const;

    [[nodiscard]] const agent::ModelDescription& description() const override {
        return description_;
    }

    /// One token a byte.
    [[nodiscard]] std::shared_ptr<const agent::TokenCounter> tokenCounter() const override;
    [[nodiscard]] Result<agent::PromptCost> measure(
        const agent::ModelRequest& request) const override;
    Result<agent::ModelReply> generate(const agent::ModelRequest& request,
                                       agent::ModelSink& sink,
                                       std::stop_token stop) override;

  private:
    const agent::ModelDescription description_;
    mutable std::mutex mutex_;
    std::condition_variable_any changed_;
    std::deque<FakeReply> replies_;
    std::vector<agent::ModelRequest> requests_;
    bool is_released_ = false;
};

}  // namespace belvedere::testing
