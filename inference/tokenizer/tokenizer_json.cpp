// SPDX-License-Identifier: Apache-2.0
#include "inference/tokenizer/tokenizer_json.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "inference/tokenizer/split.h"

namespace belvedere::inference {
namespace {

using Json = nlohmann::json;

// No published vocabulary comes near; a small file must not make us fill a huge list of gaps.
constexpr uint64_t kMaxTokens = 1 << 20;

constexpr int32_t kTypeNormal = 1;
constexpr int32_t kTypeControl = 3;
constexpr int32_t kTypeUserDefined = 4;
constexpr int32_t kTypeUnused = 5;

/// The member, or a null value where there is none.
const Json& member(const Json& object, const char* key) {
    static const Json kNull;
    const auto found = object.is_object() ? object.find(key) : object.end();
    return object.is_object() && found != object.end() ? *found : kNull;
}

std::string stringOf(const Json& object, const char* key) {
    const Json& value = member(object, key);
    return value.is_string() ? value.get_ref<const std::string&>() : std::string();
}

Result<bool> boolOf(const Json& object, const char* key, bool fallback, const std::string& where) {
    const Json& value = member(object, key);
    if (value.is_null()) {
        return fallback;
    }
    if (!value.is_boolean()) {
        return fail(ErrorCode::Corrupt, "{}.{}: not true or false", where, key);
    }
    return value.get<bool>();
}

/// An option that changes the result and that we do not have: it must be absent, null, false, zero
/// or empty.
Result<void> refuse(const Json& object, const char* key, const std::string& where) {
    const Json& value = member(object, key);
    const bool off = value.is_null() || value == false || (value.is_number() && value == 0) ||
                     (value.is_string() && value.get_ref<const std::string&>().empty());
    if (!off) {
        return fail(ErrorCode::Unsupported, "{}.{}: only its default is supported", where, key);
    }
    return {};
}

class JsonReader {
  public:
    explicit JsonReader(const Json& root) : root_(root) {}

    Result<VocabularyData> read() {
        data_.model = "gpt2";
        data_.add_bos = false;
        BV_TRY(readModel());
        BV_TRY(readAddedTokens());
        BV_TRY(readNormalizer(member(root_, "normalizer"), "normalizer"));
        BV_TRY(readPreTokenizer());
        BV_TRY(readDecoder());
        BV_TRY(readPostProcessor(member(root_, "post_processor"), "post_processor"));
        return std::move(data_);
    }

  private:
    Result<void> readModel();
    Result<void> readVocabulary(const Json& vocab);
    Result<void> readMerges(const Json& merges);
    Result<void> readAddedTokens();
    Result<void> readAddedToken(const Json& token, const std::string& where);
    Result<void> readNormalizer(const Json& normalizer, const std::string& where);
    Result<void> readPreTokenizer();
    Result<void> readPreTokenizerStep(const Json& step, const std::string& where);
    Result<void> readSplit(const Json& step, const std::string& where);
    Result<void> readDecoder();
    Result<void> readPostProcessor(const Json& processor, const std::string& where);
    Result<void> setSplit(SplitRule rule, const std::string& where);
    Result<void> place(uint64_t id, std::string text, int32_t type, const std::string& where);

