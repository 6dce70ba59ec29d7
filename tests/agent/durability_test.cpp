// SPDX-License-Identifier: Apache-2.0
// Every event is on disk before anything follows from it; where one cannot be written, nothing
// follows and the turn says so. The store is the real one, with a fault at a place of our choice.

#include <algorithm>
#include <map>
#include <mutex>

#include <gtest/gtest.h>

#include "agent/agent.h"
#include "tests/support/event_recorder.h"
#include "tests/support/fake_language_model.h"
#include "tests/support/fake_tool.h"
#include "tests/support/forwarding_store.h"
#include "tests/support/temp_dir.h"

namespace belvedere::testing {
namespace {

constexpr size_t kNever = SIZE_MAX;

/// What happened, in order, whoever did it.
class Journal {
  public:
    void add(std::string entry) {
        const std::lock_guard lock(mutex_);
        entries_.push_back(std::move(entry));
    }

    [[nodiscard]] std::vector<std::string> entries() const {
        const std::lock_guard lock(mutex_);
        return entries_;
    }

    /// Where the entry stands for the first time; kNever: nowhere.
    [[nodiscard]] size_t find(const std::string& entry) const {
        const std::vector<std::string> all = entries();
        const auto it = std::find(all.begin(), all.end(), entry);
        return it == all.end() ? kNever : static_cast<size_t>(it - all.begin());
    }

    [[nodiscard]] size_t count(const std::string& entry) const {
        const std::vector<std::string> all = entries();
        return static_cast<size_t>(std::count(all.begin(), all.end(), entry));
    }

  private:
    mutable std::mutex mutex_;
    std::vector<std::string> entries_;
};

/// Refuses the append with the given number, from 0; notes what is on disk.
class FaultyStore : public ForwardingStore {
  public:
    FaultyStore(std::unique_ptr<agent::SessionStore> store, Journal& journal, size_t faulty)
        : ForwardingStore(std::move(store)), journal_(journal), faulty_(faulty) {}

    Result<agent::TurnId> beginTurn(const std::string& session_id,
                                    const std::string& user_text,
                                    const agent::Json& extra) override {
        Result<agent::TurnId> turn = ForwardingStore::beginTurn(session_id, user_text, extra);
        journal_.add("stored user_message");
        return turn;
    }

    Result<int64_t> append(const std::string& session_id,
                           agent::TurnId turn,
                           const std::string& type,
                           const agent::Json& payload) override {
        if (n_appends_++ == faulty_) {
            journal_.add("refused " + type);
            refused_ = type;
            return fail(ErrorCode::Io, "the disk is full");
        }
        Result<int64_t> id = ForwardingStore::append(session_id, turn, type, payload);
        journal_.add("stored " + type);
        return id;
    }

    [[nodiscard]] const std::string& refused() const { return refused_; }

    [[nodiscard]] size_t appendCount() const { return n_appends_; }

  private:
    Journal& journal_;
    const size_t faulty_;
    size_t n_appends_ = 0;  // turns run one at a time here
    std::string refused_;
};

class JournalingModel : public FakeLanguageModel {
  public:
    JournalingModel(agent::ModelDescription description, Journal& journal)
        : FakeLanguageModel(std::move(description)), journal_(journal) {}

    Result<agent::ModelReply> generate(const agent::ModelRequest& request,
                                       agent::ModelSink& sink,
                                       std::stop_token stop) override {
        journal_.add("model asked");
        return FakeLanguageModel::generate(request, sink, std::move(stop));
    }

  private:
    Journal& journal_;
};

/// One turn: the model writes a note, with the user's permission, and then answers.
class NoteTurn {
  public:
    explicit NoteTurn(size_t faulty_append) {
        auto store = *agent::SessionStore::open(dir_.path() / "sessions.db");
        store_ = std::make_unique<FaultyStore>(std::move(store), journal, faulty_append);
        agent::ModelDescription description;
        description.window_tokens = 100'000;
        description.has_native_tools = true;
        model = std::make_shared<JournalingModel>(description, journal);
        agent_ = agent::Agent::create({}, *store_, recorder);
        agent_->setModel(model);
        session_ = store_->createSession("", "m")->id;
        auto tools = std::make_shared<agent::ToolRegistry>();
        tools->add(fakeTool({"write_note", agent::ToolKind::Write, false,
                             [this](const agent::Json&, const agent::ToolContext&) {
                                 journal.add("tool ran");
                                 return Result<agent::ToolOutput>(
                                     agent::ToolOutput{"noted", {}, {}});
                             }}));
        agent_->attach(session_, nullptr, tools);
    }

