// SPDX-License-Identifier: Apache-2.0
#include "tests/inference/format/model_probe.h"

#include "inference/chat/template.h"
#include "inference/engine.h"
#include "inference/format/gguf.h"
#include "inference/format/gguf_vocabulary.h"
#include "inference/model/gguf_source.h"
#include "inference/model/weights.h"
#include "inference/tokenizer/tokenizer.h"

namespace belvedere::testing {

using namespace inference;  // the file is about it

namespace {

/// A sum that the compiler cannot leave out.
class Touched {
  public:
    void bytes(std::span<const std::byte> bytes) {
        for (const std::byte byte : bytes) {
            sum_ = sum_ + static_cast<unsigned>(byte);
        }
    }

    void text(std::string_view text) { bytes(std::as_bytes(std::span(text))); }

    void value(const GgufValue& value) {
        if (const auto* string = std::get_if<std::string_view>(&value.value)) {
            text(*string);
        } else if (const auto* array = std::get_if<GgufArray>(&value.value)) {
            bytes(array->bytes);
            for (const std::string_view element : array->strings) {
                text(element);
            }
        }
    }

  private:
    volatile unsigned sum_ = 0;
};

void touchAll(const GgufFile& file) {
    Touched touched;
    for (const std::string_view key : file.keys()) {
        touched.text(key);
        touched.value(*file.findValue(key));
    }
    for (const ModelTensor& tensor : file.tensors()) {
        touched.text(tensor.name);
        touched.bytes(tensor.bytes);
    }
}

/// Takes text only: the tokens do not matter.
class NoSink : public GenerationSink {
  public:
    void onPrefill(size_t /*n_done*/, size_t /*n_total*/) override {}

    void onText(std::string_view /*text*/, std::span<const TokenId> /*ids*/) override {}
};

}  // namespace

Result<void> readModel(std::span<const std::byte> bytes) {
    const GgufFile file = BV_TRY(GgufFile::parse(bytes, "probe"));
    touchAll(file);
    if (const auto source = BV_TRY(file.findString("tokenizer.chat_template"))) {
        // A template that does not compile leaves a model that cannot chat: no reason to refuse it.
        static_cast<void>(ChatTemplate::compile(*source, {}, "probe"));
    }
    const auto tokenizer = BV_TRY(Tokenizer::create(BV_TRY(vocabularyFromGguf(file))));
    for (const SpecialTokens mode : {SpecialTokens::Plain, SpecialTokens::Recognise}) {
        static_cast<void>(
            tokenizer->decode(tokenizer->encode("the <|im_end|> \xFF\xC3\xA9", mode)));
    }
    const GgufSource source(BV_TRY(GgufFile::parse(bytes, "probe")));
    const ModelConfig config = BV_TRY(source.config({}));
    return checkTensors(source, AdapterSet(), config);
}

Result<void> decodeOneToken(const std::string& path) {
    EngineConfig config;
    config.n_threads = 1;
    config.prefill_chunk = 8;
    const auto engine = BV_TRY(Engine::load({path, {}}, config, nullptr, {}));
    GenerateRequest request;
    request.sequence = engine->openSequence();
    request.prompt.resize(std::min<size_t>(12, engine->info().context_tokens - 1));
    for (size_t i = 0; i < request.prompt.size(); ++i) {
        request.prompt[i] = static_cast<TokenId>((i * 37 + 1) % engine->info().vocab_size);
    }
    request.max_tokens = 1;
    request.ignore_end_of_turn = true;
    if (request.prompt.empty()) {
        return {};  // a window of one token has no room for a prompt
    }
    NoSink sink;
    const GenerationStats stats = BV_TRY(engine->generate(request, sink, {}));
    if (stats.n_generated != 1) {
        return fail(ErrorCode::Internal, "{}: generated {} tokens", path, stats.n_generated);
    }
    return {};
}

}  // namespace belvedere::testing
