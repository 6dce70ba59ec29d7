// SPDX-License-Identifier: Apache-2.0
// Checks a VocabularyData and builds the tables from it. Every field comes from a file and is
// hostile until checked.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "inference/tokenizer/byte_alphabet.h"
#include "inference/tokenizer/split.h"
#include "inference/tokenizer/tokenizer_model.h"

namespace belvedere::inference::detail {
namespace {

constexpr size_t kMaxTokenBytes = 64 * 1024;

// Tokens after which a chat model has nothing more to say, by text; files often name only one of
// them as eos.
constexpr std::string_view kEndTokens[] = {
    "<|eot_id|>",      "<|im_end|>", "<|end|>",    "<end_of_turn>", "<|endoftext|>", "<|eom_id|>",
    "<|end_of_text|>", "<EOT>",      "<|return|>", "<|call|>",      "[e~["};

// Control tokens that parsers of reasoning and tool calls look for in the text.
constexpr std::string_view kParsedTokens[] = {"<think>",
                                              "</think>",
                                              "<mm:think>",
                                              "</mm:think>",
                                              "]<]minimax[>[",
                                              "<tool_call>",
                                              "</tool_call>",
                                              "<minimax:tool_call>",
                                              "</minimax:tool_call>",
                                              "<tool_response>",
                                              "</tool_response>",
                                              "<|python_tag|>"};

template <size_t n>
bool contains(const std::string_view (&list)[n], std::string_view text) {
    return std::find(std::begin(list), std::end(list), text) != std::end(list);
}

std::optional<TokenKind> kindOfType(int32_t type) {
    switch (type) {
        case 1:
            return TokenKind::Normal;
        case 2:
            return TokenKind::Unknown;
        case 3:
            return TokenKind::Control;
        case 4:
            return TokenKind::UserDefined;
        case 5:
            return TokenKind::Unused;
        case 6:
            return TokenKind::Byte;
        default:
            return std::nullopt;
    }
}

bool isAdded(TokenKind kind) {
    return kind == TokenKind::Control || kind == TokenKind::UserDefined ||
           kind == TokenKind::Unknown;
}

bool isWhiteSpace(std::string_view text) {
    return split::skip(text.data(), text.data() + text.size(), split::kSpace) ==
           text.data() + text.size();
}

class ModelBuilder {
  public:
    explicit ModelBuilder(VocabularyData data) : data_(std::move(data)) {}

    Result<std::unique_ptr<TokenizerModel>> build() {
        BV_TRY(checkModel());
        BV_TRY(checkSizes());
        BV_TRY(decodeTokens());
        BV_TRY(indexTokens());
        BV_TRY(model_->byte_level ? addMerges() : rankScores());
        BV_TRY(setSpecialIds());
        BV_TRY(setSubstitute());
        BV_TRY(collectAdded());
        return std::move(model_);
    }

  private:
    Result<void> checkModel();
    Result<void> checkSizes();
    Result<void> decodeTokens();
    Result<void> decodeToken(size_t id);
    Result<void> indexTokens();
    Result<void> addMerges();
    Result<void> addMerge(uint32_t rank, std::string_view left, std::string_view right);
    Result<void> rankScores();
    Result<void> setSpecialIds();
    Result<void> setSubstitute();
    Result<void> collectAdded();

    [[nodiscard]] TokenId findStored(std::string_view text) const {
        return stored_.find(text, [this](TokenId id) -> std::string_view {
            return data_.tokens[static_cast<size_t>(id)];
        });
    }

