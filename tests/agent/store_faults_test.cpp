// SPDX-License-Identifier: Apache-2.0
// What can go wrong with the database: each gives one message that names the file, and nothing that
// was acknowledged is lost. Among them kill -9, fifty times.

#include <csignal>
#include <fstream>
#include <random>
#include <set>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/store/session_store.h"
#include "tests/support/event_recorder.h"
#include "tests/support/fake_language_model.h"
#include "tests/support/fake_tool.h"
#include "tests/support/forwarding_store.h"
#include "tests/support/temp_dir.h"

namespace belvedere::testing {
namespace {

using agent::Json;
using agent::SessionStore;

TEST(StoreFaults, AFolderThatCannotBeWrittenIsNamed) {
    const auto store = SessionStore::open("/proc/belvedere/sessions.db");
    ASSERT_FALSE(store.has_value());
    EXPECT_EQ(store.error().code, ErrorCode::Io);
    EXPECT_NE(store.error().message.find("/proc/belvedere"), std::string::npos);
}

TEST(StoreFaults, AFileThatIsNoDatabaseIsLeftAsItIs) {
    const TempDir dir;
    const auto file = dir.path() / "sessions.db";
    const std::string text(5000, 'x');
    std::ofstream(file) << text;
    const auto store = SessionStore::open(file);
    ASSERT_FALSE(store.has_value());
    EXPECT_EQ(store.error().code, ErrorCode::Corrupt);
    EXPECT_NE(store.error().message.find("sessions.db"), std::string::npos);
    std::ifstream stream(file);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(stream), {}), text);
}

TEST(StoreFaults, DamageInsideIsFoundWhenOpening) {
    const TempDir dir;
    const auto file = dir.path() / "sessions.db";
    {
        auto store = *SessionStore::open(file);
        const std::string id = store->createSession("", "m")->id;
        const auto turn = *store->beginTurn(id, "q", Json::object());
        for (int i = 0; i < 200; ++i) {
            ASSERT_TRUE(
                store->append(id, turn, "notice", {{"text", std::string(300, 'a')}}).has_value());
        }
    }
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    // Pages of 4 KiB behind the schema.
    for (int page = 12; page < 20; ++page) {
        stream.seekp(page * 4096 + 3);
        stream.write("\xff\xff\xff\xff\xff\xff\xff\xff", 8);
    }
    stream.close();
    const auto store = SessionStore::open(file);
    ASSERT_FALSE(store.has_value());
    EXPECT_EQ(store.error().code, ErrorCode::Corrupt) << store.error().message;
    EXPECT_NE(store.error().message.find("sessions.db"), std::string::npos);
}

/// Files cannot grow beyond a size while this lives: what a full disk looks like to a program.
class FileSizeLimit {
  public:
    explicit FileSizeLimit(rlim_t n_bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
        getrlimit(RLIMIT_FSIZE, &before_);
        rlimit limit = before_;
        limit.rlim_cur = n_bytes;
        setrlimit(RLIMIT_FSIZE, &limit);
    }

    ~FileSizeLimit() {
        setrlimit(RLIMIT_FSIZE, &before_);
        std::signal(SIGXFSZ, handler_);
    }

    FileSizeLimit(const FileSizeLimit&) = delete;
    FileSizeLimit& operator=(const FileSizeLimit&) = delete;

  private:
    rlimit before_{};
    void (*handler_)(int);
};

TEST(StoreFaults, AFullDiskLosesNothingThatWasAcknowledged) {
    const TempDir dir;
    const auto file = dir.path() / "sessions.db";
    auto store = *SessionStore::open(file);
    const std::string id = store->createSession("", "m")->id;
    const auto turn = *store->beginTurn(id, "q", Json::object());
    std::set<int64_t> acknowledged;
    std::optional<Error> error;
    {
        const FileSizeLimit limit(rlim_t{1} << 18);
        for (int i = 0; i < 1000 && !error; ++i) {
            const auto event =
                store->append(id, turn, "notice", {{"text", std::string(2000, 'a')}});
            if (event.has_value()) {
                acknowledged.insert(*event);
            } else {
                error = event.error();
            }
        }
    }
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code, ErrorCode::Io) << error->message;
    EXPECT_NE(error->message.find("sessions.db"), std::string::npos) << error->message;
    // There is room again.
    EXPECT_TRUE(store->append(id, turn, "notice", {{"text", "after"}}).has_value());
    store = *SessionStore::open(file);
    std::set<int64_t> found;
    const agent::StoredSession session = *store->loadSession(id);
    for (const auto& event : session.events) {
        found.insert(event.id);
    }
    for (const int64_t event : acknowledged) {
        EXPECT_TRUE(found.contains(event));
    }
}

