// SPDX-License-Identifier: Apache-2.0
#pragma once

// The raw facts of a tokenizer as a model file states them, nothing checked yet. The GGUF reader
// and fromTokenizerJson fill it; Tokenizer::create checks it. A plain value: any thread. Source:
// GGUF keys tokenizer.ggml.* and the Hugging Face tokenizer.json layout.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace belvedere::inference {

/// How text is cut into pieces before merging; each value stands for one published split pattern.
enum class SplitRule {
    FromPre,       ///< choose by VocabularyData::pre
    Gpt2,          ///< the pattern of GPT-2
    SmolLm,        ///< every digit alone, then the pattern of GPT-2
    Qwen2,         ///< case-blind contractions, single digits
    Llama3,        ///< as Qwen2 with up to three digits together
    Gpt4o,         ///< cased letter runs; slashes stay with the punctuation before them (GPT-4o,
                   ///< MiniMax-M2 and M3)
    Gpt4oNoSlash,  ///< the same without the slash
};

/// Matching options of one added token; a token without a rule matches everywhere and takes nothing
/// from its neighbours.
struct AddedTokenRule {
    uint32_t id = 0;
    bool strip_left = false;   ///< takes the white space before it
    bool strip_right = false;  ///< takes the white space after it
    bool normalized = false;   ///< matched after the others, in what they leave
};

struct VocabularyData {
    std::string
        model;  ///< tokenizer.ggml.model: "gpt2" (byte-level BPE) or "llama" (SentencePiece BPE)
    std::string pre;                  ///< tokenizer.ggml.pre; only for gpt2
    std::vector<std::string> tokens;  ///< text as stored, by id
    std::vector<float> scores;        ///< by id; needed for llama, ignored for gpt2
    std::vector<int32_t> types;  ///< 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6
                                 ///< byte; empty: all normal
    std::vector<std::string> merges;  ///< "left right", best first; only for gpt2
    std::optional<uint32_t> bos, eos, eot, eom, unk, pad;
    std::vector<uint32_t> ends;   ///< more tokens that end an answer
    std::optional<bool> add_bos;  ///< not stated: on for llama and for the Llama 3 pattern
    bool add_eos = false;
    bool add_space_prefix = true;  ///< llama: a space before the text and after each added token
    bool remove_extra_whitespaces = false;  ///< true is refused: no supported model wants it
    bool ignore_merges =
        false;         ///< a piece that is a token needs no merging; on for pre "llama-bpe"
    bool nfc = false;  ///< compose accents first (tokenizer.json of Qwen2)
    SplitRule split = SplitRule::FromPre;
    std::vector<AddedTokenRule> added_rules;
};

}  // namespace belvedere::inference
