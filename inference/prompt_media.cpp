// SPDX-License-Identifier: Apache-2.0
#include "inference/prompt_media.h"

#include <algorithm>

#include "inference/cache/digest.h"

namespace belvedere::inference {
namespace {

/// Builds the ids anew, with the tokens of images where their placeholders stood.
class Expander {
  public:
    Expander(const Tokenizer& tokenizer, const PlaceholderIds& placeholders, const Prompt& prompt)
        : tokenizer_(tokenizer), placeholders_(placeholders), old_(prompt) {}

    /// `media` of each kind, in order.
    void run(MediaList images, MediaList clips);

    [[nodiscard]] Prompt take() { return std::move(new_); }

  private:
    void addToken(std::optional<TokenId> id) {
        if (id) {
            new_.ids.push_back(*id);
        }
    }

    void addMedia(const std::shared_ptr<const Media>& media, TokenId placeholder, bool is_framed);
    void addTime(const Media& media, size_t pair);

    const Tokenizer& tokenizer_;
    const PlaceholderIds& placeholders_;
    const Prompt& old_;
    Prompt new_;
};

void Expander::addTime(const Media& media, size_t pair) {
    if (pair < media.pair_seconds.size()) {
        const std::string text = fmt::format("]<]{:.1f} seconds[>[", media.pair_seconds[pair]);
        const std::vector<TokenId> ids = tokenizer_.encode(text, SpecialTokens::Plain);
        new_.ids.insert(new_.ids.end(), ids.begin(), ids.end());
    }
}

void Expander::addMedia(const std::shared_ptr<const Media>& media,
                        TokenId placeholder,
                        bool is_framed) {
    const PatchGrid grid = media->grid();
    const size_t n_tokens = grid.pairTokenCount();
    for (size_t pair = 0; pair < grid.t; ++pair) {
        addTime(*media, pair);
        addToken(is_framed ? std::nullopt : placeholders_.begin);
        new_.media.push_back({new_.ids.size(), n_tokens, pair * n_tokens, media});
        new_.ids.insert(new_.ids.end(), n_tokens, placeholder);
        addToken(is_framed ? std::nullopt : placeholders_.end);
    }
}

void Expander::run(MediaList images, MediaList clips) {
    const std::vector<TokenId>& ids = old_.ids;
    std::vector<size_t> new_position;
    for (size_t i = 0; i < ids.size(); ++i) {
        new_position.push_back(new_.ids.size());
        // Some templates write the markers themselves.
        const bool is_framed = i > 0 && i + 1 < ids.size() && placeholders_.begin == ids[i - 1] &&
                               placeholders_.end == ids[i + 1];
        if (placeholders_.image == ids[i] && !images.empty()) {
            addMedia(images.front(), ids[i], is_framed);
            images = images.subspan(1);
        } else if (placeholders_.video == ids[i] && !clips.empty()) {
            addMedia(clips.front(), ids[i], is_framed && clips.front()->grid().t == 1);
            clips = clips.subspan(1);
        } else {
            new_.ids.push_back(ids[i]);
        }
    }
    new_position.push_back(new_.ids.size());
    for (const PromptRange& range : old_.ranges) {
        new_.ranges.push_back(
            {new_position[range.token_begin], new_position[range.token_end], range.source});
    }
}

Result<void> checkCount(const std::vector<TokenId>& ids,
                        std::optional<TokenId> placeholder,
                        const char* noun,
                        size_t n_media) {
    if (n_media > 0 && !placeholder) {
        return fail(ErrorCode::Unsupported, "the vocabulary has no token that stands for {}", noun);
    }
    const auto n_places =
        placeholder ? static_cast<size_t>(std::count(ids.begin(), ids.end(), *placeholder)) : 0;
    if (n_places != n_media) {
        return fail(ErrorCode::InvalidArgument,
                    "the prompt has places for {} {}, {} are given: the chat template of the model "
                    "may not take them",
                    n_places, noun, n_media);
    }
    return {};
}

/// Below 0. Two images agree in one row by chance once in 2^31; prefixes end before an image that
/// does not agree as a whole, of 4 rows and more.
TokenId rowId(const MediaHash& hash, uint64_t row, uint64_t tower_key) {
    const struct {
        MediaHash hash;
        uint64_t row;
        uint64_t tower_key;
    } shown = {hash, row, tower_key};

    static_assert(sizeof shown == 48);
    return -1 - static_cast<TokenId>(checksumOf(std::as_bytes(std::span(&shown, 1))) >> 33);
}

}  // namespace

Result<void> expandMedia(const Tokenizer& tokenizer,
                         const PlaceholderIds& placeholders,
                         MediaList media,
                         Prompt& prompt) {
    if (media.empty()) {
        return {};
    }
    std::vector<std::shared_ptr<const Media>> images;
    std::vector<std::shared_ptr<const Media>> clips;
    for (const auto& one : media) {
        (one->kind == MediaKind::Image ? images : clips).push_back(one);
    }
    BV_TRY(checkCount(prompt.ids, placeholders.image, "images", images.size()));
    BV_TRY(checkCount(prompt.ids, placeholders.video, "clips", clips.size()));
    Expander expander(tokenizer, placeholders, prompt);
    expander.run(images, clips);
    prompt = expander.take();
    return {};
}

Result<void> checkMedia(std::span<const MediaSpan> media, size_t n_prompt) {
    size_t end = 0;
    for (const MediaSpan& span : media) {
        if (span.media == nullptr || span.token_begin < end || span.n_tokens > n_prompt ||
            span.token_begin > n_prompt - span.n_tokens) {
            return fail(ErrorCode::InvalidArgument,
                        "an image for the tokens from {} on ({} of them) in a prompt of {}",
                        span.token_begin, span.n_tokens, n_prompt);
        }
        if (span.first_row + span.n_tokens > span.media->tokenCount()) {
            return fail(ErrorCode::InvalidArgument, "{}: rows {} to {} of {}", span.media->name,
                        span.first_row, span.first_row + span.n_tokens, span.media->tokenCount());
        }
        end = span.token_begin + span.n_tokens;
    }
    return {};
}

std::vector<TokenId> cacheIds(std::span<const TokenId> ids,
                              std::span<const MediaSpan> media,
                              uint64_t tower_key) {
    std::vector<TokenId> keyed(ids.begin(), ids.end());
    for (const MediaSpan& span : media) {
        for (size_t i = 0; i < span.n_tokens; ++i) {
            keyed[span.token_begin + i] = rowId(span.media->hash, span.first_row + i, tower_key);
        }
    }
    return keyed;
}

}  // namespace belvedere::inference