/// Tells a pipe the id of each event once it is acknowledged.
class TellingStore : public ForwardingStore {
  public:
    TellingStore(std::unique_ptr<SessionStore> store, int pipe)
        : ForwardingStore(std::move(store)), pipe_(pipe) {}

    Result<int64_t> append(const std::string& session_id,
                           agent::TurnId turn,
                           const std::string& type,
                           const Json& payload) override {
        const Result<int64_t> id = ForwardingStore::append(session_id, turn, type, payload);
        if (id.has_value()) {
            const int64_t value = *id;
            [[maybe_unused]] const ssize_t written = write(pipe_, &value, sizeof(value));
        }
        return id;
    }

  private:
    int pipe_;
};

/// Streams turns with tool calls until it is killed.
[[noreturn]] void streamForEver(const std::filesystem::path& file, int pipe) {
    TellingStore store(*SessionStore::open(file), pipe);
    EventRecorder recorder;
    agent::ModelDescription description;
    description.window_tokens = 1 << 20;
    description.has_native_tools = true;
    auto model = std::make_shared<FakeLanguageModel>(description);
    const auto agent = agent::Agent::create({}, store, recorder);
    agent->setModel(model);
    const std::string id = store.createSession("", "m")->id;
    agent->attach(id, nullptr, fakeTools());
    for (int turn = 0;; ++turn) {
        FakeReply call;
        call.chunks.assign(30, "some text ");
        call.chunks.push_back("<tool_call>\n{\"name\": \"echo\", \"arguments\": {\"text\": \"" +
                              std::to_string(turn) + "\"}}\n</tool_call>");
        call.chunk_pause = std::chrono::milliseconds(1);
        model->add(call);
        FakeReply answer;
        answer.chunks.assign(20, "word ");
        answer.chunk_pause = std::chrono::milliseconds(1);
        model->add(answer);
        agent->waitForTurn(*agent->startTurn({id, "go on", agent::TurnMode::Work}));
    }
}

TEST(StoreFaults, KillAtAnyMomentLosesNoAcknowledgedEvent) {
    constexpr int kKills = 50;
    const TempDir dir;
    const auto file = dir.path() / "sessions.db";
    std::mt19937 random(1);
    std::set<int64_t> acknowledged;
    size_t n_interrupted = 0;
    for (int kill = 0; kill < kKills; ++kill) {
        int pipes[2];
        ASSERT_EQ(pipe(pipes), 0);
        const pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            close(pipes[0]);
            streamForEver(file, pipes[1]);
        }
        close(pipes[1]);
        // A random number of events, then a random moment of what follows them.
        const auto n_events = static_cast<size_t>(random() % 12);
        const auto wait_us = static_cast<useconds_t>(random() % 20'000);
        int64_t event = 0;
        for (size_t i = 0; i < n_events && read(pipes[0], &event, sizeof(event)) == sizeof(event);
             ++i) {
            acknowledged.insert(event);
        }
        usleep(wait_us);
        ::kill(child, SIGKILL);
        int status = 0;
        waitpid(child, &status, 0);
        while (read(pipes[0], &event, sizeof(event)) == sizeof(event)) {
            acknowledged.insert(event);
        }
        close(pipes[0]);

        auto store = SessionStore::open(file);
        ASSERT_TRUE(store.has_value()) << store.error().message;
        std::set<int64_t> found;
        const std::vector<agent::SessionSummary> sessions = *(*store)->listSessions();
        for (const agent::SessionSummary& summary : sessions) {
            const auto session = *(*store)->loadSession(summary.id);
            for (const auto& stored : session.events) {
                found.insert(stored.id);
            }
            const auto events = agent::replay(session);
            if (events.empty()) {
                continue;
            }
            const auto* end = std::get_if<agent::TurnFinished>(&events.back().payload);
            ASSERT_NE(end, nullptr) << "every turn is shown as ended";
            n_interrupted += end->end == agent::TurnEnd::Interrupted ? 1U : 0U;
        }
        for (const int64_t id : acknowledged) {
            ASSERT_TRUE(found.contains(id)) << "after kill " << kill;
        }
    }
    EXPECT_GT(acknowledged.size(), 100U);
    EXPECT_GT(n_interrupted, 0U);
}

}  // namespace
}  // namespace belvedere::testing
