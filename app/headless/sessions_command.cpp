// SPDX-License-Identifier: Apache-2.0
// sessions: list, show, rename, delete and search what the database holds.
#include <ctime>

#include <fmt/ranges.h>
#include <unistd.h>

#include "app/headless/cli.h"
#include "app/headless/event_json.h"
#include "app/headless/runtime.h"

namespace belvedere::app {
namespace {

std::string localTime(int64_t unix_ms) {
    const std::time_t seconds = static_cast<std::time_t>(unix_ms / 1000);
    std::tm local{};
    localtime_r(&seconds, &local);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &local);
    return text;
}

agent::Json summaryToJson(const agent::SessionSummary& session) {
    return {{"id", session.id},
            {"title", session.title},
            {"repository", session.repository},
            {"model", session.model},
            {"created_ms", session.created_ms},
            {"updated_ms", session.updated_ms},
            {"n_turns", session.n_turns}};
}

Result<void> list(agent::SessionStore& store, const Arguments& arguments) {
    for (const agent::SessionSummary& session : BV_TRY(store.listSessions())) {
        if (arguments.json) {
            fmt::print("{}\n", summaryToJson(session).dump());
        } else {
            fmt::print("{}  {}  {:>3} turns  {}{}{}\n", session.id, localTime(session.updated_ms),
                       session.n_turns, session.title, session.repository.empty() ? "" : "  in ",
                       session.repository);
        }
    }
    return {};
}

Result<void> show(agent::SessionStore& store, const std::string& id, const Arguments& arguments) {
    const agent::StoredSession session = BV_TRY(store.loadSession(id));
    for (const agent::Event& event : agent::replay(session)) {
        if (arguments.json) {
            fmt::print("{}\n", eventToJson(event).dump());
        } else if (const auto* started = std::get_if<agent::TurnStarted>(&event.payload)) {
            fmt::print("> {}\n\n", started->user_text);
        } else if (const auto* text = std::get_if<agent::TextDelta>(&event.payload)) {
            fmt::print("{}", text->text);
        } else if (const auto* call = std::get_if<agent::ToolCallStarted>(&event.payload)) {
            fmt::print("[{}]\n", call->title);
        } else if (const auto* finished = std::get_if<agent::TurnFinished>(&event.payload)) {
            fmt::print("\n{}\n", finished->end == agent::TurnEnd::Done        ? ""
                                 : finished->end == agent::TurnEnd::Cancelled ? "(stopped)\n"
                                 : finished->end == agent::TurnEnd::Failed
                                     ? "(failed: " + finished->error.message + ")\n"
                                     : "(interrupted)\n");
        }
    }
    return {};
}

Result<void> search(agent::SessionStore& store, const std::string& query) {
    for (const agent::SearchHit& hit : BV_TRY(store.search(query, 50))) {
        std::string excerpt = hit.excerpt;
        for (char& c : excerpt) {
            c = c == '\x01' ? '[' : c == '\x02' ? ']' : c == '\n' ? ' ' : c;
        }
        fmt::print("{}  {}: {}\n", hit.session_id, hit.session_title, excerpt);
    }
    return {};
}

Result<void> remove(agent::SessionStore& store, const std::string& id, const Arguments& arguments) {
    const agent::StoredSession session = BV_TRY(store.loadSession(id));
    if (!arguments.yes) {
        if (isatty(STDIN_FILENO) != 1) {
            return fail(ErrorCode::InvalidArgument,
                        "deleting needs --yes where nobody can be asked");
        }
        fmt::print(stderr, "delete \"{}\" with {} turns? [y/n] ", session.summary.title,
                   session.summary.n_turns);
        if (std::getchar() != 'y') {
            return fail(ErrorCode::Cancelled, "not deleted");
        }
    }
    return store.deleteSession(id);
}

}  // namespace

Result<void> runSessions(const Arguments& arguments, std::stop_token /*stop*/) {
    const std::vector<std::string>& words = arguments.positional;
    const std::string action = words.empty() ? "list" : words[0];
    const auto word = [&](size_t i, const char* what) -> Result<std::string> {
        if (words.size() <= i) {
            return fail(ErrorCode::InvalidArgument, "sessions {}: the {} is missing", action, what);
        }
        return words[i];
    };
    const std::unique_ptr<agent::SessionStore> store = BV_TRY(openStore());
    if (action == "list") {
        return list(*store, arguments);
    }
    if (action == "show") {
        return show(*store, BV_TRY(word(1, "session id")), arguments);
    }
    if (action == "rename") {
        BV_TRY(word(2, "new title"));
        return store->renameSession(
            words[1], fmt::format("{}", fmt::join(words.begin() + 2, words.end(), " ")));
    }
    if (action == "delete") {
        return remove(*store, BV_TRY(word(1, "session id")), arguments);
    }
    if (action == "search") {
        BV_TRY(word(1, "text"));
        return search(*store, fmt::format("{}", fmt::join(words.begin() + 1, words.end(), " ")));
    }
    return fail(ErrorCode::InvalidArgument,
                "sessions {}: expected list, show, rename, delete or search", action);
}

}  // namespace belvedere::app
