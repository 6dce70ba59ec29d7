// SPDX-License-Identifier: Apache-2.0
//
// The loop of one turn. A round is one call of the model; an exchange is what it said and the
// results it got back.
//
//     Building --build()--> Streaming --stream()--> no call ---------------------------------->
//     Finished
//        ^                                 '------> Deciding --decide()--> RunningTool
//        --runTool()--. |                                            ^  '-- refused: answered with
//        an error --.    |
//        '---- all calls answered
//        --------------------'<---------------------------------------'<---'
//
//     Any state: error, cancelled, round limit ------------------------------------------------>
//     Finished
//
// Invariants:
//  1. The user's message was on disk before this began (Agent::startTurn); a reply and a tool's
//  result are on disk before
//     anything follows from them.
//  2. The model's stream is over before a tool runs.
//  3. When the turn ends, each call that the model made has exactly one result.
#include "agent/turn.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "agent/context/ask_context.h"
#include "agent/context/citations.h"
#include "agent/context/prompt.h"
#include "agent/context/prompt_texts.h"
#include "agent/event_log.h"
#include "kernels/base/log.h"

namespace belvedere::agent {

namespace {

constexpr size_t kMaxEqualCalls = 3;  // the third is asked about

std::string listNames(const std::vector<ToolSpec>& tools) {
    std::string names;
    for (const ToolSpec& tool : tools) {
        names += (names.empty() ? "" : ", ") + tool.name;
    }
    return names.empty() ? "none" : names;
}

/// "`a`, `b`"
std::string listCode(const std::vector<std::string>& names) {
    std::string list;
    for (const std::string& name : names) {
        list += (list.empty() ? "`" : ", `") + name + "`";
    }
    return list;
}

/// A glob that matches exactly this text.
std::string literalPattern(const std::string& text) {
    std::string pattern;
    for (const char c : text) {
        if (c == '*' || c == '?' || c == '\\') {
            pattern += '\\';
        }
        pattern += c;
    }
    return pattern;
}

}  // namespace

Turn::Turn(TurnInput input, TurnServices services, std::stop_token stop)
    : input_(std::move(input)), services_(services), stop_(std::move(stop)) {}

TurnFinished Turn::run() {
    post(TurnStarted{input_.request.session_id, input_.request.text});
    try {
        for (State state = State::Building; state != State::Finished;) {
            state = step(state);
        }
    } catch (const std::exception& exception) {
        BV_LOG(LogLevel::Error, "agent", "turn={} exception={}", input_.id, exception.what());
        fail({ErrorCode::Internal, fmt::format("unexpected exception: {}", exception.what())});
    }
    if (store_error_) {
        fail(*store_error_);  // met in the last state
    }
    cancelOpenCalls();
    const Result<void> recorded = record("turn_finished", turnFinishedToJson(finished_));
    if (!recorded.has_value() && finished_.end != TurnEnd::Failed) {
        fail(recorded.error());
    }
    return finished_;
}

Turn::State Turn::step(State state) {
    if (stop_.stop_requested()) {
        return fail({ErrorCode::Cancelled, "cancelled"});
    }
    if (store_error_) {
        return fail(*store_error_);
    }
    switch (state) {
        case State::Building:
            return build();
        case State::Streaming:
            return stream();
        case State::Deciding:
            return decide();
        case State::RunningTool:
            return runTool();
        case State::Finished:
            break;
    }
    return State::Finished;
}

Turn::State Turn::build() {
    if (n_rounds_ == input_.config.max_rounds) {
        notice(fmt::format("Stopped after {} rounds, the limit for one turn.", n_rounds_));
        finished_.end = TurnEnd::RoundLimit;
        return State::Finished;
    }
    ++n_rounds_;
    parser_options_ = {};
    parser_options_.starts_in_thinking = input_.model->description().starts_in_thinking;
    parser_options_.has_minimax_thinking =
        input_.model->description().tool_calls == ToolCallFormat::MinimaxM3;
    const State next = hasSources() ? buildAsk() : buildChat();
    const size_t window = input_.model->description().window_tokens;
    request_.options = input_.config.generation;
    request_.options.max_tokens =
        std::min(request_.options.max_tokens, window - std::min(window, n_prompt_tokens_));
    return next;
}

Turn::State Turn::buildAsk() {
    const AskRequest ask{*input_.model,
                         *input_.source,
                         input_.request.session_id,
                         input_.request.text,
                         input_.request.attachments,
                         input_.config.source_budget_tokens,
                         input_.config.answer_reserve_tokens};
    Result<AskPrompt> prompt = prepareAsk(ask, services_.conversation.ask(), stop_);
    if (!prompt.has_value()) {
        return fail(prompt.error());
    }
    request_ = std::move(prompt->request);
    n_prompt_tokens_ = prompt->cost.n_tokens;
    if (prompt->replaces_old) {
        notice(
            "This question needs other files than the ones before it: it starts a new context, and "
            "earlier questions are not "
            "part of it.");
    }
    if (prompt->context.pieces.empty()) {
        notice("No source file is in the context: nothing in the attached folder could be used.");
    }
    postContext(prompt->cost, &prompt->context, prompt->replaces_old, prompt->is_new);
    services_.conversation.useContext(std::move(prompt->context));
    if (prompt->asks_only_absent && input_.request.attachments.empty()) {
        return answerAbsent(prompt->absent_names);
    }
    if (!prompt->absent_names.empty()) {
        notice(fmt::format("No file contains {}.", listCode(prompt->absent_names)));
    }
    return State::Streaming;
}

/// What a search can answer for certain is not left to a model, which may take one name for
/// another.
Turn::State Turn::answerAbsent(const std::vector<std::string>& names) {
    const size_t n_files = services_.conversation.ask().n_files_total;
    notice("Answered by searching all files: the model was not asked.");
    const std::string where =
        n_files == 1 ? "the one file there is" : fmt::format("any of the {} files", n_files);
    Message message = textMessage(
        Role::Assistant, fmt::format("I could not find {} in {}.", listCode(names), where));
    post(TextDelta{plainText(message)});
    const Result<void> recorded = record("assistant_message", assistantToJson(message));
    if (!recorded.has_value()) {
        return fail(recorded.error());
    }
    services_.conversation.addAssistant(std::move(message));
    return State::Finished;
}

Turn::State Turn::buildChat() {
    const bool is_work = input_.request.mode == TurnMode::Work;
    const ModelDescription& description = input_.model->description();
    const std::vector<ToolSpec> tools = is_work ? toolSpecs() : std::vector<ToolSpec>{};
    std::string system = input_.config.system_prompt;
    if (is_work && system.empty()) {
        system = kWorkPrompt;
    }
    if (is_work && input_.source != nullptr) {
        system += fmt::format("\n\nThe user's folder is {}.", input_.source->root());
    }
    request_ = {};
    request_.conversation = input_.request.session_id + (is_work ? "/work" : "/chat");
    const bool has_native_tools =
        description.has_native_tools && description.tool_calls != ToolCallFormat::None;
    if (is_work && !has_native_tools) {
        system = withToolDescriptions(system, tools);
    }
    const std::vector<Message>& messages = services_.conversation.messages();
    request_.messages =
        chatMessages(system, has_native_tools ? messages : withToolsAsText(messages));
    if (is_work) {
        request_.tools = has_native_tools ? tools : std::vector<ToolSpec>{};
        parser_options_.format = has_native_tools ? description.tool_calls : ToolCallFormat::Hermes;
        parser_options_.tools = tools;
    }
    const Result<PromptCost> cost = input_.model->measure(request_);
    if (!cost.has_value()) {
        return fail(cost.error());
    }
    n_prompt_tokens_ = cost->n_tokens;
    if (cost->n_tokens >= description.window_tokens) {
        return fail(
            {ErrorCode::InvalidArgument,
             fmt::format(
                 "the conversation has {} tokens, the window of {} holds {}: start a new session",
                 cost->n_tokens, description.name, description.window_tokens)});
    }
    postContext(*cost, nullptr, false, false);
    return State::Streaming;
}

Turn::State Turn::stream() {
    TurnStream reply(
        parser_options_, [this](EventPayload payload) { post(std::move(payload)); },
        [this](std::string text) { notice(std::move(text)); },
        [this](const std::string& text) {
            services_.store.saveDraft(input_.request.session_id, input_.id, text);
        });
    const Result<ModelReply> result = input_.model->generate(request_, reply, stop_);
    const bool is_whole = result.has_value() && result->end == ReplyEnd::EndOfTurn;
    reply.finish(is_whole ? StreamEnd::Complete : StreamEnd::Cut);
    // What was said stays in the conversation, however it ended.
    recordReply(reply, reply.takeCalls(), is_whole);
    if (!result.has_value()) {
        return fail(result.error());
    }
    if (hasSources() && !reply.text().empty()) {
        checkCitations(reply.text());
    }
    return afterReply(*result);
}

void Turn::recordReply(const TurnStream& reply, std::vector<ParsedCall> calls, bool is_complete) {
    Message message = textMessage(Role::Assistant, reply.text());
    message.reasoning = reply.reasoning();
    message.is_complete = is_complete;
    for (ParsedCall& parsed : calls) {
        parsed.call.id = fmt::format("call_{}_{}", input_.id, ++n_calls_);
        if (parsed.call.name.empty()) {
            parsed.call.name = "malformed_call";
        }
        message.tool_calls.push_back(parsed.call);
        pending_.push_back({std::move(parsed.call), std::move(parsed.reason)});
    }
    if (reply.text().empty() && reply.reasoning().empty() && message.tool_calls.empty()) {
        return;  // nothing was said
    }
    const Result<void> recorded = record("assistant_message", assistantToJson(message));
    if (!recorded.has_value()) {
        store_error_ = recorded.error();
    }
    services_.conversation.addAssistant(std::move(message));
}

Turn::State Turn::afterReply(const ModelReply& reply) {
    post(reply.usage);
    const Result<void> recorded = record("usage", usageToJson(reply.usage));
    if (!recorded.has_value()) {
        return fail(recorded.error());
    }
    switch (reply.end) {
        case ReplyEnd::Cancelled:
            return fail({ErrorCode::Cancelled, "cancelled"});
        case ReplyEnd::MaxTokens:
            notice(fmt::format("The answer was cut at {} tokens, the limit for one answer.",
                               reply.usage.n_generated));
            break;
        case ReplyEnd::ContextFull:
            notice(fmt::format("The answer was cut: the window of {} tokens is full.",
                               input_.model->description().window_tokens));
            break;
        case ReplyEnd::EndOfTurn:
            break;
    }
    return pending_.empty() ? State::Finished : State::Deciding;
}

void Turn::checkCitations(const std::string& answer) {
    CitationsChecked checked;
    checked.citations = findCitations(answer, SourceMap(services_.conversation.ask().pieces));
    const Result<void> recorded = record("citations", citationsToJson(checked));
    if (!recorded.has_value()) {
        store_error_ = recorded.error();
    }
    post(std::move(checked));
}

/// May the first pending call run?
Turn::State Turn::decide() {
    if (pending_.empty()) {
        return State::Building;
    }
    const PendingCall& pending = pending_.front();
    if (!pending.malformed.empty()) {
        return refuseCall("the call could not be read: " + pending.malformed);
    }
    Tool* tool = findTool(pending.call.name);
    if (tool == nullptr) {
        return refuseCall(fmt::format("there is no tool \"{}\"; the tools are: {}",
                                      pending.call.name, listNames(toolSpecs())));
    }
    const Json& arguments = pending.call.arguments;
    const bool is_loop = isLoop(pending.call);
    PermissionPolicy policy = input_.config.permissions;
    policy.rules.insert(policy.rules.end(), services_.session_rules.begin(),
                        services_.session_rules.end());
    const PermissionDecision decision =
        decidePermission(policy, pending.call.name, tool->subject(arguments),
                         tool->defaultVerdict(arguments), tool->alwaysAsks());
    if (decision.verdict == Verdict::Deny) {
        return refuseCall(decision.reason);
    }
    if (is_loop) {
        notice(fmt::format(
            "The model makes the same call of {} for the third time, and nothing has changed.",
            pending.call.name));
        // A denied loop would only go on.
        return ask(*tool, "the same call for the third time: it looks like a loop",
                   State::Finished);
    }
    if (decision.verdict == Verdict::Ask) {
        return ask(*tool, decision.reason, State::Deciding);
    }
    return State::RunningTool;
}

/// Counts equal calls; true at the third.
bool Turn::isLoop(const ToolCall& call) {
    size_t& n_times =
        repeats_[call.name + call.arguments.dump(-1, ' ', false, Json::error_handler_t::replace)];
    if (++n_times < kMaxEqualCalls) {
        return false;
    }
    n_times = 0;  // where the user lets it run, it starts anew
    return true;
}

Turn::State Turn::ask(Tool& tool, std::string reason, State after_denial) {
    const ToolCall& call = pending_.front().call;
    PermissionQuestion question;
    question.call_id = call.id;
    question.tool = call.name;
    question.kind = tool.kind();
    question.title = tool.title(call.arguments);
    question.subject = tool.subject(call.arguments);
    question.arguments = call.arguments;
    question.reason = std::move(reason);
    question.preview = tool.preview(call.arguments);

    services_.desk.open(call.id);
    post(PermissionRequested{question});
    const std::optional<PermissionAnswer> answer = services_.desk.wait(call.id, stop_);
    const bool is_allowed = answer && *answer != PermissionAnswer::Deny;
    post(PermissionResolved{call.id, is_allowed});
    const Result<void> recorded =
        record("permission", {{"question", questionToJson(question)}, {"is_allowed", is_allowed}});
    if (!recorded.has_value()) {
        return fail(recorded.error());
    }
    if (!answer) {
        return fail({ErrorCode::Cancelled, "cancelled"});
    }
    if (*answer == PermissionAnswer::AllowForSession) {
        grantForSession(tool, question.subject);
    }
    if (is_allowed) {
        return State::RunningTool;
    }
    const State next = refuseCall("the user denied this call");
    return next == State::Finished ? next : after_denial;
}

/// Commands are allowed one by one; a tool that reads or writes files is allowed as a whole.
void Turn::grantForSession(const Tool& tool, const std::string& subject) {
    const bool is_narrow = tool.kind() == ToolKind::Execute || tool.kind() == ToolKind::Network;
    services_.session_rules.push_back(
        {Verdict::Allow, literalPattern(tool.name()), is_narrow ? literalPattern(subject) : ""});
}

Turn::State Turn::runTool() {
    const ToolCall call = pending_.front().call;
    Tool* tool = findTool(call.name);
    ToolCallStarted started{call, tool->title(call.arguments), tool->kind()};
    const Result<void> recorded = record("tool_call", toolCallToJson(started));
    if (!recorded.has_value()) {
        return fail(recorded.error());
    }
    post(std::move(started));
    ToolContext context;
    context.session_id = input_.request.session_id;
    context.call_id = call.id;
    context.stop = stop_;
    context.on_output = [&](std::string_view text) {
        post(ToolCallOutput{call.id, std::string(text)});
    };
    context.set_plan = [this](const Plan& plan) { setPlan(plan); };
    Result<ToolOutput> output = tool->run(call.arguments, context);
    if (!output.has_value()) {
        const bool is_cancelled = output.error().code == ErrorCode::Cancelled;
        return answerCall({call.id, is_cancelled ? "cancelled" : "error: " + output.error().message,
                           Json::object(), true});
    }
    if (tool->kind() != ToolKind::Read && !output->is_error) {
        repeats_.clear();  // something may have changed: looking again is no loop
    }
    return answerCall({call.id, std::move(output->text), std::move(output->data), output->is_error},
                      output->image_png);
}

Turn::State Turn::answerCall(ToolCallFinished result, const std::string& image_png) {
    Message message = toolResultMessage(result);
    if (!image_png.empty() && input_.model->description().takes_images) {
        Part part;
        part.kind = Part::Kind::Image;
        part.image_png = image_png;
        message.parts.push_back(std::move(part));
    }
    services_.conversation.addToolResult(std::move(message));
    pending_.pop_front();
    const Result<void> recorded = record("tool_result", toolResultToJson(result));
    post(std::move(result));
    if (!recorded.has_value()) {
        return fail(recorded.error());
    }
    return State::Deciding;
}

/// An answer without running: the model sees why.
Turn::State Turn::refuseCall(const std::string& reason) {
    const ToolCall call = pending_.front().call;
    const Tool* tool = findTool(call.name);
    ToolCallStarted started{call, tool != nullptr ? tool->title(call.arguments) : call.name,
                            ToolKind::Read};
    if (tool != nullptr) {
        started.kind = tool->kind();
    }
    const Result<void> recorded = record("tool_call", toolCallToJson(started));
    if (!recorded.has_value()) {
        return fail(recorded.error());
    }
    post(std::move(started));
    return answerCall({call.id, "error: " + reason, Json::object(), true});
}

/// Invariant 3.
void Turn::cancelOpenCalls() {
    while (!pending_.empty()) {
        answerCall({pending_.front().call.id, "cancelled", Json::object(), true});
    }
}

void Turn::setPlan(const Plan& plan) {
    const Result<void> recorded = record("plan", planToJson(plan));
    if (!recorded.has_value()) {
        store_error_ = recorded.error();
    }
    services_.conversation.setPlan(plan);
    post(PlanChanged{plan});
}

Turn::State Turn::fail(Error error) {
    if (error.code == ErrorCode::Cancelled) {
        finished_ = {TurnEnd::Cancelled, {}};
    } else if (finished_.end != TurnEnd::Cancelled) {
        finished_ = {TurnEnd::Failed, std::move(error)};
    }
    return State::Finished;
}

void Turn::post(EventPayload payload) {
    services_.sink.post({input_.id, std::move(payload)});
}

void Turn::notice(std::string text) {
    const Result<void> recorded = record("notice", {{"text", text}});
    if (!recorded.has_value()) {
        store_error_ = recorded.error();
    }
    post(Notice{std::move(text)});
}

Result<void> Turn::record(const char* type, const Json& payload) {
    BV_TRY(services_.store.append(input_.request.session_id, input_.id, type, payload));
    return {};
}

void Turn::postContext(const PromptCost& cost,
                       const AskContext* ask,
                       bool replaces_old,
                       bool with_pieces) {
    ContextChanged context;
    context.categories = {{"system", cost.n_system},
                          {"sources", cost.n_sources},
                          {"conversation", cost.n_conversation},
                          {"tools", cost.n_tools}};
    context.n_tokens = cost.n_tokens;
    context.window_tokens = input_.model->description().window_tokens;
    context.is_new_context = replaces_old;
    if (ask != nullptr) {
        context.pieces = ask->pieces;
        context.n_files = ask->n_files;
        context.n_files_total = ask->n_files_total;
        context.n_source_tokens = ask->n_source_tokens;
        context.n_source_tokens_total = ask->n_source_tokens_total;
    }
    const Result<void> recorded = record("context", contextToJson(context, with_pieces));
    if (!recorded.has_value()) {
        store_error_ = recorded.error();
    }
    post(std::move(context));
}

std::vector<ToolSpec> Turn::toolSpecs() {
    std::vector<ToolSpec> specs;
    if (input_.tools != nullptr) {
        for (const std::unique_ptr<Tool>& tool : input_.tools->all()) {
            specs.push_back({tool->name(), tool->description(), tool->parameters()});
        }
    }
    specs.push_back({update_plan_.name(), update_plan_.description(), update_plan_.parameters()});
    return specs;
}

Tool* Turn::findTool(const std::string& name) {
    Tool* tool = input_.tools != nullptr ? input_.tools->find(name) : nullptr;
    return tool == nullptr && name == update_plan_.name() ? &update_plan_ : tool;
}

}  // namespace belvedere::agent
