// SPDX-License-Identifier: Apache-2.0
#pragma once

// Images and clips in prompts: their placeholders, and what the KV cache knows them by. Private to
// inference/. Pure functions; any thread.

#include <algorithm>
#include <span>
#include <vector>

#include "inference/engine.h"
#include "inference/model/decoder.h"
#include "inference/model/placeholders.h"

namespace belvedere::inference {

/// Puts in place of each placeholder what MiniMax-M3's processor does: start of image, the
/// placeholder once for each token, end of image; for a clip that for each pair of frames, behind
/// "]<]1.0 seconds[>[" where it is known when the frames were taken. Images and clips are taken
/// each in their order. Errors: Unsupported where the vocabulary has no placeholder,
/// InvalidArgument where there are more or fewer than in the prompt.
[[nodiscard]] Result<void> expandMedia(const Tokenizer& tokenizer,
                                       const PlaceholderIds& placeholders,
                                       MediaList media,
                                       Prompt& prompt);

/// Errors: InvalidArgument where spans overlap, stand outside the prompt or ask for rows that their
/// image does not have.
[[nodiscard]] Result<void> checkMedia(std::span<const MediaSpan> media, size_t n_prompt);

/// The ids with a number below 0 in place of each placeholder, made of what the image shows, of the
/// row and of the tower (Model::towerKey): equal prefixes of such ids have the same K and V, in
/// this process and in files.
[[nodiscard]] std::vector<TokenId> cacheIds(std::span<const TokenId> ids,
                                            std::span<const MediaSpan> media,
                                            uint64_t tower_key);

/// What stands for the tokens [begin, begin + n): rows of the embeddings of their images.
/// `embeddings(const Media&)` gives those as a span [tokens of the image, dim].
template <class EmbeddingsOf>
[[nodiscard]] std::vector<GivenRows> givenRows(std::span<const MediaSpan> media,
                                               size_t begin,
                                               size_t n,
                                               size_t dim,
                                               const EmbeddingsOf& embeddings) {
    std::vector<GivenRows> given;
    for (const MediaSpan& span : media) {
        const size_t first = std::max(span.token_begin, begin);
        const size_t end = std::min(span.token_begin + span.n_tokens, begin + n);
        if (first < end) {
            const size_t row = span.first_row + first - span.token_begin;
            const std::span<const float> rows = embeddings(*span.media);
            given.push_back({first - begin, rows.subspan(row * dim, (end - first) * dim)});
        }
    }
    return given;
}

}  // namespace belvedere::inference
