// SPDX-License-Identifier: Apache-2.0
#pragma once

// Shows a turn in the terminal: events are queued by post() from any thread and written by the main
// thread in showTurn(), which also asks for permissions. The answer goes to standard output,
// progress and notices to standard error.

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "agent/agent.h"
#include "agent/events.h"
#include "kernels/base/result.h"

namespace belvedere::app {

enum class OutputStyle { Text, Json };

class TerminalSink : public agent::EventSink {
  public:
    explicit TerminalSink(OutputStyle style);

    void post(agent::Event event) override;

    /// Shows the turn until it is finished. A stop request cancels the turn; its end is still
    /// awaited and shown. `label` is added to every JSON line as "id" where it is not empty.
    /// Errors: the turn's own; Cancelled where it was stopped.
    Result<void> showTurn(agent::Agent& agent,
                          agent::TurnId turn,
                          const std::string& label,
                          std::stop_token stop);

    /// A line that is overwritten by the next one; nothing where standard error is no terminal.
    void showProgress(const std::string& text);
    void clearProgress();

  private:
    std::optional<agent::Event> next(std::stop_token stop);
    Result<bool> show(agent::Agent& agent, const agent::Event& event);
    void showText(agent::Agent& agent, const agent::Event& event);
    void askPermission(agent::Agent& agent, const agent::PermissionQuestion& question);
    void showSources();

    OutputStyle style_;
    bool stderr_is_terminal_ = false;
    bool progress_is_shown_ = false;
    bool line_is_open_ = false;  ///< the answer's last character was no newline
    agent::ContextChanged context_;
    agent::CitationsChecked citations_;
    agent::UsageUpdated usage_;

    std::mutex mutex_;
    std::condition_variable_any arrived_;
    std::deque<agent::Event> queue_;
};

}  // namespace belvedere::app
