// SPDX-License-Identifier: Apache-2.0
#include "agent/model/engine_model.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <list>
#include <mutex>
#include <utility>

#include "agent/model/template_probe.h"

namespace belvedere::agent {
namespace {

/// Sequences kept for conversations; the engine evicts their pages under its budget by itself.
constexpr size_t kMaxConversations = 64;

// Ids above those of the pieces, for counting what fills the prompt.
constexpr int64_t kSystemSource = int64_t{1} << 40;
constexpr int64_t kConversationSource = kSystemSource + 1;

const char* roleName(Role role) {
    switch (role) {
        case Role::System:
            return "system";
        case Role::User:
            return "user";
        case Role::Assistant:
            return "assistant";
        case Role::Tool:
            return "tool";
    }
    return "user";
}

using MediaPointer = std::shared_ptr<const inference::Media>;  // immutable

inference::MediaKind kindOf(const Part& part) {
    return part.kind == Part::Kind::Video ? inference::MediaKind::Video
                                          : inference::MediaKind::Image;
}

Result<inference::Media> readMedia(const Part& part) {
    if (!part.path.empty()) {
        return inference::readMedia(kindOf(part), part.path, part.frames_per_second);
    }
    constexpr const char* kName = "the image";
    const inference::RgbImage image =
        BV_TRY(inference::decodeImage(std::as_bytes(std::span(part.image_png)), kName));
    return inference::makeStill(image, kName);
}

/// Images and clips of conversations, decoded: every request of a conversation holds all of them.
/// Those unused longest go first. Any thread.
class MediaShelf {
  public:
    /// Errors: those of reading.
    Result<MediaPointer> get(const Part& part) {
        const std::string key = keyOf(part);
        const std::lock_guard lock(mutex_);
        auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const auto& entry) { return entry.first == key; });
        if (found == entries_.end()) {
            auto media = std::make_shared<const inference::Media>(BV_TRY(readMedia(part)));
            entries_.emplace_front(key, std::move(media));
            trim();
        } else {
            entries_.splice(entries_.begin(), entries_, found);
        }
        return entries_.front().second;
    }

  private:
    /// A file that changes is another one.
    static std::string keyOf(const Part& part) {
        if (part.path.empty()) {
            return part.image_png;
        }
        std::error_code error;
        const auto time = std::filesystem::last_write_time(part.path, error);
        return fmt::format("{}\n{}\n{}\n{}", part.path, time.time_since_epoch().count(),
                           part.kind == Part::Kind::Video, part.frames_per_second);
    }

    void trim() {
        constexpr size_t kMaxBytes = size_t{256} << 20;
        size_t n_bytes = 0;
        for (auto at = entries_.begin(); at != entries_.end(); ++at) {
            const auto& frames = at->second->frames;
            n_bytes += frames.size() * frames.front().rgb.size();
            if (n_bytes > kMaxBytes && at != entries_.begin()) {
                entries_.erase(at, entries_.end());
                return;
            }
        }
    }

    std::mutex mutex_;
    std::list<std::pair<std::string, MediaPointer>> entries_;  ///< the last used first
};

inference::ChatPart toChat(const Part& part) {
    const bool is_video = part.kind == Part::Kind::Video;
    return {is_video ? inference::ChatPartKind::Video : inference::ChatPartKind::Image, "", -1};
}

inference::ChatMessage toChat(const Message& message,
                              const inference::Tokenizer& tokenizer,
                              std::vector<inference::FixedPiece>& pieces) {
    inference::ChatMessage chat;
    chat.role = roleName(message.role);
    const int64_t text_source = message.role == Role::System ? kSystemSource : kConversationSource;
    for (const Part& part : message.parts) {
        if (part.kind == Part::Kind::Text && part.is_separate) {
            const auto source = static_cast<int64_t>(pieces.size());
            chat.content.push_back({inference::ChatPartKind::Text, part.text, source});
            pieces.push_back({source, part.text.size(),
                              std::make_shared<const std::vector<inference::TokenId>>(
                                  tokenizer.encode(part.text, inference::SpecialTokens::Plain))});
        } else if (part.kind == Part::Kind::Text) {
            chat.content.push_back({inference::ChatPartKind::Text, part.text, text_source});
        } else if (isMedia(part)) {
            chat.content.push_back(toChat(part));
        } else {
            const auto source = static_cast<int64_t>(pieces.size());
            chat.content.push_back({inference::ChatPartKind::Text, part.piece->text, source});
            pieces.push_back({source, part.piece->text.size(), part.piece->ids});
        }
    }
    if (!message.reasoning.empty()) {
        chat.reasoning = message.reasoning;
    }
    for (const ToolCall& call : message.tool_calls) {
        chat.tool_calls.push_back({call.id, call.name, call.arguments});
    }
    chat.tool_call_id = message.tool_call_id;
    return chat;
}

