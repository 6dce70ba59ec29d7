// SPDX-License-Identifier: Apache-2.0
// Any bytes as tokenizer.json: an error or a tokenizer that encodes and decodes within its
// vocabulary.
#include <cstddef>
#include <cstdint>

#include "inference/tokenizer/tokenizer.h"
#include "inference/tokenizer/tokenizer_json.h"
#include "kernels/base/check.h"

namespace {

using namespace belvedere;
using namespace belvedere::inference;

void useTokenizer(const Tokenizer& tokenizer, std::string_view text) {
    for (const SpecialTokens mode : {SpecialTokens::Plain, SpecialTokens::Recognise}) {
        const std::vector<TokenId> ids = tokenizer.encode(text, mode);
        for (const TokenId id : ids) {
            BV_CHECK(id >= 0 && static_cast<size_t>(id) < tokenizer.vocabSize());
            BV_CHECK(mode == SpecialTokens::Recognise || tokenizer.kind(id) != TokenKind::Control);
        }
        static_cast<void>(tokenizer.decode(ids));
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes are text here.
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    Result<VocabularyData> vocabulary = fromTokenizerJson(text, text);
    if (!vocabulary) {
        vocabulary = fromTokenizerJson(text);
    }
    if (!vocabulary) {
        return 0;
    }
    const auto tokenizer = Tokenizer::create(std::move(*vocabulary));
    if (tokenizer) {
        useTokenizer(**tokenizer, text);
        useTokenizer(**tokenizer, "it's 12 \xFF\xCC\x81 <s> ab\r\n");
    }
    return 0;
}
