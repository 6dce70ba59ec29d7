// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which tokens of a prompt stand for images and clips. Pure functions; any thread.

#include <memory>
#include <span>
#include <vector>

#include "inference/model/model_source.h"
#include "inference/tokenizer/tokenizer.h"
#include "inference/vision/media.h"

namespace belvedere::inference {

/// What the config names, the rest by MiniMax-M3's texts in the vocabulary. `tokenizer` may be
/// nullptr. Errors: Corrupt.
[[nodiscard]] Result<PlaceholderIds> placeholderIds(const ModelSource& source,
                                                    const Tokenizer* tokenizer);

using MediaList = std::span<const std::shared_ptr<const Media>>;

/// Finds the tokens of each image and clip in ids that hold their placeholders as often as they
/// have tokens, images and clips each in their order. A file that does not name its placeholders is
/// no obstacle: they are the ids that occur in just such runs. Errors: InvalidArgument, with the
/// numbers, where they do not fit.
[[nodiscard]] Result<std::vector<MediaSpan>> findMedia(std::span<const TokenId> ids,
                                                       MediaList media,
                                                       const PlaceholderIds& placeholders);

}  // namespace belvedere::inference
