// SPDX-License-Identifier: Apache-2.0
// The door of agent/: what it refuses, turns of several sessions at once, races between an answer,
// a cancel and the end, and the same loop over our own engine with a generated model.

#include "agent/agent.h"

#include <thread>

#include <gtest/gtest.h>

#include "agent/model/engine_model.h"
#include "inference/engine.h"
#include "tests/support/event_recorder.h"
#include "tests/support/fake_context_source.h"
#include "tests/support/fake_language_model.h"
#include "tests/support/fake_tool.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace belvedere::testing {
namespace {

using agent::TurnMode;

class AgentTest : public ::testing::Test {
  protected:
    void SetUp() override {
        agent::ModelDescription description;
        description.window_tokens = 4000;
        description.has_native_tools = true;
        model_ = std::make_shared<FakeLanguageModel>(description);
        store_ = *agent::SessionStore::open(dir_.path() / "sessions.db");
        agent_ = agent::Agent::create({}, *store_, recorder_);
        agent_->setModel(model_);
    }

    std::string newSession() {
        const std::string id = store_->createSession("", "m")->id;
        agent_->attach(id, nullptr, fakeTools());
        return id;
    }

    TempDir dir_;
    EventRecorder recorder_;
    std::shared_ptr<FakeLanguageModel> model_;
    std::unique_ptr<agent::SessionStore> store_;
    std::unique_ptr<agent::Agent> agent_;
};

TEST_F(AgentTest, RefusesEmptyTextNoModelAndASecondTurnOfASession) {
    const std::string id = newSession();
    EXPECT_EQ(agent_->startTurn({id, " \n", TurnMode::Ask}).error().code,
              ErrorCode::InvalidArgument);
    agent_->setModel(nullptr);
    EXPECT_EQ(agent_->startTurn({id, "x", TurnMode::Ask}).error().code, ErrorCode::InvalidArgument);
    agent_->setModel(model_);
    FakeReply reply;
    reply.chunks = {"a"};
    reply.waits = true;
    model_->add(reply);
    const auto turn = agent_->startTurn({id, "x", TurnMode::Ask});
    ASSERT_TRUE(turn.has_value());
    EXPECT_TRUE(agent_->isRunning(id));
    EXPECT_EQ(agent_->startTurn({id, "y", TurnMode::Ask}).error().code, ErrorCode::InvalidArgument);
    model_->release();
    agent_->waitForTurn(*turn);
    EXPECT_FALSE(agent_->isRunning(id));
}

TEST_F(AgentTest, TheUsersMessageIsOnDiskBeforeTheModelIsAsked) {
    const std::string id = newSession();
    FakeReply reply;
    reply.waits = true;
    model_->add(reply);
    const auto turn = agent_->startTurn({id, "remember me", TurnMode::Ask});
    const auto session = *store_->loadSession(id);
    ASSERT_FALSE(session.events.empty());
    EXPECT_EQ(session.events[0].payload.at("text"), "remember me");
    agent_->cancel(*turn);
    agent_->waitForTurn(*turn);
}

TEST_F(AgentTest, AConversationTooLongForTheWindowIsRefusedWithTheNumbers) {
    const std::string id = newSession();
    const auto turn = agent_->startTurn({id, std::string(5000, 'x'), TurnMode::Work});
    agent_->waitForTurn(*turn);
    const auto ends = recorder_.all<agent::TurnFinished>();
    ASSERT_EQ(ends.size(), 1U);
    EXPECT_EQ(ends[0].end, agent::TurnEnd::Failed);
    EXPECT_NE(ends[0].error.message.find("4000"), std::string::npos) << ends[0].error.message;
}

TEST_F(AgentTest, SessionsRunAtOnce) {
    constexpr int kSessions = 4;
    FakeReply reply;
    reply.chunks = {"text"};
    reply.waits = true;
    std::vector<agent::TurnId> turns;
    for (int i = 0; i < kSessions; ++i) {
        model_->add(reply);
        turns.push_back(*agent_->startTurn({newSession(), "x", TurnMode::Work}));
    }
    ASSERT_TRUE(recorder_.waitFor<agent::TextDelta>(kSessions)) << "all stream before one ends";
    model_->release();
    for (const agent::TurnId turn : turns) {
        agent_->waitForTurn(turn);
    }
    EXPECT_EQ(recorder_.all<agent::TurnFinished>().size(), static_cast<size_t>(kSessions));
}

TEST_F(AgentTest, AnAnswerAgainstACancelEndsTheTurnOnce) {
    for (int i = 0; i < 30; ++i) {
        // A script of its own: which of its replies are asked for is decided by the race.
        const auto model = std::make_shared<FakeLanguageModel>(model_->description());
        agent_->setModel(model);
        const std::string id = newSession();
        FakeReply call;
        call.chunks = {
            "<tool_call>{\"name\": \"run_command\", \"arguments\": {\"text\": "
            "\"ls\"}}</tool_call>"};
        model->add(call);
        FakeReply answer;
        answer.chunks = {"ok"};
        model->add(answer);
        const auto turn = *agent_->startTurn({id, "x", TurnMode::Work});
        ASSERT_TRUE(recorder_.waitFor<agent::PermissionRequested>(static_cast<size_t>(i) + 1));
        const std::string call_id =
            recorder_.all<agent::PermissionRequested>().back().question.call_id;
        {
            const std::jthread other([&] { agent_->cancel(turn); });
            agent_->answerPermission(call_id, agent::PermissionAnswer::AllowOnce);
        }
        agent_->waitForTurn(turn);
        EXPECT_FALSE(agent_->answerPermission(call_id, agent::PermissionAnswer::AllowOnce));
        ASSERT_EQ(recorder_.all<agent::TurnFinished>().size(), static_cast<size_t>(i) + 1);
    }
}

TEST_F(AgentTest, GoingAwayCancelsWhatRuns) {
    FakeReply reply;
    reply.chunks = {"a"};
    reply.waits = true;
    model_->add(reply);
    ASSERT_TRUE(agent_->startTurn({newSession(), "x", TurnMode::Work}).has_value());
    ASSERT_TRUE(recorder_.waitFor<agent::TextDelta>());
    agent_.reset();
    const auto ends = recorder_.all<agent::TurnFinished>();
    ASSERT_EQ(ends.size(), 1U);
    EXPECT_EQ(ends[0].end, agent::TurnEnd::Cancelled);
}

TEST_F(AgentTest, ASecondQuestionSendsTheSameSourcesInTheSamePlaces) {
    const std::string id = newSession();
    auto source = std::make_shared<FakeContextSource>();
    source->add("a.py", 1, 1, "x = 1");
    source->add("b.py", 1, 1, "y = 2");
    agent_->attach(id, source, nullptr);
    for (const char* question : {"where is x?", "where is y?"}) {
        FakeReply reply;
        reply.chunks = {"[a.py:1-1]"};
        model_->add(reply);
        agent_->waitForTurn(*agent_->startTurn({id, question, TurnMode::Ask}));
    }
    const auto requests = model_->requests();
    ASSERT_EQ(requests.size(), 2U);
    EXPECT_EQ(requests[0].conversation, requests[1].conversation);
    ASSERT_GT(requests[1].messages.size(), requests[0].messages.size());
    for (size_t i = 0; i < requests[0].messages.size(); ++i) {
        const auto& before = requests[0].messages[i];
        const auto& after = requests[1].messages[i];
        ASSERT_EQ(before.parts.size(), after.parts.size());
        for (size_t part = 0; part < before.parts.size(); ++part) {
            EXPECT_EQ(before.parts[part].text, after.parts[part].text);
            EXPECT_EQ(before.parts[part].piece, after.parts[part].piece);
        }
    }
}

class EngineModelTest : public AgentTest {
  protected:
    void load(const TinyModelOptions& options) {
        const auto file = dir_.path() / "tiny.gguf";
        dir_.write("tiny.gguf", tinyModel(options));
        auto engine = inference::Engine::load({file.string(), {}}, {}, nullptr, {});
        ASSERT_TRUE(engine.has_value()) << engine.error().message;
        engine_model_ = agent::makeEngineModel(std::move(*engine));
        agent_->setModel(engine_model_);
        agent::AgentConfig config;
        config.generation.max_tokens = 12;
        agent_->setConfig(config);
    }

