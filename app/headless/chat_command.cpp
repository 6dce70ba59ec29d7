// SPDX-License-Identifier: Apache-2.0
// chat: a conversation in the terminal. Without a terminal it reads questions from standard input
// to its end.
#include <iostream>

#include <unistd.h>

#include "app/headless/cli.h"
#include "app/headless/runtime.h"

namespace belvedere::app {

Result<void> runChat(const Arguments& arguments, std::stop_token stop) {
    const std::unique_ptr<Runtime> runtime = BV_TRY(Runtime::create(arguments, stop));
    const agent::SessionSummary session = BV_TRY(runtime->openSession());
    BV_TRY(runtime->attachRepository(session, stop));

    const bool is_terminal = isatty(STDIN_FILENO) == 1;
    fmt::print(stderr, "{}, window {} tokens\n", runtime->model().name,
               runtime->model().context_tokens);
    for (const std::string& notice : runtime->model().notices) {
        fmt::print(stderr, "note: {}\n", notice);
    }
    if (is_terminal) {
        fmt::print(stderr, "Ctrl-D ends the chat. Go on later with: belvedere chat --session {}\n",
                   session.id);
    }
    std::string line;
    while (!stop.stop_requested()) {
        if (is_terminal) {
            fmt::print(stderr, "\n> ");
            std::fflush(stderr);
        }
        if (!std::getline(std::cin, line)) {
            break;
        }
        if (line.find_first_not_of(" \t\r") == std::string::npos) {
            continue;
        }
        const Result<void> turn = runtime->runTurn(session.id, line, "", stop);
        if (!turn && (!is_terminal || turn.error().code == ErrorCode::Cancelled)) {
            return turn;
        }
        if (!turn) {  // the conversation goes on: the person may ask something else
            fmt::print(stderr, "belvedere: {}\n", turn.error().message);
        }
    }
    return runtime->keepSnapshot(stop);
}

}  // namespace belvedere::app