    VocabularyData data_;
    std::unique_ptr<TokenizerModel> model_ = std::make_unique<TokenizerModel>();
    TextIndex stored_;               ///< every token that is not Unused, by stored text
    std::vector<bool> is_ordinary_;  ///< by id: merging may produce it
};

Result<void> ModelBuilder::checkModel() {
    TokenizerModel& m = *model_;
    if (data_.model != "gpt2" && data_.model != "llama") {
        return fail(ErrorCode::Unsupported,
                    "tokenizer.ggml.model: '{}' is not supported (known: gpt2, llama)",
                    data_.model);
    }
    if (data_.remove_extra_whitespaces) {
        return fail(ErrorCode::Unsupported,
                    "tokenizer.ggml.remove_extra_whitespaces: true is not supported");
    }
    m.byte_level = data_.model == "gpt2";
    m.split = data_.split;
    if (m.byte_level && m.split == SplitRule::FromPre) {
        const std::optional<SplitRule> rule = splitRuleOfPre(data_.pre);
        if (!rule) {
            return fail(ErrorCode::Unsupported,
                        "tokenizer.ggml.pre: '{}' is not a known split pattern (known: gpt-2, "
                        "smollm, qwen2, "
                        "llama-bpe, gpt-4o, minimax-m2)",
                        data_.pre);
        }
        m.split = *rule;
        m.ignore_merges = *rule == SplitRule::Llama3;
    }
    m.ignore_merges = m.ignore_merges || data_.ignore_merges;
    m.nfc = data_.nfc;
    m.add_space_prefix = !m.byte_level && data_.add_space_prefix;
    m.add_eos = data_.add_eos;
    return {};
}

Result<void> ModelBuilder::checkSizes() {
    const size_t n = data_.tokens.size();
    if (n == 0) {
        return fail(ErrorCode::Corrupt, "tokenizer.ggml.tokens: missing or empty");
    }
    if (n > MergeTable::kMaxId + 1) {
        return fail(ErrorCode::Unsupported, "tokenizer.ggml.tokens: {} tokens, more than {}", n,
                    MergeTable::kMaxId + 1);
    }
    if (!data_.types.empty() && data_.types.size() != n) {
        return fail(ErrorCode::Corrupt, "tokenizer.ggml.token_type: {} entries for {} tokens",
                    data_.types.size(), n);
    }
    if (data_.scores.size() != n && !(data_.scores.empty() && model_->byte_level)) {
        return fail(ErrorCode::Corrupt, "tokenizer.ggml.scores: {} entries for {} tokens",
                    data_.scores.size(), n);
    }
    if (data_.merges.size() > MergeTable::kMaxMerges) {
        return fail(ErrorCode::Unsupported, "tokenizer.ggml.merges: {} merges, more than {}",
                    data_.merges.size(), MergeTable::kMaxMerges);
    }
    return {};
}

Result<void> ModelBuilder::decodeTokens() {
    TokenizerModel& m = *model_;
    const size_t n = data_.tokens.size();
    m.byte_ids.fill(-1);
    m.kinds.reserve(n);
    m.offsets.reserve(n + 1);
    m.offsets.push_back(0);
    is_ordinary_.resize(n);
    m.ends_generation.resize(n);
    m.hidden.resize(n);
    for (size_t id = 0; id < n; ++id) {
        BV_TRY(decodeToken(id));
        if (m.bytes.size() > UINT32_MAX) {
            return fail(ErrorCode::Unsupported, "tokenizer.ggml.tokens: more than 4 GiB of text");
        }
        m.offsets.push_back(static_cast<uint32_t>(m.bytes.size()));
    }
    return {};
}

Result<void> ModelBuilder::decodeToken(size_t id) {
    TokenizerModel& m = *model_;
    const std::string& text = data_.tokens[id];
    if (text.size() > kMaxTokenBytes) {
        return fail(ErrorCode::Unsupported, "tokenizer.ggml.tokens[{}]: {} bytes, more than {}", id,
                    text.size(), kMaxTokenBytes);
    }
    const std::optional<TokenKind> kind =
        data_.types.empty() ? TokenKind::Normal : kindOfType(data_.types[id]);
    if (!kind) {
        return fail(ErrorCode::Corrupt,
                    "tokenizer.ggml.token_type[{}]: {} is none of the types 1 to 6", id,
                    data_.types[id]);
    }
    m.kinds.push_back(*kind);
    if (*kind == TokenKind::Normal) {
        const std::optional<std::string> bytes = bytesOfOrdinary(text, m.byte_level);
        is_ordinary_[id] = bytes && !bytes->empty();
        m.bytes += bytes ? *bytes : text;
    } else if (*kind == TokenKind::Byte) {
        const std::optional<uint8_t> byte = byteOfToken(text);
        if (!byte || m.byte_level) {
            return fail(ErrorCode::Corrupt, "tokenizer.ggml.tokens[{}]: a byte token, but {}", id,
                        m.byte_level ? "only the llama model has these" : "not of the form <0xHH>");
        }
        if (m.byte_ids[*byte] >= 0) {
            return fail(ErrorCode::Corrupt,
                        "tokenizer.ggml.tokens[{}]: byte 0x{:02X} is token {} already", id, *byte,
                        m.byte_ids[*byte]);
        }
        m.byte_ids[*byte] = static_cast<TokenId>(id);
        m.bytes.push_back(static_cast<char>(*byte));
    } else {
        m.bytes += text;
    }
    return {};
}

Result<void> ModelBuilder::indexTokens() {
    TokenizerModel& m = *model_;
    const size_t n = data_.tokens.size();
    stored_ = TextIndex(n);
    m.ordinary = TextIndex(n);
    m.named = TextIndex(n);
    const auto bytesOf = [&m](TokenId id) { return m.bytesOf(id); };
    const auto storedOf = [this](TokenId id) -> std::string_view {
        return data_.tokens[static_cast<size_t>(id)];
    };
    m.cut_at_spaces = !m.byte_level;
    for (size_t i = 0; i < n; ++i) {
        const auto id = static_cast<TokenId>(i);
        const std::string_view text = m.bytesOf(id);
        if (text.empty()) {
            continue;  // some files pad their vocabulary with empty texts: they match nothing
        }
        if (m.kinds[i] != TokenKind::Unused) {
            if (const TokenId first = stored_.insert(data_.tokens[i], id, storedOf); first >= 0) {
                return fail(ErrorCode::Corrupt,
                            "tokenizer.ggml.tokens[{}]: the same text as token {}", id, first);
            }
        }
        if (is_ordinary_[i]) {
            m.ordinary.insert(text, id, bytesOf);
            m.max_ordinary_bytes = std::max(m.max_ordinary_bytes, text.size());
            m.cut_at_spaces =
                m.cut_at_spaces && text.find(' ', text.find_first_not_of(' ')) == text.npos;
        } else if (m.kinds[i] != TokenKind::Byte) {
            m.named.insert(text, id, bytesOf);
        }
        if (m.byte_level && is_ordinary_[i] && text.size() == 1) {
            m.byte_ids[static_cast<unsigned char>(text[0])] = id;
        }
    }
    return {};
}

Result<void> ModelBuilder::addMerges() {
    if (data_.merges.empty() && model_->max_ordinary_bytes > 1) {
        return fail(ErrorCode::Corrupt, "tokenizer.ggml.merges: missing or empty");
    }
    model_->merges = MergeTable(data_.merges.size());
    for (size_t i = 0; i < data_.merges.size(); ++i) {
        const std::string_view text = data_.merges[i];
        const size_t space = text.find(' ', 1);  // from 1: the left part is never empty
        if (text.empty() || space == text.npos || space + 1 == text.size() ||
            text.find(' ', space + 1) != text.npos) {
            return fail(ErrorCode::Corrupt,
                        "tokenizer.ggml.merges[{}]: not two tokens with one space between them", i);
        }
        BV_TRY(addMerge(static_cast<uint32_t>(i), text.substr(0, space), text.substr(space + 1)));
    }
    return {};
}

Result<void> ModelBuilder::addMerge(uint32_t rank, std::string_view left, std::string_view right) {
    const std::string joined = std::string(left) + std::string(right);
    const TokenId ids[] = {findStored(left), findStored(right), findStored(joined)};
    for (size_t i = 0; i < 3; ++i) {
        if (ids[i] < 0) {
            constexpr const char* kParts[] = {"left part", "right part", "result"};
            return fail(ErrorCode::Corrupt, "tokenizer.ggml.merges[{}]: its {} is not a token",
                        rank, kParts[i]);
        }
    }
    const auto merged = static_cast<size_t>(ids[2]);
    // Ordinary text must not become a marker, whatever the file says.
    if (isAdded(model_->kinds[merged]) && !isWhiteSpace(model_->bytesOf(ids[2]))) {
        return {};
    }
    if (!model_->merges.insert(ids[0], ids[1], rank, ids[2])) {
        return fail(ErrorCode::Corrupt, "tokenizer.ggml.merges[{}]: the same pair as merge {}",
                    rank, model_->merges.find(ids[0], ids[1]).rank);
    }
    return {};
}

Result<void> ModelBuilder::rankScores() {
    std::vector<uint32_t> order(data_.scores.size());
    std::iota(order.begin(), order.end(), 0U);
    for (size_t id = 0; id < order.size(); ++id) {
        if (std::isnan(data_.scores[id])) {
            return fail(ErrorCode::Corrupt, "tokenizer.ggml.scores[{}]: not a number", id);
        }
    }
    const std::vector<float>& scores = data_.scores;
    std::sort(order.begin(), order.end(),
              [&](uint32_t a, uint32_t b) { return scores[a] > scores[b]; });
    model_->score_ranks.resize(order.size());
    uint32_t rank = 0;
    for (size_t i = 0; i < order.size(); ++i) {
        rank += i > 0 && scores[order[i]] < scores[order[i - 1]] ? 1U : 0U;
        model_->score_ranks[order[i]] = rank;
    }
    return {};
}

Result<void> ModelBuilder::setSpecialIds() {
    TokenizerModel& m = *model_;

    struct Field {
        const char* key;
        std::optional<uint32_t> value;
        std::optional<TokenId>* target;
    };

    const Field fields[] = {
        {"bos_token_id", data_.bos, &m.bos},     {"eos_token_id", data_.eos, &m.eos},
        {"eot_token_id", data_.eot, &m.eot},     {"eom_token_id", data_.eom, &m.eom},
        {"unknown_token_id", data_.unk, &m.unk}, {"padding_token_id", data_.pad, &m.pad}};
    for (const Field& field : fields) {
        if (!field.value) {
            continue;
        }
        if (*field.value >= data_.tokens.size()) {
            return fail(ErrorCode::Corrupt,
                        "tokenizer.ggml.{}: {} is outside the vocabulary of {} tokens", field.key,
                        *field.value, data_.tokens.size());
        }
        *field.target = static_cast<TokenId>(*field.value);
    }
    for (const std::optional<TokenId>& id : {m.eos, m.eot, m.eom}) {
        if (id) {
            m.ends_generation[static_cast<size_t>(*id)] = true;
        }
    }
    for (const uint32_t id : data_.ends) {
        if (id >= data_.tokens.size()) {
            return fail(ErrorCode::Corrupt,
                        "eos_token_id: {} is outside the vocabulary of {} tokens", id,
                        data_.tokens.size());
        }
        m.ends_generation[id] = true;
    }
    const bool wants_bos = data_.add_bos.value_or(!m.byte_level || m.split == SplitRule::Llama3);
    m.add_bos = wants_bos && m.bos.has_value();
    return {};
}

Result<void> ModelBuilder::setSubstitute() {
    TokenizerModel& m = *model_;
    // A control token must not come out of ordinary text, so it is no substitute either.
    if (m.unk && m.kinds[static_cast<size_t>(*m.unk)] != TokenKind::Control) {
        m.substitute = *m.unk;
    }
    const auto missing = std::find(m.byte_ids.begin(), m.byte_ids.end(), -1);
    if (!m.byte_level && missing != m.byte_ids.end() && m.substitute < 0) {
        return fail(ErrorCode::Corrupt,
                    "tokenizer.ggml.tokens: no token for byte 0x{:02X} and no unknown token",
                    missing - m.byte_ids.begin());
    }
    return {};
}

Result<void> ModelBuilder::collectAdded() {
    TokenizerModel& m = *model_;
    for (const AddedTokenRule& rule : data_.added_rules) {
        if (rule.id >= m.kinds.size() || !isAdded(m.kinds[rule.id])) {
            return fail(ErrorCode::Corrupt, "added token {}: not an added token of this vocabulary",
                        rule.id);
        }
        m.added_rules[static_cast<TokenId>(rule.id)] = rule;
    }
    for (size_t i = 0; i < m.kinds.size(); ++i) {
        const auto id = static_cast<TokenId>(i);
        const std::string_view text = m.bytesOf(id);
        if (!isAdded(m.kinds[i]) || text.empty()) {
            continue;
        }
        if (text.size() > TokenTrie::kMaxTokenBytes) {
            return fail(ErrorCode::Unsupported,
                        "tokenizer.ggml.tokens[{}]: an added token of {} bytes, more than {}", id,
                        text.size(), TokenTrie::kMaxTokenBytes);
        }
        const auto rule = m.added_rules.find(id);
        const bool normalized = rule != m.added_rules.end() && rule->second.normalized;
        (normalized ? m.added_normalized : m.added).add(text, id);
        m.ends_generation[i] = m.ends_generation[i] || contains(kEndTokens, text);
        m.hidden[i] = m.kinds[i] == TokenKind::Control && !contains(kParsedTokens, text);
    }
    return {};
}

}  // namespace

std::optional<std::string> bytesOfOrdinary(std::string_view stored, bool byte_level) {
    if (byte_level) {
        return bytesOfStoredToken(stored);
    }
    std::string bytes;
    for (size_t mark = stored.find(kSpaceMark); mark != stored.npos;
         mark = stored.find(kSpaceMark)) {
        bytes += stored.substr(0, mark);
        bytes += ' ';
        stored.remove_prefix(mark + kSpaceMark.size());
    }
    bytes += stored;
    return bytes;
}

std::optional<uint8_t> byteOfToken(std::string_view stored) {
    const auto digit = [](char c) {
        if (c >= '0' && c <= '9') {
            return c - '0';
        }
        return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    };
    if (stored.size() != 6 || stored.substr(0, 3) != "<0x" || stored[5] != '>') {
        return std::nullopt;
    }
    const int high = digit(stored[3]);
    const int low = digit(stored[4]);
    if (high < 0 || low < 0) {
        return std::nullopt;
    }
    return static_cast<uint8_t>(high * 16 + low);
}

Result<std::unique_ptr<TokenizerModel>> buildTokenizerModel(VocabularyData data) {
    return ModelBuilder(std::move(data)).build();
}

}  // namespace belvedere::inference::detail