    std::shared_ptr<agent::LanguageModel> engine_model_;
};

TEST_F(EngineModelTest, AnswersAndTakesTheFirstTurnFromTheCacheInTheSecond) {
    load({});
    const std::string id = newSession();
    agent_->waitForTurn(*agent_->startTurn({id, "hello", TurnMode::Ask}));
    agent_->waitForTurn(*agent_->startTurn({id, "again", TurnMode::Ask}));
    const auto ends = recorder_.all<agent::TurnFinished>();
    ASSERT_EQ(ends.size(), 2U);
    EXPECT_EQ(ends[0].end, agent::TurnEnd::Done) << ends[0].error.message;
    const auto usage = recorder_.all<agent::UsageUpdated>();
    ASSERT_EQ(usage.size(), 2U);
    EXPECT_EQ(usage[0].n_cached, 0U);
    EXPECT_GE(usage[1].n_cached, usage[0].n_prompt);
    EXPECT_EQ(usage[1].n_cached + usage[1].n_prefilled, usage[1].n_prompt);
}

TEST_F(EngineModelTest, MeasuresWhatItWillSend) {
    load({});
    agent::ModelRequest request;
    request.conversation = "c";
    request.messages = {agent::textMessage(agent::Role::System, "You answer."),
                        agent::textMessage(agent::Role::User, "hello")};
    request.options.max_tokens = 4;
    const auto cost = engine_model_->measure(request);
    ASSERT_TRUE(cost.has_value()) << cost.error().message;
    EXPECT_GT(cost->n_system, 0U);
    EXPECT_GT(cost->n_conversation, 0U);

    struct Sink : agent::ModelSink {
        void onPrefill(size_t, size_t n_total) override { n_prompt = n_total; }

        void onNotice(const std::string&) override {}

        void onText(std::string_view) override {}

        size_t n_prompt = 0;
    } sink;

    const auto reply = engine_model_->generate(request, sink, {});
    ASSERT_TRUE(reply.has_value()) << reply.error().message;
    EXPECT_EQ(reply->usage.n_prompt, cost->n_tokens);
}

TEST_F(EngineModelTest, ATextThatLooksLikeAMarkerDoesNotEndTheTurn) {
    load({});
    const auto counter = engine_model_->tokenCounter();
    const std::string marker = "<|im_end|>";
    EXPECT_GT(counter->encode(marker).size(), 1U) << "the user's text is never a special token";
}

TEST_F(EngineModelTest, APromptLongerThanTheWindowIsRefusedWithTheNumbers) {
    TinyModelOptions options;
    options.context_tokens = 64;
    load(options);
    const std::string id = newSession();
    std::string text;
    for (int i = 0; i < 200; ++i) {
        text += "word " + std::to_string(i) + " ";
    }
    agent_->waitForTurn(*agent_->startTurn({id, text, TurnMode::Ask}));
    const auto ends = recorder_.all<agent::TurnFinished>();
    ASSERT_EQ(ends.size(), 1U);
    EXPECT_EQ(ends[0].end, agent::TurnEnd::Failed);
    EXPECT_NE(ends[0].error.message.find("64"), std::string::npos) << ends[0].error.message;
}

}  // namespace
}  // namespace belvedere::testing
