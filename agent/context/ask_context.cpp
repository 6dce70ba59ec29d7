// SPDX-License-Identifier: Apache-2.0
#include "agent/context/ask_context.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "agent/context/prompt.h"

namespace belvedere::agent {

namespace {

constexpr int kMaxAttempts = 4;      // the estimate of the budget is off by template text at most
constexpr size_t kSlackTokens = 16;  // added to what an attempt was too long by

using Piece = std::shared_ptr<const SourcePiece>;

bool isSame(const SourcePiece& a, const SourcePiece& b) {
    return a.path == b.path && a.first_line == b.first_line && a.last_line == b.last_line &&
           a.text == b.text;
}

/// The file may have changed since, so the text is compared too.
bool holds(const AskContext& context, const std::vector<Piece>& wanted) {
    return std::all_of(wanted.begin(), wanted.end(), [&](const Piece& piece) {
        return std::any_of(context.pieces.begin(), context.pieces.end(), [&](const Piece& present) {
            return present == piece || isSame(*present, *piece);
        });
    });
}

/// Pieces from the log have no ids, and those of another model's tokenizer are of no use.
void setIds(AskContext& context, const TokenCounter& counter, bool trust_ids) {
    const std::string key = counter.key();
    if (context.tokenizer_key == key) {
        return;
    }
    for (Piece& piece : context.pieces) {
        if (piece->ids == nullptr || !trust_ids) {
            auto copy = std::make_shared<SourcePiece>(*piece);
            copy->ids = std::make_shared<const std::vector<int32_t>>(counter.encode(piece->text));
            piece = std::move(copy);
        }
    }
    context.tokenizer_key = key;
}

AskContext contextFrom(ContextChoice choice, uint64_t number) {
    AskContext context;
    context.number = number;
    context.pieces = std::move(choice.pieces);
    context.n_files = choice.n_files;
    context.n_files_total = choice.n_files_total;
    context.n_source_tokens = choice.n_tokens;
    context.n_source_tokens_total = choice.n_tokens_total;
    return context;
}

class AskPlanner {
  public:
    AskPlanner(const AskRequest& ask, const AskContext& current, std::stop_token stop)
        : ask_(ask),
          current_(current),
          stop_(std::move(stop)),
          window_(ask.model.description().window_tokens),
          reserve_(std::min(ask.answer_reserve_tokens, window_ / 4)) {}

    Result<AskPrompt> plan() {
        const size_t limit = BV_TRY(sourceLimit());
        size_t budget = limit;
        ContextChoice choice = BV_TRY(choose(budget));
        if (!choice.is_whole_repository && ask_.source_budget_tokens < limit) {
            budget = ask_.source_budget_tokens;
            choice = BV_TRY(choose(budget));
        }
        const std::vector<std::string> absent_names = choice.absent_names;
        const bool asks_only_absent = choice.asks_only_absent;
        AskPrompt prompt = BV_TRY(planFrom(std::move(choice), budget));
        prompt.absent_names = absent_names;
        prompt.asks_only_absent = asks_only_absent;
        return prompt;
    }

  private:
    Result<ContextChoice> choose(size_t budget) {
        return ask_.source.choose(ask_.question, budget, stop_);
    }

    [[nodiscard]] bool fits(const AskPrompt& prompt) const {
        return prompt.cost.n_tokens + reserve_ <= window_;
    }

    /// Tokens left for sources beside a lone question and the room for its answer.
    Result<size_t> sourceLimit() {
        const AskPrompt bare = BV_TRY(measured({}, true));
        if (bare.cost.n_tokens + reserve_ >= window_) {
            return fail(ErrorCode::InvalidArgument,
                        "the question has {} tokens and its answer needs {}, the window of {} "
                        "holds {}: ask a shorter question",
                        bare.cost.n_tokens, reserve_, ask_.model.description().name, window_);
        }
        return window_ - reserve_ - bare.cost.n_tokens;
    }

    Result<AskPrompt> measured(AskContext context, bool is_new) {
        AskPrompt prompt;
        setIds(context, *ask_.model.tokenCounter(), is_new);
        prompt.request.conversation = fmt::format("{}/ask/{}", ask_.session_id, context.number);
        prompt.request.messages =
            askMessages(context, userMessage(ask_.question, ask_.attachments));
        prompt.cost = BV_TRY(ask_.model.measure(prompt.request));
        prompt.is_new = is_new;
        prompt.replaces_old = is_new && current_.number > 0;
        prompt.context = std::move(context);
        return prompt;
    }

    Result<AskPrompt> planFrom(ContextChoice choice, size_t budget) {
        if (current_.number > 0 && (choice.asks_only_absent || holds(current_, choice.best))) {
            AskPrompt prompt = BV_TRY(measured(current_, false));
            if (fits(prompt)) {
                return prompt;
            }
        }
        return planNew(std::move(choice), budget);
    }

    Result<AskPrompt> planNew(ContextChoice choice, size_t budget) {
        for (int attempt = 0;; ++attempt) {
            AskPrompt prompt =
                BV_TRY(measured(contextFrom(std::move(choice), current_.number + 1), true));
            if (fits(prompt)) {
                return prompt;
            }
            const size_t excess = prompt.cost.n_tokens + reserve_ - window_ + kSlackTokens;
            if (attempt == kMaxAttempts || excess >= budget) {
                return fail(ErrorCode::InvalidArgument,
                            "the prompt has {} tokens and the answer needs {}, the window of {} "
                            "holds {}: lower the budget",
                            prompt.cost.n_tokens, reserve_, ask_.model.description().name, window_);
            }
            budget -= excess;
            choice = BV_TRY(choose(budget));
        }
    }

    const AskRequest& ask_;
    const AskContext& current_;
    std::stop_token stop_;
    size_t window_;
    size_t reserve_;
};

}  // namespace

Result<AskPrompt> prepareAsk(const AskRequest& ask,
                             const AskContext& current,
                             std::stop_token stop) {
    return AskPlanner(ask, current, std::move(stop)).plan();
}

}  // namespace belvedere::agent
