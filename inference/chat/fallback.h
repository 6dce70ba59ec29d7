// SPDX-License-Identifier: Apache-2.0
#pragma once

// The template for a model file that carries none: ChatML, with tools in the tagged-JSON form that
// most models trained on ChatML know. Its name() says that it is built in, so that a user can see
// why a model answers oddly. Any thread.

#include <string_view>

#include "inference/chat/template.h"

namespace belvedere::inference {

inline constexpr std::string_view kFallbackTemplateName = "built-in ChatML";

[[nodiscard]] ChatTemplate fallbackTemplate();

}  // namespace belvedere::inference
