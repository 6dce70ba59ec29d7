// SPDX-License-Identifier: Apache-2.0
// models: what is supported, what is here, fetching and checking the default model.
#include <fmt/ranges.h>

#include "app/headless/cli.h"
#include "app/headless/model_library.h"
#include "app/headless/paths.h"
#include "app/headless/terminal_sink.h"
#include "inference/inspect.h"

namespace belvedere::app {
namespace {

void list(const ModelLibrary& library) {
    const ModelManifest& manifest = library.manifest();
    fmt::print("{}: {}\n{}\n", manifest.name, library.isInstalled() ? "installed" : "not installed",
               manifest.summary);
    for (const ModelPart& part : manifest.parts) {
        fmt::print("  {:<8} {} ({:.1f} MB, {})\n           {}\n           {}\n", part.role,
                   part.file, static_cast<double>(part.n_bytes) / 1e6, part.licence,
                   library.pathOf(part).string(), part.origin);
    }
    fmt::print("What to expect:\n");
    for (const std::string& limit : manifest.limits) {
        fmt::print("  - {}\n", limit);
    }
    const inference::SupportedFormats supported = inference::supportedFormats();
    fmt::print(
        "\nWhat --model opens: GGUF files, whole or split, and folders with config.json and "
        "safetensors\n  architectures: {}\n  weight types:  {}\n  tokenizers: "
        "   {}\n",
        fmt::join(supported.architectures, ", "), fmt::join(supported.weight_types, ", "),
        fmt::join(supported.tokenizers, ", "));
}

Result<void> show(const std::string& path) {
    const inference::ModelInfo info = BV_TRY(inference::inspectModel(path));
    fmt::print(
        "{}\n  architecture   {}\n  parameters     {:.1f} M\n  weights        {}\n  file           "
        "{:.1f} MB\n"
        "  layers         {}\n  vocabulary     {}\n  window         {} tokens\n  cache          {} "
        "bytes a token ({})\n"
        "  memory         {:.1f} MB of weights, {:.1f} MB read in the file, {:.1f} MB to work, "
        "{:.1f} MB of cache for the whole window\n"
        "  chat template  {}\n",
        info.name, info.architecture, static_cast<double>(info.n_parameters) / 1e6,
        info.weight_types, static_cast<double>(info.file_bytes) / 1e6, info.n_layers,
        info.vocab_size, info.context_tokens, info.cache_bytes_per_token, info.cache_types,
        static_cast<double>(info.memory.weights) / 1e6,
        static_cast<double>(info.memory.mapped) / 1e6,
        static_cast<double>(info.memory.scratch) / 1e6,
        static_cast<double>(info.memory.cache) / 1e6, info.chat_template);
    if (!info.vision.empty()) {
        fmt::print(
            "  images and video through the vision tower in {}; {:.1f} MB more while it reads\n",
            info.vision, static_cast<double>(info.memory.images) / 1e6);
    }
    for (const std::string& notice : info.notices) {
        fmt::print("  note: {}\n", notice);
    }
    return {};
}

}  // namespace

Result<void> runModels(const Arguments& arguments, std::stop_token stop) {
    const std::string action = arguments.positional.empty() ? "list" : arguments.positional[0];
    if (action == "show") {
        if (arguments.positional.size() < 2) {
            return fail(ErrorCode::InvalidArgument, "models show: the file is missing");
        }
        return show(arguments.positional[1]);
    }
    const ModelLibrary library = BV_TRY(ModelLibrary::open(resourceDir(), dataDir()));
    TerminalSink sink(OutputStyle::Text);
    const auto progress = [&sink](const FetchProgress& p) {
        sink.showProgress(fmt::format("{} {:.1f} of {:.1f} MB", p.what,
                                      static_cast<double>(p.n_bytes) / 1e6,
                                      static_cast<double>(p.n_bytes_total) / 1e6));
    };
    if (action == "list") {
        list(library);
        return {};
    }
    if (action == "fetch") {
        const Result<void> fetched = library.fetch(progress, stop);
        sink.clearProgress();
        return fetched;
    }
    if (action == "verify") {
        const Result<void> verified = library.verify(progress, stop);
        sink.clearProgress();
        if (verified) {
            fmt::print("{}: every part is as the manifest says\n", library.manifest().name);
        }
        return verified;
    }
    return fail(ErrorCode::InvalidArgument, "models {}: expected list, fetch, verify or show FILE",
                action);
}

}  // namespace belvedere::app
