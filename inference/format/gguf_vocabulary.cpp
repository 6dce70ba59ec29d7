// SPDX-License-Identifier: Apache-2.0
#include "inference/format/gguf_vocabulary.h"

#include <cstring>

namespace belvedere::inference {
namespace {

template <class T>
std::vector<T> numbers(const GgufArray& array) {
    std::vector<T> values(array.n_elements);
    if (!values.empty()) {
        std::memcpy(values.data(), array.bytes.data(), values.size() * sizeof(T));
    }
    return values;
}

std::vector<std::string> texts(const GgufArray& array) {
    return {array.strings.begin(), array.strings.end()};
}

Result<void> checkLength(const GgufFile& file,
                         const char* key,
                         size_t n_elements,
                         size_t n_tokens) {
    if (n_elements != n_tokens) {
        return fail(ErrorCode::Corrupt, "{}: {} has {} elements for {} tokens", file.name(), key,
                    n_elements, n_tokens);
    }
    return {};
}

/// Some files hold token types as u32: the same bits for every valid value.
Result<const GgufArray*> findTypes(const GgufFile& file) {
    constexpr const char* kKey = "tokenizer.ggml.token_type";
    const GgufValue* value = file.findValue(kKey);
    if (value != nullptr) {
        const auto* array = std::get_if<GgufArray>(&value->value);
        if (array != nullptr && array->element_type == GgufType::U32) {
            return array;
        }
    }
    return file.findArray(kKey, GgufType::I32);
}

Result<std::optional<uint32_t>> findId(const GgufFile& file, const char* key, size_t n_tokens) {
    const std::optional<uint64_t> id = BV_TRY(file.findUint(key));
    // Converters write the largest u32 for "none".
    if (!id || *id == UINT32_MAX) {
        return std::optional<uint32_t>();
    }
    if (*id >= n_tokens) {
        return fail(ErrorCode::Corrupt, "{}: {} is {}, but there are {} tokens", file.name(), key,
                    *id, n_tokens);
    }
    return std::optional(static_cast<uint32_t>(*id));
}

}  // namespace

Result<VocabularyData> vocabularyFromGguf(const GgufFile& file) {
    VocabularyData data;
    data.model = BV_TRY(file.requiredString("tokenizer.ggml.model"));
    data.pre = BV_TRY(file.findString("tokenizer.ggml.pre")).value_or(std::string_view());
    const GgufArray* tokens = BV_TRY(file.findArray("tokenizer.ggml.tokens", GgufType::String));
    if (tokens == nullptr || tokens->n_elements == 0) {
        return fail(ErrorCode::Corrupt, "{}: tokenizer.ggml.tokens is missing or empty",
                    file.name());
    }
    const size_t n_tokens = tokens->n_elements;
    data.tokens = texts(*tokens);
    if (const GgufArray* scores = BV_TRY(file.findArray("tokenizer.ggml.scores", GgufType::F32))) {
        BV_TRY(checkLength(file, "tokenizer.ggml.scores", scores->n_elements, n_tokens));
        data.scores = numbers<float>(*scores);
    }
    if (const GgufArray* types = BV_TRY(findTypes(file))) {
        BV_TRY(checkLength(file, "tokenizer.ggml.token_type", types->n_elements, n_tokens));
        data.types = numbers<int32_t>(*types);
    }
    if (const GgufArray* merges =
            BV_TRY(file.findArray("tokenizer.ggml.merges", GgufType::String))) {
        data.merges = texts(*merges);
    }
    data.bos = BV_TRY(findId(file, "tokenizer.ggml.bos_token_id", n_tokens));
    data.eos = BV_TRY(findId(file, "tokenizer.ggml.eos_token_id", n_tokens));
    data.eot = BV_TRY(findId(file, "tokenizer.ggml.eot_token_id", n_tokens));
    data.eom = BV_TRY(findId(file, "tokenizer.ggml.eom_token_id", n_tokens));
    data.unk = BV_TRY(findId(file, "tokenizer.ggml.unknown_token_id", n_tokens));
    data.pad = BV_TRY(findId(file, "tokenizer.ggml.padding_token_id", n_tokens));
    // Without the key a SentencePiece model and Llama 3 begin every text with BOS.
    const bool bos_by_default = data.model == "llama" || data.pre == "llama-bpe";
    data.add_bos = BV_TRY(file.findBool("tokenizer.ggml.add_bos_token")).value_or(bos_by_default);
    data.add_eos = BV_TRY(file.findBool("tokenizer.ggml.add_eos_token")).value_or(false);
    data.add_space_prefix =
        BV_TRY(file.findBool("tokenizer.ggml.add_space_prefix")).value_or(data.model == "llama");
    data.remove_extra_whitespaces =
        BV_TRY(file.findBool("tokenizer.ggml.remove_extra_whitespaces")).value_or(false);
    return data;
}

}  // namespace belvedere::inference
