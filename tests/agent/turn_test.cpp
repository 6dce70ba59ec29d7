// SPDX-License-Identifier: Apache-2.0
// Every file of tests/turns: the events of the live turns are the expected ones, exactly one
// TurnFinished stands last in each, and the log replays to the same events.

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/agent/turn_script.h"
#include "tests/support/event_recorder.h"
#include "tests/support/fake_context_source.h"
#include "tests/support/fake_tool.h"
#include "tests/support/reference_dir.h"
#include "tests/support/temp_dir.h"

namespace belvedere::testing {
namespace {

std::vector<std::string> turnFiles() {
    std::vector<std::string> names;
    const auto folder = dataPath("..") / "turns";
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        if (entry.path().extension() == ".turn") {
            names.push_back(entry.path().stem().string());
        }
    }
    std::sort(names.begin(), names.end());
    return names;
}

/// Runs the turns of a script in one session.
class ScriptRun {
  public:
    explicit ScriptRun(const TurnScript& script) : script_(script) {
        agent::ModelDescription description;
        description.name = "fake";
        description.window_tokens = 100'000;
        description.tool_calls = script.format;
        description.has_native_tools = true;
        description.starts_in_thinking = script.starts_in_thinking;
        model_ = std::make_shared<FakeLanguageModel>(description);
        store_ = *agent::SessionStore::open(dir_.path() / "sessions.db");
        agent::AgentConfig config;
        config.max_rounds = script.max_rounds;
        agent_ = agent::Agent::create(config, *store_, recorder_);
        agent_->setModel(model_);
        session_ = store_->createSession("", "fake")->id;
        std::shared_ptr<FakeContextSource> source;
        for (const TurnScript::File& file : script.files) {
            source = source == nullptr ? std::make_shared<FakeContextSource>() : source;
            const auto n_lines =
                static_cast<size_t>(std::count(file.text.begin(), file.text.end(), '\n') + 1);
            source->add(file.path, file.first_line, file.first_line + n_lines - 1, file.text);
        }
        for (const std::string& name : script.absent_names) {
            source->addAbsent(name);
        }
        agent_->attach(session_, source, fakeTools());
    }

    void run() {
        for (const ScriptedTurn& turn : script_.turns) {
            for (const FakeReply& reply : turn.replies) {
                model_->add(reply);
            }
            const size_t n_questions = recorder_.all<agent::PermissionRequested>().size();
            const auto id = agent_->startTurn({session_, turn.text, script_.mode});
            ASSERT_TRUE(id.has_value()) << id.error().message;
            answer(turn, n_questions);
            cancel(turn, *id);
            agent_->waitForTurn(*id);
        }
    }

    [[nodiscard]] std::vector<agent::Event> events() const { return recorder_.events(); }

    [[nodiscard]] std::vector<agent::Event> replayed() {
        return agent::replay(*store_->loadSession(session_));
    }

  private:
    void answer(const ScriptedTurn& turn, size_t n_before) {
        for (size_t i = 0; i < turn.answers.size(); ++i) {
            ASSERT_TRUE(recorder_.waitFor<agent::PermissionRequested>(n_before + i + 1));
            const auto question =
                recorder_.all<agent::PermissionRequested>()[n_before + i].question;
            ASSERT_TRUE(agent_->answerPermission(question.call_id, turn.answers[i]));
            EXPECT_FALSE(agent_->answerPermission(question.call_id, turn.answers[i]))
                << "a question is answered once";
        }
    }

    void cancel(const ScriptedTurn& turn, agent::TurnId id) {
        if (turn.cancel_on.empty()) {
            return;
        }
        if (turn.cancel_on == "text") {
            ASSERT_TRUE(recorder_.waitFor<agent::TextDelta>());
        } else if (turn.cancel_on == "call") {
            ASSERT_TRUE(recorder_.waitFor<agent::ToolCallStarted>());
        } else {
            ASSERT_TRUE(recorder_.waitFor<agent::PermissionRequested>());
        }
        agent_->cancel(id);
    }

    const TurnScript& script_;
    TempDir dir_;
    EventRecorder recorder_;
    std::shared_ptr<FakeLanguageModel> model_;
    std::unique_ptr<agent::SessionStore> store_;
    std::unique_ptr<agent::Agent> agent_;  // before the store and the recorder
    std::string session_;
};

/// Without live output and questions, which the log does not keep.
std::vector<std::string> durable(std::vector<std::string> lines) {
    std::erase_if(lines, [](const std::string& line) {
        return line.starts_with("output ") || line.starts_with("question ") || line == "allowed" ||
               line == "denied";
    });
    return lines;
}

class TurnTest : public ::testing::TestWithParam<std::string> {};

TEST_P(TurnTest, PostsTheExpectedEvents) {
    const TurnScript script = readTurnScript(dataPath("..") / "turns" / (GetParam() + ".turn"));
    ScriptRun run(script);
    run.run();
    EXPECT_EQ(describe(run.events()), script.expected);
    EXPECT_EQ(durable(describe(run.replayed())), durable(script.expected));
    size_t n_finished = 0;
    for (const agent::Event& event : run.events()) {
        n_finished += std::holds_alternative<agent::TurnFinished>(event.payload) ? 1U : 0U;
    }
    EXPECT_EQ(n_finished, script.turns.size());
}

INSTANTIATE_TEST_SUITE_P(,
                         TurnTest,
                         ::testing::ValuesIn(turnFiles()),
                         [](const ::testing::TestParamInfo<std::string>& file) {
                             return file.param;
                         });

}  // namespace
}  // namespace belvedere::testing
