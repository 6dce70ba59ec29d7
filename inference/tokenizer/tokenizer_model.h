// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a Tokenizer is made of; private to inference/tokenizer. Built by buildTokenizerModel,
// constant afterwards except for the pool of workspaces, which has its own lock.
//
// Two alphabets. Byte-level (gpt2): text is cut by a split pattern, symbols start as bytes, pairs
// merge by rank. SentencePiece (llama): symbols start as characters, neighbours merge when their
// joined text is a token, by score. Its spaces are stored as U+2581; here both sides use plain
// spaces.

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "inference/tokenizer/bpe.h"
#include "inference/tokenizer/merge_table.h"
#include "inference/tokenizer/piece_cache.h"
#include "inference/tokenizer/text_index.h"
#include "inference/tokenizer/token_trie.h"
#include "inference/tokenizer/tokenizer.h"

namespace belvedere::inference::detail {

/// U+2581, a space as SentencePiece stores it.
inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

/// Memory one call of encode works in; the caches stay warm from call to call.
struct Workspace {
    using ShortCache = PieceCache<2, 3, 8192>;  // 512 kB
    using LongCache = PieceCache<8, 15, 512>;   // 128 kB

    ShortCache short_pieces;
    LongCache long_pieces;
    MergeWorkspace merge;
    std::string text;
};

/// As many workspaces as calls ran at once; any thread.
class WorkspacePool {
  public:
    [[nodiscard]] std::unique_ptr<Workspace> take();
    void giveBack(std::unique_ptr<Workspace> workspace);

  private:
    std::mutex mutex_;
    std::vector<std::unique_ptr<Workspace>> idle_;
};

struct TokenizerModel {
    bool byte_level = true;
    SplitRule split = SplitRule::FromPre;
    bool ignore_merges = false;
    bool nfc = false;
    bool add_space_prefix = false;  ///< SentencePiece
    bool cut_at_spaces = false;  ///< SentencePiece: no token has a space behind another character
    bool add_bos = false;
    bool add_eos = false;
    std::optional<TokenId> bos, eos, eot, eom, unk, pad;

    // By id: bytes[offsets[id], offsets[id + 1]) is what the token decodes to.
    std::string bytes;
    std::vector<uint32_t> offsets;
    std::vector<TokenKind> kinds;
    std::vector<bool> ends_generation;
    std::vector<bool> hidden;

    TextIndex ordinary;  ///< Normal tokens that merging can produce, by their bytes
    TextIndex named;     ///< all other tokens but Byte ones, by their text
    std::array<TokenId, 256> byte_ids{};  ///< -1: no such token
    TokenId substitute = -1;              ///< for a byte without a token; -1: it is dropped
    MergeTable merges;                    ///< byte-level
    std::vector<uint32_t> score_ranks;    ///< SentencePiece, by id; equal scores have equal ranks
    size_t max_ordinary_bytes = 0;

    TokenTrie added;             ///< matched in the text as it is
    TokenTrie added_normalized;  ///< matched in what `added` leaves
    std::unordered_map<TokenId, AddedTokenRule> added_rules;

    mutable WorkspacePool workspaces;

    [[nodiscard]] std::string_view bytesOf(TokenId id) const {
        const auto i = static_cast<size_t>(id);
        return std::string_view(bytes).substr(offsets[i], offsets[i + 1] - offsets[i]);
    }

    [[nodiscard]] TokenId findOrdinary(std::string_view text) const {
        return ordinary.find(text, [this](TokenId id) { return bytesOf(id); });
    }
};

[[nodiscard]] Result<std::unique_ptr<TokenizerModel>> buildTokenizerModel(VocabularyData data);

/// The bytes of a Normal token from its stored text; nullopt when a byte-level text has characters
/// outside the alphabet.
[[nodiscard]] std::optional<std::string> bytesOfOrdinary(std::string_view stored, bool byte_level);

/// The byte of a token text of exactly the form <0xHH>.
[[nodiscard]] std::optional<uint8_t> byteOfToken(std::string_view stored);

/// Appends the ids of the joined spans.
void encodeSpans(const TokenizerModel& model,
                 std::span<const TextSpan> spans,
                 std::vector<TokenId>& out);

}  // namespace belvedere::inference::detail
