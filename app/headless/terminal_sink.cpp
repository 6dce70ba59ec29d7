// SPDX-License-Identifier: Apache-2.0
#include "app/headless/terminal_sink.h"

#include <cstdio>
#include <map>
#include <utility>
#include <variant>

#include <fmt/ranges.h>
#include <unistd.h>

#include "app/headless/event_json.h"

namespace belvedere::app {
namespace {

constexpr size_t kMaxListedFiles = 20;

std::string rangesText(const std::vector<std::pair<size_t, size_t>>& ranges) {
    std::string text;
    for (const auto& [first, last] : ranges) {
        text += fmt::format("{}{}-{}", text.empty() ? "" : ", ", first, last);
    }
    return text;
}

/// Lines of each file in the context, neighbouring pieces joined.
std::map<std::string, std::vector<std::pair<size_t, size_t>>> rangesByFile(
    const agent::ContextChanged& context) {
    std::map<std::string, std::vector<std::pair<size_t, size_t>>> files;
    for (const auto& piece : context.pieces) {
        auto& ranges = files[piece->path];
        if (!ranges.empty() && ranges.back().second + 1 == piece->first_line) {
            ranges.back().second = piece->last_line;
        } else {
            ranges.emplace_back(piece->first_line, piece->last_line);
        }
    }
    return files;
}

}  // namespace

TerminalSink::TerminalSink(OutputStyle style)
    : style_(style), stderr_is_terminal_(isatty(STDERR_FILENO) == 1) {}

void TerminalSink::post(agent::Event event) {
    {
        const std::lock_guard lock(mutex_);
        queue_.push_back(std::move(event));
    }
    arrived_.notify_one();
}

std::optional<agent::Event> TerminalSink::next(std::stop_token stop) {
    std::unique_lock lock(mutex_);
    if (!arrived_.wait(lock, std::move(stop), [this] { return !queue_.empty(); })) {
        return std::nullopt;
    }
    agent::Event event = std::move(queue_.front());
    queue_.pop_front();
    return event;
}

Result<void> TerminalSink::showTurn(agent::Agent& agent,
                                    agent::TurnId turn,
                                    const std::string& label,
                                    std::stop_token stop) {
    bool is_cancelled = false;
    while (true) {
        // Once the turn is cancelled its last event still has to arrive: wait for it without the
        // stop token.
        const std::optional<agent::Event> event = next(is_cancelled ? std::stop_token() : stop);
        if (!event) {
            agent.cancel(turn);
            is_cancelled = true;
            continue;
        }
        if (event->turn != turn) {
            continue;
        }
        if (style_ == OutputStyle::Json) {
            agent::Json json = eventToJson(*event);
            if (!label.empty()) {
                json["id"] = label;
            }
            fmt::print("{}\n", json.dump(-1, ' ', false, agent::Json::error_handler_t::replace));
            std::fflush(stdout);
        }
        if (BV_TRY(show(agent, *event))) {
            return {};
        }
    }
}

Result<bool> TerminalSink::show(agent::Agent& agent, const agent::Event& event) {
    if (const auto* finished = std::get_if<agent::TurnFinished>(&event.payload)) {
        clearProgress();
        if (style_ == OutputStyle::Text && std::exchange(line_is_open_, false)) {
            fmt::print("\n");
        }
        if (finished->end == agent::TurnEnd::Failed) {
            return tl::unexpected<Error>(finished->error);
        }
        if (finished->end == agent::TurnEnd::Cancelled) {
            return fail(ErrorCode::Cancelled, "cancelled");
        }
        if (style_ == OutputStyle::Text) {
            showSources();
        }
        return true;
    }
    if (const auto* asked = std::get_if<agent::PermissionRequested>(&event.payload)) {
        askPermission(agent, asked->question);
    } else if (style_ == OutputStyle::Text) {
        showText(agent, event);
    }
    return false;
}

void TerminalSink::showText(agent::Agent& /*agent*/, const agent::Event& event) {
    if (const auto* text = std::get_if<agent::TextDelta>(&event.payload)) {
        clearProgress();
        fmt::print("{}", text->text);
        std::fflush(stdout);
        line_is_open_ = !text->text.empty() && text->text.back() != '\n';
    } else if (const auto* prefill = std::get_if<agent::PrefillProgress>(&event.payload)) {
        showProgress(fmt::format("reading {} of {} tokens", prefill->n_done, prefill->n_total));
    } else if (const auto* call = std::get_if<agent::ToolCallStarted>(&event.payload)) {
        clearProgress();
        fmt::print(stderr, "{}> {}\n", std::exchange(line_is_open_, false) ? "\n" : "",
                   call->title);
    } else if (const auto* output = std::get_if<agent::ToolCallOutput>(&event.payload)) {
        fmt::print(stderr, "{}", output->text);
    } else if (const auto* result = std::get_if<agent::ToolCallFinished>(&event.payload)) {
        if (result->is_error) {
            fmt::print(stderr, "  failed: {}\n", result->text);
        }
    } else if (const auto* plan = std::get_if<agent::PlanChanged>(&event.payload)) {
        for (const agent::PlanStep& step : plan->plan.steps) {
            fmt::print(stderr, "  [{}] {}\n", agent::stepStatusName(step.status), step.title);
        }
    } else if (const auto* notice = std::get_if<agent::Notice>(&event.payload)) {
        clearProgress();
        fmt::print(stderr, "note: {}\n", notice->text);
    } else if (const auto* context = std::get_if<agent::ContextChanged>(&event.payload)) {
        context_ = *context;
    } else if (const auto* citations = std::get_if<agent::CitationsChecked>(&event.payload)) {
        citations_ = *citations;
    } else if (const auto* usage = std::get_if<agent::UsageUpdated>(&event.payload)) {
        usage_ = *usage;
    }
}

void TerminalSink::askPermission(agent::Agent& agent, const agent::PermissionQuestion& question) {
    if (isatty(STDIN_FILENO) != 1 || style_ == OutputStyle::Json) {
        fmt::print(stderr, "denied, as nobody can be asked here: {}\n", question.title);
        agent.answerPermission(question.call_id, agent::PermissionAnswer::Deny);
        return;
    }
    clearProgress();
    fmt::print(stderr, "{}{}\n{}\nallow? [y] once  [s] for this session  [n] no: ",
               std::exchange(line_is_open_, false) ? "\n" : "", question.title, question.preview);
    std::fflush(stderr);
    const int answer = std::getchar();
    for (int rest = answer; rest != '\n' && rest != EOF;) {
        rest = std::getchar();
    }
    agent.answerPermission(question.call_id, answer == 'y' ? agent::PermissionAnswer::AllowOnce
                                             : answer == 's'
                                                 ? agent::PermissionAnswer::AllowForSession
                                                 : agent::PermissionAnswer::Deny);
}

void TerminalSink::showSources() {
    for (const agent::Citation& citation : std::exchange(citations_, {}).citations) {
        if (!citation.is_in_context) {
            fmt::print("[!] {}:{}-{} was not in the context: do not rely on this citation\n",
                       citation.path, citation.first_line, citation.last_line);
        }
    }
    const agent::ContextChanged context = std::exchange(context_, {});
    if (!context.pieces.empty()) {
        fmt::print("\nIn the context: {} of {} files, {} of {} tokens\n", context.n_files,
                   context.n_files_total, context.n_source_tokens, context.n_source_tokens_total);
        size_t n_listed = 0;
        const auto files = rangesByFile(context);
        for (const auto& [path, ranges] : files) {
            if (n_listed++ == kMaxListedFiles) {
                fmt::print("  and {} more files (--json lists all)\n",
                           files.size() - kMaxListedFiles);
                break;
            }
            fmt::print("  {}:{}\n", path, rangesText(ranges));
        }
    }
    const agent::UsageUpdated usage = std::exchange(usage_, {});
    if (stderr_is_terminal_ && usage.n_generated > 0) {
        fmt::print(
            stderr,
            "{} tokens in {:.1f} s ({:.0f}/s, {} of {} drafted accepted); prompt {} tokens, {} "
            "from the cache; first token after {:.2f} s\n",
            usage.n_generated, usage.generation_seconds,
            static_cast<double>(usage.n_generated) / std::max(usage.generation_seconds, 1e-6),
            usage.n_accepted, usage.n_drafted, usage.n_prompt, usage.n_cached,
            usage.first_token_seconds);
        if (usage.n_images > 0) {
            fmt::print(stderr, "{} new images in the prompt, {} of them encoded, the rest known\n",
                       usage.n_images, usage.n_encoded);
        }
    }
}

void TerminalSink::showProgress(const std::string& text) {
    if (stderr_is_terminal_ && style_ == OutputStyle::Text) {
        fmt::print(stderr, "\r\033[K{}", text);
        std::fflush(stderr);
        progress_is_shown_ = true;
    }
}

void TerminalSink::clearProgress() {
    if (std::exchange(progress_is_shown_, false)) {
        fmt::print(stderr, "\r\033[K");
        std::fflush(stderr);
    }
}

}  // namespace belvedere::app
