// SPDX-License-Identifier: Apache-2.0
#include "tests/agent/turn_script.h"

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

namespace belvedere::testing {

namespace {

using agent::Json;

std::string inQuotes(const std::string& text) {
    return Json(text).dump();
}

agent::ToolCallFormat formatOf(const std::string& name) {
    using agent::ToolCallFormat;
    if (name == "qwen-xml") {
        return ToolCallFormat::QwenXml;
    }
    if (name == "llama-json") {
        return ToolCallFormat::LlamaJson;
    }
    if (name == "minimax-m2") {
        return ToolCallFormat::MinimaxM2;
    }
    if (name == "minimax-m3") {
        return ToolCallFormat::MinimaxM3;
    }
    EXPECT_TRUE(name == "hermes" || name == "none") << name;
    return name == "none" ? ToolCallFormat::None : ToolCallFormat::Hermes;
}

agent::PermissionAnswer answerOf(const std::string& name) {
    EXPECT_TRUE(name == "allow" || name == "session" || name == "deny") << name;
    return name == "allow"     ? agent::PermissionAnswer::AllowOnce
           : name == "session" ? agent::PermissionAnswer::AllowForSession
                               : agent::PermissionAnswer::Deny;
}

void readEnd(const std::string& rest, FakeReply& reply) {
    std::istringstream words(rest);
    std::string kind;
    words >> kind;
    if (kind == "error") {
        std::string message;
        std::getline(words, message);
        reply.error = Error{ErrorCode::Io, Json::parse(message).get<std::string>()};
    } else {
        EXPECT_TRUE(kind == "max-tokens" || kind == "context-full") << kind;
        reply.end =
            kind == "max-tokens" ? agent::ReplyEnd::MaxTokens : agent::ReplyEnd::ContextFull;
    }
}

TurnScript::File readFile(const std::string& rest) {
    std::istringstream words(rest);
    TurnScript::File file;
    std::string text;
    std::string path;
    words >> path >> file.first_line;
    std::getline(words, text);
    file.path = Json::parse(path).get<std::string>();
    file.text = Json::parse(text).get<std::string>();
    return file;
}

void readLine(const std::string& word, const std::string& rest, TurnScript& script) {
    if (word == "format") {
        script.format = formatOf(rest);
    } else if (word == "mode") {
        script.mode = rest == "ask" ? agent::TurnMode::Ask : agent::TurnMode::Work;
    } else if (word == "thinking") {
        script.starts_in_thinking = true;
    } else if (word == "max-rounds") {
        script.max_rounds = std::stoul(rest);
    } else if (word == "file") {
        script.files.push_back(readFile(rest));
    } else if (word == "absent") {
        script.absent_names.push_back(Json::parse(rest).get<std::string>());
    } else if (word == "user") {
        script.turns.push_back({Json::parse(rest).get<std::string>(), {}, {}, {}});
    } else if (word == "answer") {
        script.turns.back().answers.push_back(answerOf(rest));
    } else if (word == "cancel") {
        script.turns.back().cancel_on = rest;
    } else if (word == "reply") {
        script.turns.back().replies.emplace_back().waits = rest == "waits";
    } else if (word == "notice") {
        script.turns.back().replies.back().notice = Json::parse(rest).get<std::string>();
    } else if (word == "end") {
        readEnd(rest, script.turns.back().replies.back());
    } else {
        ADD_FAILURE() << "unknown word " << word;
    }
}

/// Appends what an event says to the lines; text joins the line before where that is text too.
class Describer {
  public:
    std::vector<std::string> lines;

    void text(const char* kind, const std::string& added) {
        if (kind_ == kind) {
            text_ += added;
            lines.pop_back();
        } else {
            kind_ = kind;
            text_ = added;
        }
        lines.push_back(std::string(kind) + " " + inQuotes(text_));
    }

    void line(const std::string& added) {
        kind_.clear();
        lines.push_back(added);
    }

