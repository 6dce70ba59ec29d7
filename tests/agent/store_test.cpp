// SPDX-License-Identifier: Apache-2.0
// Sessions and their log: what is written is there after opening again, in order, from every schema
// that ever shipped.

#include <thread>

#include <gtest/gtest.h>

#include "agent/agent.h"
#include "agent/store/migrations.h"
#include "agent/store/session_store.h"
#include "agent/store/sqlite.h"
#include "tests/support/temp_dir.h"

namespace belvedere::testing {
namespace {

using agent::Json;
using agent::SessionStore;

class StoreTest : public ::testing::Test {
  protected:
    void open() {
        store_.reset();
        auto store = SessionStore::open(file());
        ASSERT_TRUE(store.has_value()) << store.error().message;
        store_ = std::move(*store);
    }

    void SetUp() override { open(); }

    [[nodiscard]] std::filesystem::path file() const { return dir_.path() / "sessions.db"; }

    std::string session(const std::string& question) {
        const std::string id = store_->createSession("/repo", "model")->id;
        EXPECT_TRUE(store_->beginTurn(id, question, Json::object()).has_value());
        return id;
    }

    TempDir dir_;
    std::unique_ptr<SessionStore> store_;
};

TEST_F(StoreTest, KeepsEventsInOrderOverOpeningAgain) {
    const std::string id = store_->createSession("/repo", "model")->id;
    const agent::TurnId turn = *store_->beginTurn(id, "Where is x?", Json::object());
    int64_t last = 0;
    for (int i = 0; i < 20; ++i) {
        const auto event = store_->append(id, turn, "notice", {{"text", std::to_string(i)}});
        ASSERT_TRUE(event.has_value());
        EXPECT_GT(*event, last);
        last = *event;
    }
    open();
    const auto loaded = store_->loadSession(id);
    ASSERT_TRUE(loaded.has_value());
    EXPECT_EQ(loaded->summary.repository, "/repo");
    EXPECT_EQ(loaded->summary.n_turns, 1U);
    ASSERT_EQ(loaded->events.size(), 21U);
    EXPECT_EQ(loaded->events[0].type, "user_message");
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(loaded->events[static_cast<size_t>(i) + 1].payload.at("text"), std::to_string(i));
    }
}

TEST_F(StoreTest, TitleIsTheFirstQuestionUntilTheUserGivesOne) {
    const std::string id = session("  Where is the page size set?\nmore");
    EXPECT_EQ(store_->loadSession(id)->summary.title, "Where is the page size set?");
    ASSERT_TRUE(store_->renameSession(id, "Pages").has_value());
    ASSERT_TRUE(store_->beginTurn(id, "another", Json::object()).has_value());
    EXPECT_EQ(store_->loadSession(id)->summary.title, "Pages");
}

TEST_F(StoreTest, ListsNewestFirstAndForgetsWhatIsDeleted) {
    const std::string first = session("first");
    const std::string second = session("second");
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // times are in milliseconds
    ASSERT_TRUE(store_->beginTurn(first, "again", Json::object()).has_value());
    const auto list = store_->listSessions();
    ASSERT_EQ(list->size(), 2U);
    EXPECT_EQ((*list)[0].id, first);
    ASSERT_TRUE(store_->deleteSession(first).has_value());
    EXPECT_EQ(store_->listSessions()->size(), 1U);
    EXPECT_EQ(store_->loadSession(first).error().code, ErrorCode::NotFound);
    EXPECT_TRUE(store_->search("again", 10)->empty());
    EXPECT_EQ(store_->loadSession(second)->summary.title, "second");
}

TEST_F(StoreTest, SearchFindsPrefixesOfWordsInQuestionsAnswersAndTitles) {
    const std::string id = session("Where is kPageTokens defined?");
    const auto turn = *store_->beginTurn(id, "next", Json::object());
    ASSERT_TRUE(store_->append(id, turn, "assistant_message", {{"text", "In kernels/formats.h"}})
                    .has_value());
    ASSERT_TRUE(store_->renameSession(id, "Caché").has_value());
    for (const char* query : {"kpage", "PAGETOK", "formats", "cache", "kernels form"}) {
        const auto hits = store_->search(query, 10);
        ASSERT_TRUE(hits.has_value()) << query;
        if (std::string(query) == "PAGETOK") {
            EXPECT_TRUE(hits->empty()) << "the inside of a word is no prefix";
        } else {
            ASSERT_FALSE(hits->empty()) << query;
            EXPECT_EQ((*hits)[0].session_id, id);
            EXPECT_NE((*hits)[0].excerpt.find('\x01'), std::string::npos);
        }
    }
}

TEST_F(StoreTest, SearchTakesSyntaxAsText) {
    session("a AND (b OR \"c\") NEAR/2 d* ^x col:y");
    for (const char* query :
         {"\"", "(", "AND", "a AND", "NEAR(", "*", "col:", "-", "'; DROP TABLE"}) {
        EXPECT_TRUE(store_->search(query, 10).has_value()) << query;
    }
    EXPECT_EQ(store_->listSessions()->size(), 1U);
}

TEST_F(StoreTest, InvalidUtf8IsKeptAsReplacementCharacters) {
    const std::string id = session("bad \xff\xc3 bytes");
    EXPECT_NE(store_->loadSession(id)->events[0].payload.at("text").get<std::string>().find("bad"),
              std::string::npos);
}

TEST_F(StoreTest, DraftOfAnUnfinishedTurnIsShownAsInterrupted) {
    const std::string id = store_->createSession("", "m")->id;
    const auto turn = *store_->beginTurn(id, "question", Json::object());
    store_->saveDraft(id, turn, "half");
    store_->saveDraft(id, turn, "half an answer");
    open();
    const auto loaded = store_->loadSession(id);
    EXPECT_EQ(loaded->draft, "half an answer");
    const auto events = agent::replay(*loaded);
    const auto* end = std::get_if<agent::TurnFinished>(&events.back().payload);
    ASSERT_NE(end, nullptr);
    EXPECT_EQ(end->end, agent::TurnEnd::Interrupted);
    // The next turn closes it for good.
    ASSERT_TRUE(store_->beginTurn(id, "next", Json::object()).has_value());
    open();
    const auto later = store_->loadSession(id);
    EXPECT_TRUE(later->draft.empty());
    bool has_text = false;
    for (const auto& event : later->events) {
        has_text |=
            event.type == "assistant_message" && event.payload.at("text") == "half an answer";
    }
    EXPECT_TRUE(has_text);
}

TEST_F(StoreTest, ManyThreadsWriteAtOnce) {
    const std::string id = store_->createSession("", "m")->id;
    const auto turn = *store_->beginTurn(id, "q", Json::object());
    {
        std::vector<std::jthread> writers;
        for (int w = 0; w < 4; ++w) {
            writers.emplace_back([&] {
                for (int i = 0; i < 25; ++i) {
                    EXPECT_TRUE(store_->append(id, turn, "notice", {{"text", "x"}}).has_value());
                }
            });
        }
    }
    EXPECT_EQ(store_->loadSession(id)->events.size(), 101U);
}

TEST_F(StoreTest, UnknownSessionsAreNamed) {
    EXPECT_EQ(store_->beginTurn("nobody", "x", Json::object()).error().code, ErrorCode::NotFound);
    EXPECT_EQ(store_->renameSession("nobody", "x").error().code, ErrorCode::NotFound);
    EXPECT_EQ(store_->deleteSession("nobody").error().code, ErrorCode::NotFound);
}

/// A database as version `version` of the program left it, with one session of two messages.
void makeOldDatabase(const std::filesystem::path& file, int version) {
    auto database = agent::Database::open(file);
    ASSERT_TRUE(database.has_value());
    for (const agent::Migration& migration : agent::migrations()) {
        if (migration.version <= version) {
            ASSERT_TRUE((*database)->execute(migration.sql).has_value());
        }
    }
    const std::string stamp = "PRAGMA user_version = " + std::to_string(version);
    ASSERT_TRUE((*database)->execute(stamp.c_str()).has_value());
    if (version == 0) {
        return;
    }
    ASSERT_TRUE((*database)
                    ->execute(R"sql(
        INSERT INTO sessions VALUES('s1', 'Old title', 0, '/r', 'm', 1, 2);
        INSERT INTO turns VALUES(7, 's1', 1);
        INSERT INTO events(session_id, turn_id, time_ms, type, payload)
            VALUES('s1', 7, 1, 'user_message', '{"text": "an old question"}');
        INSERT INTO events(session_id, turn_id, time_ms, type, payload)
            VALUES('s1', 7, 1, 'assistant_message', '{"text": "an old answer"}');
        INSERT INTO events(session_id, turn_id, time_ms, type, payload)
            VALUES('s1', 7, 1, 'turn_finished', '{"end": "done"}');
    )sql")
                    .has_value());
}

class MigrationTest : public ::testing::TestWithParam<int> {};

TEST_P(MigrationTest, OldDatabasesKeepTheirSessions) {
    const TempDir dir;
    const auto file = dir.path() / "sessions.db";
    makeOldDatabase(file, GetParam());
    auto store = SessionStore::open(file);
    ASSERT_TRUE(store.has_value()) << store.error().message;
    if (GetParam() > 0) {
        const auto loaded = (*store)->loadSession("s1");
        ASSERT_TRUE(loaded.has_value());
        EXPECT_EQ(loaded->events.size(), 3U);
        if (GetParam() < 3) {
            EXPECT_EQ((*store)->search("old answer", 10)->size(), 1U) << "the migration indexes";
        }
    }
    const std::string id = (*store)->createSession("", "m")->id;
    const auto turn = (*store)->beginTurn(id, "new", Json::object());
    ASSERT_TRUE(turn.has_value());
    EXPECT_GT(*turn, GetParam() > 0 ? 7U : 0U);
}

INSTANTIATE_TEST_SUITE_P(From, MigrationTest, ::testing::Range(0, 4));

TEST(MigrationTest, ADatabaseOfANewerProgramIsLeftAlone) {
    const TempDir dir;
    const auto file = dir.path() / "sessions.db";
    makeOldDatabase(file, 3);
    {
        auto database = agent::Database::open(file);
        ASSERT_TRUE((*database)->execute("PRAGMA user_version = 99").has_value());
    }
    const auto store = SessionStore::open(file);
    ASSERT_FALSE(store.has_value());
    EXPECT_EQ(store.error().code, ErrorCode::Unsupported);
    EXPECT_NE(store.error().message.find("sessions.db"), std::string::npos);
    EXPECT_NE(store.error().message.find("99"), std::string::npos);
    auto database = agent::Database::open(file);
    EXPECT_EQ(*(*database)->queryInteger("SELECT count(*) FROM events"), 3);
}

}  // namespace
}  // namespace belvedere::testing