    void run() {
        FakeReply call;
        call.chunks = {
            "I write.<tool_call>{\"name\": \"write_note\", \"arguments\": {\"text\": "
            "\"a\"}}</tool_call>"};
        model->add(call);
        reply("done");
        const agent::TurnId turn = *agent_->startTurn({session_, "note it", agent::TurnMode::Work});
        // The question comes unless the fault ends the turn before it.
        ASSERT_TRUE(recorder.waitUntil([](const std::vector<agent::Event>& events) {
            return std::any_of(events.begin(), events.end(), [](const agent::Event& event) {
                return std::holds_alternative<agent::PermissionRequested>(event.payload) ||
                       std::holds_alternative<agent::TurnFinished>(event.payload);
            });
        }));
        for (const auto& asked : recorder.all<agent::PermissionRequested>()) {
            agent_->answerPermission(asked.question.call_id, agent::PermissionAnswer::AllowOnce);
        }
        agent_->waitForTurn(turn);
    }

    /// Another turn, the store being well again; what the model is asked then.
    agent::ModelRequest next() {
        const auto fresh = std::make_shared<JournalingModel>(model->description(), journal);
        model = fresh;
        agent_->setModel(fresh);
        reply("ok");
        agent_->waitForTurn(*agent_->startTurn({session_, "and now?", agent::TurnMode::Work}));
        return fresh->requests().at(0);
    }

    [[nodiscard]] const FaultyStore& store() const { return *store_; }

    [[nodiscard]] std::vector<std::string> storedTypes() const {
        std::vector<std::string> types;
        const agent::StoredSession session = *store_->loadSession(session_);
        for (const agent::StoredEvent& event : session.events) {
            types.push_back(event.type);
        }
        return types;
    }

    Journal journal;
    EventRecorder recorder;
    std::shared_ptr<JournalingModel> model;

  private:
    void reply(const char* text) {
        FakeReply reply;
        reply.chunks = {text};
        model->add(reply);
    }

    TempDir dir_;
    std::unique_ptr<FaultyStore> store_;
    std::unique_ptr<agent::Agent> agent_;  // dies before what it refers to
    std::string session_;
};

TEST(Durability, EachStepIsOnDiskBeforeTheNextIsTaken) {
    NoteTurn turn(kNever);
    turn.run();
    const std::vector<std::string> entries = turn.journal.entries();
    const std::vector<std::string> expected = {"stored user_message", "stored context",
                                               "model asked",         "stored assistant_message",
                                               "stored usage",        "stored permission",
                                               "stored tool_call",    "tool ran",
                                               "stored tool_result",  "stored context",
                                               "model asked",         "stored assistant_message",
                                               "stored usage",        "stored turn_finished"};
    EXPECT_EQ(entries, expected);
    const auto ends = turn.recorder.all<agent::TurnFinished>();
    ASSERT_EQ(ends.size(), 1U);
    EXPECT_EQ(ends[0].end, agent::TurnEnd::Done);
}

/// The requests' calls that have a number of results other than one.
std::vector<std::string> unansweredCalls(const agent::ModelRequest& request) {
    std::map<std::string, size_t> n_results;
    for (const agent::Message& message : request.messages) {
        for (const agent::ToolCall& call : message.tool_calls) {
            n_results.emplace(call.id, 0);
        }
        if (message.role == agent::Role::Tool) {
            ++n_results[message.tool_call_id];
        }
    }
    std::vector<std::string> calls;
    for (const auto& [id, n] : n_results) {
        if (n != 1) {
            calls.push_back(id + " has " + std::to_string(n) + " results");
        }
    }
    return calls;
}

TEST(Durability, WhereAnEventCannotBeWrittenNothingFollowsFromIt) {
    size_t n_events = 0;
    {
        NoteTurn whole(kNever);
        whole.run();
        n_events = whole.store().appendCount();
    }
    ASSERT_GE(n_events, 10U);
    for (size_t faulty = 0; faulty < n_events; ++faulty) {
        NoteTurn turn(faulty);
        turn.run();
        const std::string refused = turn.store().refused();
        SCOPED_TRACE("append " + std::to_string(faulty) + ": " + refused);
        const auto ends = turn.recorder.all<agent::TurnFinished>();
        ASSERT_EQ(ends.size(), 1U);
        EXPECT_EQ(ends[0].end, agent::TurnEnd::Failed);
        EXPECT_EQ(ends[0].error.message, "the disk is full");

        // Nobody acts on it: no tool and no model behind the refusal.
        const std::vector<std::string> entries = turn.journal.entries();
        const size_t at = turn.journal.find("refused " + refused);
        ASSERT_NE(at, kNever);
        for (size_t i = at + 1; i < entries.size(); ++i) {
            EXPECT_NE(entries[i], "tool ran");
            EXPECT_NE(entries[i], "model asked");
        }
        // Once there is room again the session goes on, with a history that is whole.
        const agent::ModelRequest request = turn.next();
        EXPECT_TRUE(unansweredCalls(request).empty())
            << ::testing::PrintToString(unansweredCalls(request));
        EXPECT_EQ(turn.recorder.all<agent::TurnFinished>().back().end, agent::TurnEnd::Done);
        const std::vector<std::string> types = turn.storedTypes();
        EXPECT_EQ(std::count(types.begin(), types.end(), "turn_finished"), 2);
    }
}

}  // namespace
}  // namespace belvedere::testing
