// SPDX-License-Identifier: Apache-2.0
#pragma once

// Everything a front end is ever told, as one variant.
//
// Invariants:
//  1. Each event carries the id of its turn (0: of no turn).
//  2. Exactly one TurnFinished follows each TurnStarted, always last.
//  3. A receiver drops events whose turn is not current.
//  4. Posting never blocks and never fails.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "agent/message.h"
#include "agent/permission.h"
#include "agent/plan.h"
#include "kernels/base/result.h"

namespace belvedere::agent {

using TurnId = uint64_t;  ///< unique within a store, ascending

struct TurnStarted {
    std::string session_id;
    std::string user_text;
};

struct TextDelta {
    std::string text;
};

struct ThinkingDelta {
    std::string text;
};

struct ToolCallStarted {
    ToolCall call;
    std::string title;
    ToolKind kind = ToolKind::Read;
};

struct ToolCallOutput {
    std::string call_id;
    std::string text;
};

struct ToolCallFinished {
    std::string call_id;
    std::string text;  ///< as the model sees it
    Json data;
    bool is_error = false;
};

struct PermissionRequested {
    PermissionQuestion question;
};

struct PermissionResolved {
    std::string call_id;
    bool is_allowed = false;
};

struct PlanChanged {
    Plan plan;
};

struct PrefillProgress {
    size_t n_done = 0;
    size_t n_total = 0;
};

/// Counted while a repository is read.
struct IngestionProgress {
    std::string root;
    size_t n_files_done = 0;
    size_t n_files_total = 0;  ///< 0: still walking
    size_t n_bytes = 0;
    size_t n_tokens = 0;
    bool is_done = false;
};

/// What fills the window, and which sources stand in it.
struct ContextChanged {
    struct Category {
        std::string name;  ///< "system", "sources", "conversation", "tools"
        size_t n_tokens = 0;
    };

    std::vector<Category> categories;
    size_t n_tokens = 0;
    size_t window_tokens = 0;
    std::vector<std::shared_ptr<const SourcePiece>> pieces;
    size_t n_files = 0;
    size_t n_files_total = 0;
    size_t n_source_tokens = 0;
    size_t n_source_tokens_total = 0;
    bool is_new_context = false;  ///< the question could not continue in the old one
};

/// A citation in the answer, checked against what was in the context.
struct Citation {
    std::string path;
    size_t first_line = 0;
    size_t last_line = 0;
    size_t text_begin = 0;  ///< bytes of the answer, brackets included
    size_t text_end = 0;
    bool is_in_context = false;
};

struct CitationsChecked {
    std::vector<Citation> citations;
};

/// Something the user should see that is no error: a cut, a fallback, a new context.
struct Notice {
    std::string text;
};

struct UsageUpdated {
    size_t n_prompt = 0;
    size_t n_cached = 0;
    size_t n_prefilled = 0;
    size_t n_generated = 0;
    size_t n_drafted = 0;   ///< tokens guessed ahead by the engine
    size_t n_accepted = 0;  ///< and right
    size_t n_images = 0;    ///< images and clips that were new in the prompt
    size_t n_encoded = 0;   ///< of these; the others had been seen before
    double prefill_seconds = 0;
    double generation_seconds = 0;
    double first_token_seconds = 0;
};

/// Older messages were replaced by a summary; never silent.
struct HistoryCompacted {
    size_t n_tokens_before = 0;
    size_t n_tokens_after = 0;
};

enum class TurnEnd { Done, Cancelled, Failed, Interrupted, RoundLimit };

struct TurnFinished {
    TurnEnd end = TurnEnd::Done;
    Error error;  ///< TurnEnd::Failed
};

using EventPayload = std::variant<TurnStarted,
                                  TextDelta,
                                  ThinkingDelta,
                                  ToolCallStarted,
                                  ToolCallOutput,
                                  ToolCallFinished,
                                  PermissionRequested,
                                  PermissionResolved,
                                  PlanChanged,
                                  PrefillProgress,
                                  IngestionProgress,
                                  ContextChanged,
                                  CitationsChecked,
                                  Notice,
                                  UsageUpdated,
                                  HistoryCompacted,
                                  TurnFinished>;

struct Event {
    TurnId turn = 0;
    EventPayload payload;
};

/// Where events go. post() is called from any thread, returns at once and cannot fail.
class EventSink {
  public:
    virtual ~EventSink() = default;
    virtual void post(Event event) = 0;
};

}  // namespace belvedere::agent
