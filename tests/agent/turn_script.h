// SPDX-License-Identifier: Apache-2.0
#pragma once

// Scripted turns: text files in tests/turns that say what the user says, what the model streams and
// which events must come. A line is a word and its rest; strings are JSON.
//
//     # a remark
//     format hermes | qwen-xml | llama-json | minimax-m2 | minimax-m3 | none
//     mode work | ask            (ask: from the files given by `file`)
//     thinking                   the prompt ends inside the reasoning
//     max-rounds 3
//     file "src/a.cpp" 1 "text"  a piece of source from that line on
//     absent "name"              no file has it; a question with it is about nothing else
//     user "text"
//     answer allow | session | deny     of the next permission question, in order
//     cancel text | call | question     when the first event of that kind has come
//     reply [waits]              a reply of the model; its chunks follow, one JSON string a line
//     notice "text"              of that reply, before its chunks
//     end max-tokens | context-full | error "message"    of that reply
//     expect                     the events follow, one a line, to the end of the file
//
// A file may hold several turns of one session: `user` begins each.

#include <filesystem>
#include <string>
#include <vector>

#include "agent/agent.h"
#include "tests/support/fake_language_model.h"

namespace belvedere::testing {

struct ScriptedTurn {
    std::string text;
    std::vector<agent::PermissionAnswer> answers;
    std::string cancel_on;  ///< empty: not cancelled
    std::vector<FakeReply> replies;
};

struct TurnScript {
    agent::ToolCallFormat format = agent::ToolCallFormat::Hermes;
    agent::TurnMode mode = agent::TurnMode::Work;
    bool starts_in_thinking = false;
    size_t max_rounds = 25;

    struct File {
        std::string path;
        size_t first_line = 1;
        std::string text;
    };

    std::vector<File> files;
    std::vector<std::string> absent_names;
    std::vector<ScriptedTurn> turns;
    std::vector<std::string> expected;  ///< as describe() writes events
};

/// Fails the running test where the file is not as above.
[[nodiscard]] TurnScript readTurnScript(const std::filesystem::path& file);

/// Events as lines; pieces of text that follow each other are joined, progress is left out.
[[nodiscard]] std::vector<std::string> describe(const std::vector<agent::Event>& events);

}  // namespace belvedere::testing
