// SPDX-License-Identifier: Apache-2.0
#include "inference/model/placeholders.h"

#include <algorithm>
#include <map>

namespace belvedere::inference {
namespace {

// Source: MiniMax-M3's tokenizer.json.
constexpr const char* kImageText = "]<]image[>[";
constexpr const char* kVideoText = "]<]video[>[";
constexpr const char* kBeginText = "]<]start of image[>[";
constexpr const char* kEndText = "]<]end of image[>[";

/// The images or the clips of a prompt.
struct Kind {
    MediaKind kind = MediaKind::Image;
    const char* noun = "";
    MediaList media;

    [[nodiscard]] size_t tokenCount() const {
        size_t n_tokens = 0;
        for (const auto& one : media) {
            n_tokens += one->kind == kind ? one->tokenCount() : 0;
        }
        return n_tokens;
    }
};

using Positions = std::vector<size_t>;

/// Whether each pair of frames (a still is one) stands in one run.
bool fits(const Positions& positions, const Kind& kind) {
    size_t at = 0;
    for (const auto& one : kind.media) {
        if (one->kind != kind.kind) {
            continue;
        }
        const PatchGrid grid = one->grid();
        const size_t n_tokens = grid.pairTokenCount();
        for (size_t pair = 0; pair < grid.t; ++pair, at += n_tokens) {
            if (positions[at + n_tokens - 1] - positions[at] != n_tokens - 1) {
                return false;
            }
        }
    }
    return true;
}

Positions positionsOf(std::span<const TokenId> ids, std::optional<TokenId> id) {
    Positions positions;
    for (size_t i = 0; id && i < ids.size(); ++i) {
        if (ids[i] == *id) {
            positions.push_back(i);
        }
    }
    return positions;
}

/// Of the one id that occurs as often as the tokens of a kind, and in such runs; empty where there
/// is none or more than one.
Positions guess(std::span<const TokenId> ids, const Kind& kind) {
    std::map<TokenId, Positions> by_id;
    for (size_t i = 0; i < ids.size(); ++i) {
        by_id[ids[i]].push_back(i);
    }
    Positions found;
    for (auto& [id, positions] : by_id) {
        if (positions.size() == kind.tokenCount() && fits(positions, kind)) {
            if (!found.empty()) {
                return {};
            }
            found = std::move(positions);
        }
    }
    return found;
}

/// Spans of the media of a kind, whose tokens stand at `positions`.
void addSpans(const Positions& positions, const Kind& kind, std::vector<MediaSpan>& spans) {
    size_t at = 0;
    for (const auto& one : kind.media) {
        const size_t n_tokens = one->kind == kind.kind ? one->tokenCount() : 0;
        for (size_t row = 0; row < n_tokens; ++row, ++at) {
            if (row > 0 && positions[at] == positions[at - 1] + 1) {
                ++spans.back().n_tokens;
            } else {
                spans.push_back({positions[at], 1, row, one});
            }
        }
    }
}

Result<void> findKind(std::span<const TokenId> ids,
                      const Kind& kind,
                      std::optional<TokenId> named,
                      std::vector<MediaSpan>& spans) {
    const size_t n_tokens = kind.tokenCount();
    if (n_tokens == 0) {
        return {};
    }
    Positions positions = positionsOf(ids, named);
    const size_t n_named = positions.size();
    if (n_named != n_tokens) {
        positions = guess(ids, kind);
    }
    if (positions.empty()) {
        return fail(ErrorCode::InvalidArgument,
                    "the {} take {} tokens, but the ids hold {} placeholders for them{}: expand "
                    "them to as many",
                    kind.noun, n_tokens, n_named,
                    named ? fmt::format(" (id {})", *named) : std::string());
    }
    addSpans(positions, kind, spans);
    return {};
}

}  // namespace

Result<PlaceholderIds> placeholderIds(const ModelSource& source, const Tokenizer* tokenizer) {
    PlaceholderIds ids = BV_TRY(source.placeholders());
    if (tokenizer == nullptr) {
        return ids;
    }
    const auto fill = [&](std::optional<TokenId>& id, const char* text) {
        id = id ? id : tokenizer->find(text);
    };
    fill(ids.image, kImageText);
    fill(ids.video, kVideoText);
    fill(ids.begin, kBeginText);
    fill(ids.end, kEndText);
    return ids;
}

Result<std::vector<MediaSpan>> findMedia(std::span<const TokenId> ids,
                                         MediaList media,
                                         const PlaceholderIds& placeholders) {
    std::vector<MediaSpan> spans;
    BV_TRY(findKind(ids, {MediaKind::Image, "images", media}, placeholders.image, spans));
    BV_TRY(findKind(ids, {MediaKind::Video, "clips", media}, placeholders.video, spans));
    std::sort(spans.begin(), spans.end(),
              [](const MediaSpan& a, const MediaSpan& b) { return a.token_begin < b.token_begin; });
    for (size_t i = 1; i < spans.size(); ++i) {
        if (spans[i - 1].token_begin + spans[i - 1].n_tokens > spans[i].token_begin) {
            return fail(ErrorCode::InvalidArgument,
                        "token {} of the ids stands for an image and for a clip",
                        spans[i].token_begin);
        }
    }
    return spans;
}

}  // namespace belvedere::inference
