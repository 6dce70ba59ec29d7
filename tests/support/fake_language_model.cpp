// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_language_model.h"

#include <utility>

namespace belvedere::testing {

namespace {

class ByteCounter : public agent::TokenCounter {
  public:
    [[nodiscard]] std::vector<int32_t> encode(std::string_view text) const override {
        return {text.begin(), text.end()};
    }

    [[nodiscard]] std::string key() const override { return "bytes"; }
};

size_t textBytes(const agent::Message& message) {
    size_t n = message.reasoning.size();
    for (const agent::Part& part : message.parts) {
        n += part.kind == agent::Part::Kind::Piece ? part.piece->text.size() : part.text.size();
    }
    return n;
}

}  // namespace

FakeLanguageModel::FakeLanguageModel(agent::ModelDescription description)
    : description_(std::move(description)) {}

void FakeLanguageModel::add(FakeReply reply) {
    const std::lock_guard lock(mutex_);
    replies_.push_back(std::move(reply));
}

void FakeLanguageModel::release() {
    {
        const std::lock_guard lock(mutex_);
        is_released_ = true;
    }
    changed_.notify_all();
}

std::vector<agent::ModelRequest> FakeLanguageModel::requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
}

std::shared_ptr<const agent::TokenCounter> FakeLanguageModel::tokenCounter() const {
    return std::make_shared<ByteCounter>();
}

Result<agent::PromptCost> FakeLanguageModel::measure(const agent::ModelRequest& request) const {
    agent::PromptCost cost;
    for (const agent::Message& message : request.messages) {
        for (const agent::Part& part : message.parts) {
            if (part.kind == agent::Part::Kind::Piece) {
                cost.n_sources += part.piece->text.size();
            }
        }
        const bool is_system = message.role == agent::Role::System;
        (is_system ? cost.n_system : cost.n_conversation) += textBytes(message);
    }
    cost.n_conversation -= cost.n_sources;
    cost.n_tokens = cost.n_system + cost.n_sources + cost.n_conversation;
    return cost;
}

Result<agent::ModelReply> FakeLanguageModel::generate(const agent::ModelRequest& request,
                                                      agent::ModelSink& sink,
                                                      std::stop_token stop) {
    const agent::PromptCost cost = BV_TRY(measure(request));
    FakeReply script;
    {
        const std::lock_guard lock(mutex_);
        requests_.push_back(request);
        if (replies_.empty()) {
            return fail(ErrorCode::Internal, "the script has no reply left");
        }
        script = std::move(replies_.front());
        replies_.pop_front();
    }
    agent::ModelReply reply;
    reply.end = script.end;
    reply.usage.n_prompt = cost.n_tokens;
    reply.usage.n_prefilled = cost.n_tokens;
    sink.onPrefill(cost.n_tokens, cost.n_tokens);
    const auto pause = [&](std::chrono::milliseconds time) {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, stop, time, [] { return false; });
    };
    if (!script.notice.empty()) {
        sink.onNotice(script.notice);
    }
    for (const std::string& chunk : script.chunks) {
        if (script.chunk_pause.count() > 0) {
            pause(script.chunk_pause);
        }
        if (stop.stop_requested()) {
            reply.end = agent::ReplyEnd::Cancelled;
            return reply;
        }
        sink.onText(chunk);
        ++reply.usage.n_generated;
    }
    if (script.waits) {
        std::unique_lock lock(mutex_);
        if (!changed_.wait(lock, stop, [this] { return is_released_; })) {
            reply.end = agent::ReplyEnd::Cancelled;
            return reply;
        }
    }
    if (script.error) {
        return tl::unexpected(*script.error);
    }
    return reply;
}

}  // namespace belvedere::testing
