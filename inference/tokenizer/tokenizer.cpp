// SPDX-License-Identifier: Apache-2.0
#include "inference/tokenizer/tokenizer.h"

#include "inference/tokenizer/byte_alphabet.h"
#include "inference/tokenizer/tokenizer_model.h"
#include "kernels/base/check.h"

namespace belvedere::inference {

Result<std::unique_ptr<Tokenizer>> Tokenizer::create(VocabularyData data) {
    std::unique_ptr<detail::TokenizerModel> model =
        BV_TRY(detail::buildTokenizerModel(std::move(data)));
    return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(model)));
}

Tokenizer::Tokenizer(std::unique_ptr<const detail::TokenizerModel> model)
    : model_(std::move(model)) {}

Tokenizer::~Tokenizer() = default;

std::vector<TokenId> Tokenizer::encode(std::span<const TextSpan> spans) const {
    std::vector<TokenId> ids;
    detail::encodeSpans(*model_, spans, ids);
    return ids;
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, SpecialTokens mode) const {
    const TextSpan span{text, mode == SpecialTokens::Recognise};
    return encode({&span, 1});
}

std::string Tokenizer::decode(std::span<const TokenId> ids) const {
    std::string text;
    for (const TokenId id : ids) {
        text += bytesOf(id);
    }
    return text;
}

std::string_view Tokenizer::bytesOf(TokenId id) const {
    BV_CHECK(id >= 0 && static_cast<size_t>(id) < vocabSize());
    return model_->bytesOf(id);
}

TokenKind Tokenizer::kind(TokenId id) const {
    BV_CHECK(id >= 0 && static_cast<size_t>(id) < vocabSize());
    return model_->kinds[static_cast<size_t>(id)];
}

size_t Tokenizer::vocabSize() const {
    return model_->kinds.size();
}

std::optional<TokenId> Tokenizer::find(std::string_view token_text) const {
    const auto textOf = [this](TokenId id) { return model_->bytesOf(id); };
    if (const TokenId id = model_->named.find(token_text, textOf); id >= 0) {
        return id;
    }
    if (const std::optional<uint8_t> byte = detail::byteOfToken(token_text);
        byte && !model_->byte_level) {
        const TokenId id = model_->byte_ids[*byte];
        return id >= 0 ? std::optional<TokenId>(id) : std::nullopt;
    }
    const std::optional<std::string> bytes =
        detail::bytesOfOrdinary(token_text, model_->byte_level);
    const TokenId id = bytes ? model_->findOrdinary(*bytes) : -1;
    return id >= 0 ? std::optional<TokenId>(id) : std::nullopt;
}

std::optional<TokenId> Tokenizer::bos() const {
    return model_->bos;
}

std::optional<TokenId> Tokenizer::eos() const {
    return model_->eos;
}

std::optional<TokenId> Tokenizer::eot() const {
    return model_->eot;
}

std::optional<TokenId> Tokenizer::eom() const {
    return model_->eom;
}

std::optional<TokenId> Tokenizer::unk() const {
    return model_->unk;
}

std::optional<TokenId> Tokenizer::pad() const {
    return model_->pad;
}

bool Tokenizer::addBos() const {
    return model_->add_bos;
}

bool Tokenizer::addEos() const {
    return model_->add_eos;
}

bool Tokenizer::isEndOfGeneration(TokenId id) const {
    return id >= 0 && static_cast<size_t>(id) < vocabSize() &&
           model_->ends_generation[static_cast<size_t>(id)];
}

bool Tokenizer::hiddenFromUser(TokenId id) const {
    return id >= 0 && static_cast<size_t>(id) < vocabSize() &&
           model_->hidden[static_cast<size_t>(id)];
}

}  // namespace belvedere::inference
