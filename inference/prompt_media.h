// SPDX-License-Identifier: Apache-2.0
#pragma once

// Images and clips in prompts: their placeholders, and what the KV cache knows them by. Private to
// inference/. Pure functions; any thread.

#include <span>
#include <vector>

#include "inference/engine.h"
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

}  // namespace belvedere::inference