inference::PromptRequest toPrompt(const inference::Tokenizer& tokenizer,
                                  const std::vector<Message>& messages,
                                  const std::vector<ToolSpec>& tools) {
    inference::PromptRequest request;
    for (const Message& message : messages) {
        request.chat.messages.push_back(toChat(message, tokenizer, request.pieces));
    }
    // A piece without ids is tokenized with the text around it.
    std::erase_if(request.pieces,
                  [](const inference::FixedPiece& piece) { return piece.ids == nullptr; });
    for (const ToolSpec& tool : tools) {
        request.chat.tools.push_back({tool.name, tool.description, tool.parameters});
    }
    return request;
}

bool hasMedia(const std::vector<Message>& messages) {
    return std::any_of(messages.begin(), messages.end(), [](const Message& message) {
        return std::any_of(message.parts.begin(), message.parts.end(), isMedia);
    });
}

class EngineTokenCounter : public TokenCounter {
  public:
    EngineTokenCounter(std::shared_ptr<const inference::Tokenizer> tokenizer, std::string key)
        : tokenizer_(std::move(tokenizer)), key_(std::move(key)) {}

    std::vector<int32_t> encode(std::string_view text) const override {
        return tokenizer_->encode(text, inference::SpecialTokens::Plain);
    }

    std::string key() const override { return key_; }

  private:
    std::shared_ptr<const inference::Tokenizer> tokenizer_;
    std::string key_;
};

/// Passes the engine's stream on.
class ForwardingSink : public inference::GenerationSink {
  public:
    explicit ForwardingSink(ModelSink& sink) : sink_(sink) {}

    void onPrefill(size_t n_done, size_t n_total) override { sink_.onPrefill(n_done, n_total); }

    void onNotice(const std::string& text) override { sink_.onNotice(text); }

    void onText(std::string_view text, std::span<const inference::TokenId> /*ids*/) override {
        sink_.onText(text);
    }

  private:
    ModelSink& sink_;
};

ReplyEnd replyEnd(inference::FinishReason finish) {
    switch (finish) {
        case inference::FinishReason::EndOfTurn:
        case inference::FinishReason::StopString:
            return ReplyEnd::EndOfTurn;
        case inference::FinishReason::MaxTokens:
            return ReplyEnd::MaxTokens;
        case inference::FinishReason::ContextFull:
            return ReplyEnd::ContextFull;
        case inference::FinishReason::Cancelled:
            return ReplyEnd::Cancelled;
    }
    return ReplyEnd::EndOfTurn;
}

UsageUpdated usageOf(const inference::GenerationStats& stats) {
    UsageUpdated usage;
    usage.n_prompt = stats.n_prompt;
    usage.n_cached = stats.n_cached;
    usage.n_prefilled = stats.n_prefilled;
    usage.n_generated = stats.n_generated;
    usage.n_drafted = stats.n_drafted;
    usage.n_accepted = stats.n_accepted;
    usage.n_images = stats.n_images;
    usage.n_encoded = stats.n_encoded;
    usage.prefill_seconds = stats.prefill.count();
    usage.generation_seconds = stats.generation.count();
    usage.first_token_seconds = stats.first_token.count();
    return usage;
}

/// The adapter that was trained on the repository prompt form, by the name of its file.
bool isRepositoryAdapter(const inference::AdapterFile& adapter) {
    const size_t slash = adapter.path.rfind('/');
    const std::string name =
        slash == std::string::npos ? adapter.path : adapter.path.substr(slash + 1);
    return name.rfind("belvedere-repo-", 0) == 0;
}

class EngineModel : public LanguageModel {
  public:
    explicit EngineModel(std::shared_ptr<inference::Engine> engine)
        : engine_(std::move(engine)), description_(describe(*engine_)) {
        // The tokenizer lives in the engine: the counter keeps the engine alive through it.
        counter_ = makeTokenCounter({engine_, &engine_->tokenizer()}, engine_->info().path);
    }

    ~EngineModel() override {
        for (const auto& [conversation, sequence] : sequences_) {
            engine_->closeSequence(sequence);
        }
    }

    EngineModel(const EngineModel&) = delete;
    EngineModel& operator=(const EngineModel&) = delete;

    const ModelDescription& description() const override { return description_; }

    std::shared_ptr<const TokenCounter> tokenCounter() const override { return counter_; }

    Result<PromptCost> measure(const ModelRequest& request) const override;
    Result<ModelReply> generate(const ModelRequest& request,
                                ModelSink& sink,
                                std::stop_token stop) override;

  private:
    static ModelDescription describe(const inference::Engine& engine);
    /// With the images of the messages read. Errors: those of reading; Unsupported where the model
    /// takes none.
    [[nodiscard]] Result<inference::Prompt> buildPrompt(const std::vector<Message>& messages,
                                                        const std::vector<ToolSpec>& tools) const;
    [[nodiscard]] inference::SequenceId sequenceOf(const std::string& conversation) const;

    std::shared_ptr<inference::Engine> engine_;
    ModelDescription description_;
    std::shared_ptr<const TokenCounter> counter_;
    mutable MediaShelf media_;

    mutable std::mutex
        mutex_;  // guards sequences_: conversation and sequence, the longest unused first
    mutable std::deque<std::pair<std::string, inference::SequenceId>> sequences_;
};

