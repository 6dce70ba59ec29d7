// SPDX-License-Identifier: Apache-2.0
#pragma once

// Our own engine as the loop's LanguageModel. Each conversation keeps one sequence of the KV cache.
// Any thread; requests of one conversation come one at a time (a session runs one turn).

#include <memory>
#include <string>

#include "agent/model/language_model.h"
#include "inference/engine.h"

namespace belvedere::agent {

/// The engine is shared with whoever shows its facts; it is unloaded with its last user.
[[nodiscard]] std::shared_ptr<LanguageModel> makeEngineModel(
    std::shared_ptr<inference::Engine> engine);

/// Counts with a tokenizer alone, for tools that load no weights; `key` names the model file.
[[nodiscard]] std::shared_ptr<const TokenCounter> makeTokenCounter(
    std::shared_ptr<const inference::Tokenizer> tokenizer, std::string key);

}  // namespace belvedere::agent
