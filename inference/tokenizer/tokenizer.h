// SPDX-License-Identifier: Apache-2.0
#pragma once

// Text to token ids and back. Immutable after create: any thread may call any method at the same
// time. Nothing is ever added to the text (no BOS, no EOS); what a model wants there is told by
// addBos().
//
//     const TextSpan spans[] = {{"<|im_start|>user\n", true}, {user_text, false}, {"<|im_end|>\n",
//     true}}; std::vector<TokenId> ids = tokenizer->encode(spans);  // user_text cannot produce a
//     special token

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "inference/tokenizer/vocabulary.h"
#include "kernels/base/result.h"

namespace belvedere::inference {

namespace detail {
struct TokenizerModel;
}

using TokenId = int32_t;

enum class TokenKind { Normal, Unknown, Control, UserDefined, Unused, Byte };

/// A stretch of a prompt. In trusted text added tokens are recognised by their text; in untrusted
/// text never.
struct TextSpan {
    std::string_view text;
    bool trusted = false;
};

enum class SpecialTokens {
    Recognise,  ///< the whole text is trusted
    Plain,      ///< the whole text is untrusted
};

class Tokenizer {
  public:
    /// Errors: Corrupt when the parts contradict each other, Unsupported for an unknown model or
    /// split pattern; the message names the key and the index.
    [[nodiscard]] static Result<std::unique_ptr<Tokenizer>> create(VocabularyData data);

    ~Tokenizer();
    Tokenizer(const Tokenizer&) = delete;
    Tokenizer& operator=(const Tokenizer&) = delete;

    /// The ids of the joined spans. The text is cut only at added tokens: the split pattern sees
    /// across span borders. An added token that starts in one trusted span may end in the next one
    /// if that is trusted too. Invalid UTF-8 is kept byte by byte.
    [[nodiscard]] std::vector<TokenId> encode(std::span<const TextSpan> spans) const;
    [[nodiscard]] std::vector<TokenId> encode(std::string_view text, SpecialTokens mode) const;

    /// The bytes of all tokens, special ones as their text. A token may end inside a character:
    /// show text through Utf8Stream. Requires: ids from this vocabulary.
    [[nodiscard]] std::string decode(std::span<const TokenId> ids) const;

    /// Valid as long as the tokenizer. Requires: 0 <= id < vocabSize().
    [[nodiscard]] std::string_view bytesOf(TokenId id) const;
    [[nodiscard]] TokenKind kind(TokenId id) const;

    [[nodiscard]] size_t vocabSize() const;

    /// The token whose text in the model file is `token_text` ("<|im_end|>"; "\u0120the" in a
    /// byte-level vocabulary).
    [[nodiscard]] std::optional<TokenId> find(std::string_view token_text) const;

    [[nodiscard]] std::optional<TokenId> bos() const;
    [[nodiscard]] std::optional<TokenId> eos() const;
    [[nodiscard]] std::optional<TokenId> eot() const;
    [[nodiscard]] std::optional<TokenId> eom() const;
    [[nodiscard]] std::optional<TokenId> unk() const;
    [[nodiscard]] std::optional<TokenId> pad() const;

    /// What the model file asks for; the caller decides, as a chat template may have written the
    /// token itself.
    [[nodiscard]] bool addBos() const;
    [[nodiscard]] bool addEos() const;

    /// eos, eot, eom and the control tokens known to end a turn. Fill-in-the-middle and repository
    /// markers are not among them: a stray one inside code would cut the answer.
    [[nodiscard]] bool isEndOfGeneration(TokenId id) const;

    /// Control tokens, except those that mark reasoning and tool calls: parsers need to see these
    /// as text.
    [[nodiscard]] bool hiddenFromUser(TokenId id) const;

  private:
    explicit Tokenizer(std::unique_ptr<const detail::TokenizerModel> model);

    std::unique_ptr<const detail::TokenizerModel> model_;
};

}  // namespace belvedere::inference
