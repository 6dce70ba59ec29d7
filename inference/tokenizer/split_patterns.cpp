// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "inference/tokenizer/split.h"

namespace belvedere::inference {
namespace {

constexpr std::pair<std::string_view, SplitRule> kPatterns[] = {
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
     SplitRule::Gpt2},
    // Without the last branch a lone white-space character is the gap between two matches: a piece
    // all the same.
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))", SplitRule::Gpt2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     SplitRule::Qwen2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     SplitRule::Llama3},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
     R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     SplitRule::Gpt4o},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
     R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     SplitRule::Gpt4oNoSlash},
};

// The same pattern goes by several names in GGUF files; only names whose pattern is known to be one
// of the above.
constexpr std::pair<std::string_view, SplitRule> kPreNames[] = {
    {"gpt-2", SplitRule::Gpt2},
    {"gpt2", SplitRule::Gpt2},
    {"smollm", SplitRule::SmolLm},
    {"qwen2", SplitRule::Qwen2},
    {"deepseek-r1-qwen", SplitRule::Qwen2},
    {"llama-bpe", SplitRule::Llama3},
    {"llama3", SplitRule::Llama3},
    {"llama-v3", SplitRule::Llama3},
    {"gpt-4o", SplitRule::Gpt4o},
    {"llama4", SplitRule::Gpt4o},
    {"minimax-m2", SplitRule::Gpt4o},
    {"minimax-m3", SplitRule::Gpt4o},
};

template <class Table>
std::optional<SplitRule> lookUp(const Table& table, std::string_view key) {
    for (const auto& [name, rule] : table) {
        if (name == key) {
            return rule;
        }
    }
    return std::nullopt;
}

}  // namespace

std::optional<SplitRule> splitRuleOfPre(std::string_view pre) {
    return lookUp(kPreNames, pre);
}

std::optional<SplitRule> splitRuleOfPattern(std::string_view regex) {
    return lookUp(kPatterns, regex);
}

}  // namespace belvedere::inference
