// SPDX-License-Identifier: Apache-2.0
// ask: one question, or a file of questions, from the terminal.
#include <sstream>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "app/headless/cli.h"
#include "app/headless/runtime.h"

namespace belvedere::app {
namespace {

struct Question {
    std::string id;
    std::string text;
};

/// JSON lines: {"id": "q1", "text": "Where is X defined?"}
Result<std::vector<Question>> readQuestions(const std::string& path) {
    const std::string content = BV_TRY(readTextFile(path));
    std::istringstream lines(content);
    std::vector<Question> questions;
    std::string line;
    for (size_t n = 1; std::getline(lines, line); ++n) {
        if (line.empty()) {
            continue;
        }
        const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
        if (!json.is_object() || !json.contains("id") || !json["id"].is_string() ||
            !json.contains("text") || !json["text"].is_string()) {
            return fail(ErrorCode::InvalidArgument,
                        "{} line {}: expected an object with the strings \"id\" and \"text\"", path,
                        n);
        }
        questions.push_back({json["id"], json["text"]});
    }
    return questions;
}

}  // namespace

Result<void> runAsk(const Arguments& arguments, std::stop_token stop) {
    std::vector<Question> questions;
    if (!arguments.questions.empty()) {
        if (!arguments.positional.empty()) {
            return fail(ErrorCode::InvalidArgument, "give either a question or --questions FILE");
        }
        questions = BV_TRY(readQuestions(arguments.questions));
    } else if (!arguments.positional.empty()) {
        questions.push_back({"", fmt::format("{}", fmt::join(arguments.positional, " "))});
    }
    if (questions.empty()) {
        return fail(ErrorCode::InvalidArgument,
                    "the question is missing: belvedere ask --repo PATH \"question\"");
    }
    const std::unique_ptr<Runtime> runtime = BV_TRY(Runtime::create(arguments, stop));
    // Each question stands in a session of its own; those about the same sources share the prefix
    // in the KV cache.
    for (const Question& question : questions) {
        const agent::SessionSummary session = BV_TRY(runtime->openSession());
        BV_TRY(runtime->attachRepository(session, stop));
        BV_TRY(runtime->runTurn(session.id, question.text, question.id, stop));
    }
    return runtime->keepSnapshot(stop);
}

}  // namespace belvedere::app