ModelDescription EngineModel::describe(const inference::Engine& engine) {
    const inference::ModelInfo& info = engine.info();
    ModelDescription description;
    description.name = info.name;
    description.architecture = info.architecture;
    description.window_tokens = info.context_tokens;
    description.takes_images = !info.vision.empty();
    description.notices = info.notices;
    description.answers_with_citations =
        std::any_of(info.adapters.begin(), info.adapters.end(), isRepositoryAdapter);
    const TemplateFacts facts = probeTemplate(engine);
    description.tool_calls = facts.tool_calls;
    description.has_native_tools = facts.has_native_tools;
    description.starts_in_thinking = facts.starts_in_thinking;
    if (description.answers_with_citations) {
        description.notices.emplace_back(
            "A small model: about 9 of 10 citations are exact, questions in free words work about "
            "half of the time. "
            "Check what it says: every citation opens the lines it names.");
    }
    return description;
}

inference::SequenceId EngineModel::sequenceOf(const std::string& conversation) const {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(sequences_.begin(), sequences_.end(),
                                    [&](const auto& entry) { return entry.first == conversation; });
    std::pair<std::string, inference::SequenceId> entry;
    if (found != sequences_.end()) {
        entry = std::move(*found);
        sequences_.erase(found);
    } else {
        entry = {conversation, engine_->openSequence()};
        if (sequences_.size() == kMaxConversations) {
            engine_->closeSequence(sequences_.front().second);
            sequences_.pop_front();
        }
    }
    sequences_.push_back(entry);
    return entry.second;
}

Result<inference::Prompt> EngineModel::buildPrompt(const std::vector<Message>& messages,
                                                   const std::vector<ToolSpec>& tools) const {
    if (hasMedia(messages) && !description_.takes_images) {
        return fail(ErrorCode::Unsupported,
                    "{} reads text only: remove the image, or load the model with its vision tower",
                    description_.name);
    }
    inference::PromptRequest request = toPrompt(engine_->tokenizer(), messages, tools);
    for (const Message& message : messages) {
        for (const Part& part : message.parts) {
            if (isMedia(part)) {
                request.media.push_back(BV_TRY(media_.get(part)));
            }
        }
    }
    return engine_->buildPrompt(request);
}

Result<PromptCost> EngineModel::measure(const ModelRequest& request) const {
    const inference::Prompt prompt = BV_TRY(buildPrompt(request.messages, request.tools));
    PromptCost cost;
    cost.n_tokens = prompt.ids.size();
    cost.n_cached =
        engine_->cachedPrefix(sequenceOf(request.conversation), prompt.ids, prompt.media);
    for (const inference::MediaSpan& span : prompt.media) {
        cost.n_conversation += span.n_tokens;
    }
    for (const inference::PromptRange& range : prompt.ranges) {
        size_t& n_tokens = range.source == kSystemSource         ? cost.n_system
                           : range.source == kConversationSource ? cost.n_conversation
                                                                 : cost.n_sources;
        n_tokens += range.token_end - range.token_begin;
    }
    // What is left is the template's own text. Tools are what it grows by when they are listed.
    if (!request.tools.empty()) {
        const inference::Prompt bare = BV_TRY(buildPrompt(request.messages, {}));
        cost.n_tools = prompt.ids.size() - std::min(prompt.ids.size(), bare.ids.size());
    }
    cost.n_system = cost.n_tokens - cost.n_sources - cost.n_conversation - cost.n_tools;
    return cost;
}

Result<ModelReply> EngineModel::generate(const ModelRequest& request,
                                         ModelSink& sink,
                                         std::stop_token stop) {
    inference::Prompt prompt = BV_TRY(buildPrompt(request.messages, request.tools));
    inference::GenerateRequest generate;
    generate.sequence = sequenceOf(request.conversation);
    generate.prompt = std::move(prompt.ids);
    generate.media = std::move(prompt.media);
    generate.max_tokens = request.options.max_tokens;
    generate.sampling.temperature = request.options.temperature;
    generate.sampling.top_k = request.options.top_k;
    generate.sampling.top_p = request.options.top_p;
    generate.sampling.min_p = request.options.min_p;
    generate.sampling.repetition_penalty = request.options.repetition_penalty;
    generate.sampling.seed = request.options.seed;
    ForwardingSink forward(sink);
    const inference::GenerationStats stats =
        BV_TRY(engine_->generate(generate, forward, std::move(stop)));
    return ModelReply{replyEnd(stats.finish), usageOf(stats)};
}

}  // namespace

std::shared_ptr<LanguageModel> makeEngineModel(std::shared_ptr<inference::Engine> engine) {
    return std::make_shared<EngineModel>(std::move(engine));
}

std::shared_ptr<const TokenCounter> makeTokenCounter(
    std::shared_ptr<const inference::Tokenizer> tokenizer, std::string key) {
    return std::make_shared<EngineTokenCounter>(std::move(tokenizer), std::move(key));
}

}  // namespace belvedere::agent