    const Json& root_;
    VocabularyData data_;
    bool single_digits_ = false;
    bool byte_level_ = false;
};

Result<void> JsonReader::place(uint64_t id,
                               std::string text,
                               int32_t type,
                               const std::string& where) {
    if (id >= kMaxTokens) {
        return fail(ErrorCode::Corrupt, "{}: id {} is above {}", where, id, kMaxTokens - 1);
    }
    if (id >= data_.tokens.size()) {
        data_.tokens.resize(id + 1);
        data_.types.resize(id + 1, kTypeUnused);
    }
    if (data_.types[id] != kTypeUnused && data_.tokens[id] != text) {
        return fail(ErrorCode::Corrupt, "{}: id {} belongs to another token already", where, id);
    }
    data_.tokens[id] = std::move(text);
    data_.types[id] = type;
    return {};
}

Result<void> JsonReader::readModel() {
    const Json& model = member(root_, "model");
    if (!model.is_object()) {
        return fail(ErrorCode::Corrupt, "model: missing");
    }
    const std::string type = stringOf(model, "type");
    // Files of the first years have no type; what they hold shows in their members.
    if (type != "BPE" && !(type.empty() && model.contains("merges"))) {
        return fail(ErrorCode::Unsupported, "model.type: '{}' is not supported (known: BPE)", type);
    }
    for (const char* key :
         {"dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"}) {
        BV_TRY(refuse(model, key, "model"));
    }
    data_.ignore_merges = BV_TRY(boolOf(model, "ignore_merges", false, "model"));
    BV_TRY(readVocabulary(member(model, "vocab")));
    return readMerges(member(model, "merges"));
}

Result<void> JsonReader::readVocabulary(const Json& vocab) {
    if (!vocab.is_object()) {
        return fail(ErrorCode::Corrupt, "model.vocab: not an object");
    }
    data_.tokens.reserve(vocab.size());
    for (const auto& [text, id] : vocab.items()) {
        if (!id.is_number_unsigned()) {
            return fail(ErrorCode::Corrupt, "model.vocab['{}']: the id is not a whole number",
                        text);
        }
        BV_TRY(place(id.get<uint64_t>(), text, kTypeNormal, "model.vocab['" + text + "']"));
    }
    return {};
}

Result<void> JsonReader::readMerges(const Json& merges) {
    if (!merges.is_array()) {
        return fail(ErrorCode::Corrupt, "model.merges: not a list");
    }
    data_.merges.reserve(merges.size());
    for (size_t i = 0; i < merges.size(); ++i) {
        const Json& merge = merges[i];
        if (merge.is_string()) {  // the older form: one string
            data_.merges.push_back(merge.get<std::string>());
        } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
                   merge[1].is_string()) {
            data_.merges.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
        } else {
            return fail(ErrorCode::Corrupt, "model.merges[{}]: not a pair of tokens", i);
        }
    }
    return {};
}

Result<void> JsonReader::readAddedTokens() {
    const Json& list = member(root_, "added_tokens");
    if (list.is_null()) {
        return {};
    }
    if (!list.is_array()) {
        return fail(ErrorCode::Corrupt, "added_tokens: not a list");
    }
    for (size_t i = 0; i < list.size(); ++i) {
        BV_TRY(readAddedToken(list[i], fmt::format("added_tokens[{}]", i)));
    }
    return {};
}

Result<void> JsonReader::readAddedToken(const Json& token, const std::string& where) {
    const Json& id = member(token, "id");
    std::string content = stringOf(token, "content");
    if (!id.is_number_unsigned() || content.empty()) {
        return fail(ErrorCode::Corrupt, "{}: no id or no content", where);
    }
    BV_TRY(refuse(token, "single_word", where));
    const bool special = BV_TRY(boolOf(token, "special", false, where));
    AddedTokenRule rule;
    rule.strip_left = BV_TRY(boolOf(token, "lstrip", false, where));
    rule.strip_right = BV_TRY(boolOf(token, "rstrip", false, where));
    rule.normalized = BV_TRY(boolOf(token, "normalized", !special, where));
    BV_TRY(place(id.get<uint64_t>(), std::move(content), special ? kTypeControl : kTypeUserDefined,
                 where));
    rule.id = id.get<uint32_t>();
    if (rule.strip_left || rule.strip_right || rule.normalized) {
        data_.added_rules.push_back(rule);
    }
    return {};
}

Result<void> JsonReader::readNormalizer(const Json& normalizer, const std::string& where) {
    if (normalizer.is_null()) {
        return {};
    }
    const std::string type = stringOf(normalizer, "type");
    const Json& steps = member(normalizer, "normalizers");
    if (type == "NFC") {
        data_.nfc = true;
        return {};
    }
    if (type != "Sequence" || !steps.is_array()) {
        return fail(ErrorCode::Unsupported, "{}: '{}' is not supported (known: NFC)", where, type);
    }
    for (size_t i = 0; i < steps.size(); ++i) {
        if (stringOf(steps[i], "type") != "NFC") {
            return fail(ErrorCode::Unsupported,
                        "{}.normalizers[{}]: '{}' is not supported (known: NFC)", where, i,
                        stringOf(steps[i], "type"));
        }
        data_.nfc = true;
    }
    return {};
}

Result<void> JsonReader::readPreTokenizer() {
    const Json& root = member(root_, "pre_tokenizer");
    const Json& steps = member(root, "pretokenizers");
    if (stringOf(root, "type") == "Sequence" && steps.is_array()) {
        for (size_t i = 0; i < steps.size(); ++i) {
            BV_TRY(
                readPreTokenizerStep(steps[i], fmt::format("pre_tokenizer.pretokenizers[{}]", i)));
        }
    } else {
        BV_TRY(readPreTokenizerStep(root, "pre_tokenizer"));
    }
    if (!byte_level_) {
        return fail(ErrorCode::Unsupported,
                    "pre_tokenizer: no ByteLevel step; only byte-level BPE is supported");
    }
    if (data_.split == SplitRule::FromPre) {
        return fail(ErrorCode::Unsupported, "pre_tokenizer: no split pattern");
    }
    if (single_digits_ && data_.split != SplitRule::Gpt2) {
        return fail(ErrorCode::Unsupported,
                    "pre_tokenizer: Digits before a pattern other than that of GPT-2");
    }
    data_.split = single_digits_ ? SplitRule::SmolLm : data_.split;
    return {};
}

Result<void> JsonReader::readPreTokenizerStep(const Json& step, const std::string& where) {
    const std::string type = stringOf(step, "type");
    if (byte_level_) {
        return fail(ErrorCode::Unsupported, "{}: '{}' after ByteLevel", where, type);
    }
    if (type == "Split") {
        return readSplit(step, where);
    }
    if (type == "Digits") {
        if (!BV_TRY(boolOf(step, "individual_digits", false, where)) ||
            data_.split != SplitRule::FromPre) {
            return fail(ErrorCode::Unsupported,
                        "{}: Digits is only supported as the first step, one digit each", where);
        }
        single_digits_ = true;
        return {};
    }
    if (type == "ByteLevel") {
        BV_TRY(refuse(step, "add_prefix_space", where));
        byte_level_ = true;
        // Its own pattern, on by default, is that of GPT-2.
        return BV_TRY(boolOf(step, "use_regex", true, where)) ? setSplit(SplitRule::Gpt2, where)
                                                              : Result<void>();
    }
    return fail(ErrorCode::Unsupported,
                "{}: '{}' is not supported (known: Split, Digits, ByteLevel)", where, type);
}

Result<void> JsonReader::setSplit(SplitRule rule, const std::string& where) {
    if (data_.split != SplitRule::FromPre) {
        return fail(ErrorCode::Unsupported, "{}: a second split pattern", where);
    }
    data_.split = rule;
    return {};
}

Result<void> JsonReader::readSplit(const Json& step, const std::string& where) {
    const std::string pattern = stringOf(member(step, "pattern"), "Regex");
    const std::optional<SplitRule> rule = splitRuleOfPattern(pattern);
    if (!rule) {
        return fail(ErrorCode::Unsupported, "{}.pattern: unknown split pattern '{}'", where,
                    pattern);
    }
    const std::string behavior = stringOf(step, "behavior");
    const bool invert = BV_TRY(boolOf(step, "invert", false, where));
    // The patterns match everything, so keeping the matches and removing what is between them is
    // the same.
    if (!(behavior == "Isolated" && !invert) && !(behavior == "Removed" && invert)) {
        return fail(ErrorCode::Unsupported, "{}.behavior: '{}' is not supported (known: Isolated)",
                    where, behavior);
    }
    return setSplit(*rule, where);
}

Result<void> JsonReader::readDecoder() {
    const Json& decoder = member(root_, "decoder");
    if (!decoder.is_null() && stringOf(decoder, "type") != "ByteLevel") {
        return fail(ErrorCode::Unsupported, "decoder: '{}' is not supported (known: ByteLevel)",
                    stringOf(decoder, "type"));
    }
    return {};
}

/// Only what it says about BOS is of interest: encode never adds anything.
Result<void> JsonReader::readPostProcessor(const Json& processor, const std::string& where) {
    const std::string type = stringOf(processor, "type");
    if (processor.is_null() || type == "ByteLevel") {
        return {};
    }
    if (type == "TemplateProcessing") {
        const Json& single = member(processor, "single");
        const Json& first = single.is_array() && !single.empty() ? single[0] : single;
        const std::string name = stringOf(member(first, "SpecialToken"), "id");
        const auto token = std::find(data_.tokens.begin(), data_.tokens.end(), name);
        if (!name.empty() && token != data_.tokens.end()) {
            data_.bos = static_cast<uint32_t>(token - data_.tokens.begin());
            data_.add_bos = true;
        }
        return {};
    }
    const Json& steps = member(processor, "processors");
    if (type != "Sequence" || !steps.is_array()) {
        return fail(ErrorCode::Unsupported,
                    "{}: '{}' is not supported (known: ByteLevel, TemplateProcessing)", where,
                    type);
    }
    for (size_t i = 0; i < steps.size(); ++i) {
        if (stringOf(steps[i], "type") == "Sequence") {
            return fail(ErrorCode::Unsupported, "{}.processors[{}]: a sequence in a sequence",
                        where, i);
        }
        BV_TRY(readPostProcessor(steps[i], fmt::format("{}.processors[{}]", where, i)));
    }
    return {};
}

/// tokenizer_config.json names special tokens by text: a string, or an object with a member
/// "content".
Result<void> readConfig(const Json& config, VocabularyData& data) {
    const auto resolve = [&](const char* key, std::optional<uint32_t>& id) -> Result<void> {
        const Json& value = member(config, key);
        const std::string text =
            value.is_string() ? value.get<std::string>() : stringOf(value, "content");
        if (text.empty()) {
            return {};
        }
        const auto token = std::find(data.tokens.begin(), data.tokens.end(), text);
        if (token == data.tokens.end()) {
            return fail(ErrorCode::Corrupt, "tokenizer_config.json: {}: '{}' is not a token", key,
                        text);
        }
        id = static_cast<uint32_t>(token - data.tokens.begin());
        return {};
    };
    BV_TRY(resolve("bos_token", data.bos));
    BV_TRY(resolve("eos_token", data.eos));
    BV_TRY(resolve("unk_token", data.unk));
    BV_TRY(resolve("pad_token", data.pad));
    data.add_bos = BV_TRY(
        boolOf(config, "add_bos_token", data.add_bos.value_or(false), "tokenizer_config.json"));
    data.add_eos = BV_TRY(boolOf(config, "add_eos_token", false, "tokenizer_config.json"));
    return {};
}

}  // namespace

Result<VocabularyData> fromTokenizerJson(std::string_view json, std::string_view config_json) {
    const Json root = Json::parse(json, nullptr, false);
    if (!root.is_object()) {
        return fail(ErrorCode::Corrupt, "tokenizer.json: not a JSON object");
    }
    Result<VocabularyData> data = JsonReader(root).read();
    if (!data) {
        return failWithContext(std::move(data).error(), "tokenizer.json");
    }
    if (!config_json.empty()) {
        const Json config = Json::parse(config_json, nullptr, false);
        if (!config.is_object()) {
            return fail(ErrorCode::Corrupt, "tokenizer_config.json: not a JSON object");
        }
        BV_TRY(readConfig(config, *data));
    }
    return data;
}

}  // namespace belvedere::inference
