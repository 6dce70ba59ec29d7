// SPDX-License-Identifier: Apache-2.0
#pragma once

// The escaping that texts marked by `safe` or `escape` bring into sums. One rendering, one thread.

#include "inference/chat/jinja/runtime.h"

namespace belvedere::inference::jinja {

/// & < > " ' as entities; marked text as it is. The result is marked and keeps its provenance.
[[nodiscard]] Result<Text> escapeHtml(Runtime& runtime, const Text& text);

[[nodiscard]] Text markSafe(Runtime& runtime, const Text& text, bool is_markup);

}  // namespace belvedere::inference::jinja
