// SPDX-License-Identifier: Apache-2.0
// tokens, render, logits: what anyone needs to compare this engine with a reference.
#include <nlohmann/json.hpp>

#include "app/headless/cli.h"
#include "inference/chat/render_command.h"
#include "inference/inspect.h"

namespace belvedere::app {
namespace {

Result<void> require(const std::string& value, const char* option) {
    if (value.empty()) {
        return fail(ErrorCode::InvalidArgument, "{} is missing: see belvedere --help", option);
    }
    return {};
}

Result<std::vector<inference::TokenId>> readIds(const std::string& path) {
    const std::string text = BV_TRY(readTextFile(path));
    const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
    if (!json.is_array()) {
        return fail(ErrorCode::InvalidArgument, "{}: expected a JSON array of token ids", path);
    }
    std::vector<inference::TokenId> ids;
    ids.reserve(json.size());
    for (const nlohmann::json& id : json) {
        if (!id.is_number_unsigned() || id.get<uint64_t>() > INT32_MAX) {
            return fail(ErrorCode::InvalidArgument, "{}: entry {} is no token id: {}", path,
                        ids.size(), id.dump());
        }
        ids.push_back(id.get<inference::TokenId>());
    }
    return ids;
}

Result<std::vector<std::shared_ptr<const inference::Media>>> readMedia(
    const std::vector<MediaArgument>& files) {
    std::vector<std::shared_ptr<const inference::Media>> media;
    for (const MediaArgument& file : files) {
        media.push_back(std::make_shared<const inference::Media>(
            BV_TRY(inference::readMedia(file.kind, file.path))));
    }
    return media;
}

}  // namespace

Result<void> runTokens(const Arguments& arguments, std::stop_token /*stop*/) {
    BV_TRY(require(arguments.model, "--model FILE"));
    const std::unique_ptr<inference::Tokenizer> tokenizer =
        BV_TRY(inference::loadTokenizer(arguments.model));
    const std::string text = BV_TRY(readStandardInput());
    const auto mode =
        arguments.plain ? inference::SpecialTokens::Plain : inference::SpecialTokens::Recognise;
    fmt::print("{}\n", nlohmann::json(tokenizer->encode(text, mode)).dump());
    return {};
}

Result<void> runRender(const Arguments& arguments, std::stop_token /*stop*/) {
    BV_TRY(require(arguments.input, "--input FILE"));
    if (arguments.template_file.empty() == arguments.model.empty()) {
        return fail(ErrorCode::InvalidArgument, "give either --template FILE or --model FILE");
    }
    const std::string source = arguments.template_file.empty()
                                   ? BV_TRY(inference::readChatTemplate(arguments.model))
                                   : BV_TRY(readTextFile(arguments.template_file));
    const std::string input = BV_TRY(readTextFile(arguments.input));
    const Result<std::string> rendered = inference::renderFromJson(source, input);
    if (!rendered) {
        // A template that refuses its input is a failure of the run (exit code 1), not of the
        // command line.
        return fail(ErrorCode::Unsupported, "{}", rendered.error().message);
    }
    std::fwrite(rendered->data(), 1, rendered->size(), stdout);
    return {};
}

Result<void> runLogits(const Arguments& arguments, std::stop_token stop) {
    BV_TRY(require(arguments.model, "--model FILE"));
    BV_TRY(require(arguments.input, "--input FILE"));
    BV_TRY(require(arguments.output, "--output FILE"));
    inference::LogitsRequest request;
    request.load = {arguments.model, arguments.adapters, arguments.mmproj};
    request.ids = BV_TRY(readIds(arguments.input));
    request.compute = arguments.compute.value_or(inference::Compute::Exact);
    request.attention = arguments.attention.value_or(inference::Attention::Msa);
    request.chunk = arguments.chunk.value_or(0);
    request.n_threads = arguments.n_threads.value_or(0);
    request.observe = arguments.all;
    request.media = BV_TRY(readMedia(arguments.media));
    return inference::writeLogits(arguments.output,
                                  BV_TRY(inference::computeLogits(request, stop)));
}

}  // namespace belvedere::app
