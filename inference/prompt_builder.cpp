// SPDX-License-Identifier: Apache-2.0
#include "inference/prompt_builder.h"

#include <algorithm>
#include <unordered_map>

#include "inference/chat/conversation.h"

namespace belvedere::inference {
namespace {

std::string_view tokenText(const Tokenizer& tokenizer, std::optional<TokenId> id) {
    return id ? tokenizer.bytesOf(*id) : std::string_view();
}

/// Builds the prompt front to back.
class PromptWriter {
  public:
    PromptWriter(const Tokenizer& tokenizer, const RenderedText& rendered)
        : tokenizer_(tokenizer), rendered_(rendered) {}

    /// Spans [begin, end) of the rendered text, tokenized together.
    void writeText(size_t begin, size_t end);
    void writePiece(const FixedPiece& piece);

    [[nodiscard]] Prompt take() { return std::move(prompt_); }

  private:
    void addRanges(size_t begin, size_t end, size_t first_token);

    const Tokenizer& tokenizer_;
    const RenderedText& rendered_;
    Prompt prompt_;
};

void PromptWriter::writeText(size_t begin, size_t end) {
    if (begin == end) {
        return;
    }
    std::vector<TextSpan> spans;
    for (size_t i = begin; i < end; ++i) {
        const RenderedSpan& span = rendered_.spans[i];
        spans.push_back({std::string_view(rendered_.text).substr(span.begin, span.end - span.begin),
                         span.trusted});
    }
    const size_t first_token = prompt_.ids.size();
    const std::vector<TokenId> ids = tokenizer_.encode(spans);
    prompt_.ids.insert(prompt_.ids.end(), ids.begin(), ids.end());
    addRanges(begin, end, first_token);
}

/// A token belongs to the span in which its first byte stands.
void PromptWriter::addRanges(size_t begin, size_t end, size_t first_token) {
    size_t byte = rendered_.spans[begin].begin;
    size_t span = begin;
    for (size_t token = first_token; token < prompt_.ids.size(); ++token) {
        while (span + 1 < end && byte >= rendered_.spans[span].end) {
            ++span;
        }
        const int64_t source = rendered_.spans[span].source;
        if (source >= 0) {
            if (!prompt_.ranges.empty() && prompt_.ranges.back().source == source &&
                prompt_.ranges.back().token_end == token) {
                ++prompt_.ranges.back().token_end;
            } else {
                prompt_.ranges.push_back({token, token + 1, source});
            }
        }
        byte += tokenizer_.bytesOf(prompt_.ids[token]).size();
    }
}

void PromptWriter::writePiece(const FixedPiece& piece) {
    const size_t first_token = prompt_.ids.size();
    prompt_.ids.insert(prompt_.ids.end(), piece.ids->begin(), piece.ids->end());
    prompt_.ranges.push_back({first_token, prompt_.ids.size(), piece.source});
}

Result<void> checkPieces(const std::vector<FixedPiece>& pieces, const Tokenizer& tokenizer) {
    for (const FixedPiece& piece : pieces) {
        if (piece.ids == nullptr || piece.source < 0) {
            return fail(ErrorCode::InvalidArgument,
                        "a fixed piece of the prompt has no ids or no source");
        }
        for (const TokenId id : *piece.ids) {
            if (id < 0 || static_cast<size_t>(id) >= tokenizer.vocabSize()) {
                return fail(ErrorCode::InvalidArgument, "piece {}: id {} is none of {} tokens",
                            piece.source, id, tokenizer.vocabSize());
            }
        }
    }
    return {};
}

/// The model asks for BOS and the template did not write it.
void addBos(const Tokenizer& tokenizer, Prompt& prompt) {
    const std::optional<TokenId> bos = tokenizer.bos();
    if (!tokenizer.addBos() || !bos || (!prompt.ids.empty() && prompt.ids.front() == *bos)) {
        return;
    }
    prompt.ids.insert(prompt.ids.begin(), *bos);
    for (PromptRange& range : prompt.ranges) {
        ++range.token_begin;
        ++range.token_end;
    }
}

}  // namespace

Result<Prompt> buildPrompt(const ChatTemplate& chat_template,
                           const Tokenizer& tokenizer,
                           const PromptRequest& request) {
    BV_TRY(checkPieces(request.pieces, tokenizer));
    const RenderedText rendered =
        BV_TRY(renderChat(chat_template, request.chat, tokenText(tokenizer, tokenizer.bos()),
                          tokenText(tokenizer, tokenizer.eos())));
    std::unordered_map<int64_t, const FixedPiece*> pieces;
    for (const FixedPiece& piece : request.pieces) {
        pieces.emplace(piece.source, &piece);
    }
    PromptWriter writer(tokenizer, rendered);
    size_t text_begin = 0;
    for (size_t i = 0; i < rendered.spans.size(); ++i) {
        const RenderedSpan& span = rendered.spans[i];
        const auto found = pieces.find(span.source);
        // A template may trim or repeat a text: then the ids of the whole piece do not stand for
        // what is there.
        if (span.source < 0 || found == pieces.end() ||
            span.end - span.begin != found->second->n_bytes) {
            continue;
        }
        writer.writeText(text_begin, i);
        writer.writePiece(*found->second);
        text_begin = i + 1;
    }
    writer.writeText(text_begin, rendered.spans.size());
    Prompt prompt = writer.take();
    addBos(tokenizer, prompt);
    return prompt;
}

}  // namespace belvedere::inference