    void operator()(const agent::TurnStarted& e) { line("started " + inQuotes(e.user_text)); }

    void operator()(const agent::TextDelta& e) { text("text", e.text); }

    void operator()(const agent::ThinkingDelta& e) { text("thinking", e.text); }

    void operator()(const agent::ToolCallStarted& e) {
        line("call " + e.call.name + " " + e.call.arguments.dump());
    }

    void operator()(const agent::ToolCallOutput& e) { line("output " + inQuotes(e.text)); }

    void operator()(const agent::ToolCallFinished& e) {
        line((e.is_error ? "failed " : "result ") + inQuotes(e.text));
    }

    void operator()(const agent::PermissionRequested& e) {
        line("question " + e.question.tool + " " + inQuotes(e.question.subject));
    }

    void operator()(const agent::PermissionResolved& e) {
        line(e.is_allowed ? "allowed" : "denied");
    }

    void operator()(const agent::PlanChanged& e) {
        std::string steps;
        for (const agent::PlanStep& step : e.plan.steps) {
            steps += " " + inQuotes(step.title) + " " + agent::stepStatusName(step.status);
        }
        line("plan" + steps);
    }

    void operator()(const agent::PrefillProgress&) {}

    void operator()(const agent::IngestionProgress&) {}

    void operator()(const agent::ContextChanged& e) {
        if (!e.pieces.empty()) {
            line("context " + std::to_string(e.pieces.size()) + " pieces" +
                 (e.is_new_context ? " new" : ""));
        }
    }

    void operator()(const agent::CitationsChecked& e) {
        for (const agent::Citation& citation : e.citations) {
            line("citation " + citation.path + ":" + std::to_string(citation.first_line) + "-" +
                 std::to_string(citation.last_line) +
                 (citation.is_in_context ? " in context" : " not in context"));
        }
    }

    void operator()(const agent::Notice& e) { line("notice " + inQuotes(e.text)); }

    void operator()(const agent::UsageUpdated&) {}

    void operator()(const agent::HistoryCompacted&) { line("compacted"); }

    void operator()(const agent::TurnFinished& e) {
        switch (e.end) {
            case agent::TurnEnd::Done:
                return line("finished done");
            case agent::TurnEnd::Cancelled:
                return line("finished cancelled");
            case agent::TurnEnd::Failed:
                return line("finished failed " + inQuotes(e.error.message));
            case agent::TurnEnd::Interrupted:
                return line("finished interrupted");
            case agent::TurnEnd::RoundLimit:
                return line("finished round-limit");
        }
    }

  private:
    std::string kind_;  ///< of the last line, where it is text
    std::string text_;
};

}  // namespace

TurnScript readTurnScript(const std::filesystem::path& file) {
    TurnScript script;
    std::ifstream stream(file);
    EXPECT_TRUE(stream.good()) << file;
    bool is_expecting = false;
    for (std::string line; std::getline(stream, line);) {
        if (line.empty() || line[0] == '#') {
            continue;
        }
        if (line.starts_with("  ")) {
            const std::string content = line.substr(2);
            if (is_expecting) {
                script.expected.push_back(content);
            } else {
                script.turns.back().replies.back().chunks.push_back(
                    Json::parse(content).get<std::string>());
            }
            continue;
        }
        const size_t space = line.find(' ');
        const std::string word = line.substr(0, space);
        is_expecting = word == "expect";
        if (!is_expecting) {
            readLine(word, space == std::string::npos ? "" : line.substr(space + 1), script);
        }
    }
    EXPECT_FALSE(script.turns.empty() || script.expected.empty()) << file << " is not whole";
    return script;
}

std::vector<std::string> describe(const std::vector<agent::Event>& events) {
    Describer describer;
    for (const agent::Event& event : events) {
        std::visit(describer, event.payload);
    }
    return describer.lines;
}

}  // namespace belvedere::testing
