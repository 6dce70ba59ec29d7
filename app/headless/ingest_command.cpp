// SPDX-License-Identifier: Apache-2.0
// ingest: reads a repository and prints its tokens by folder, what was skipped and why.
#include <map>

#include <nlohmann/json.hpp>

#include "agent/model/engine_model.h"
#include "app/headless/cli.h"
#include "app/headless/runtime.h"
#include "inference/inspect.h"

namespace belvedere::app {
namespace {

constexpr size_t kMaxDepth = 2;

void printTree(const std::vector<tools::TreeNode>& tree, size_t index, size_t depth) {
    const tools::TreeNode& node = tree[index];
    fmt::print("{:>10} {:>7}  {:{}}{}{}\n", node.n_tokens, node.n_files, "", depth * 2, node.name,
               node.is_folder ? "/" : "");
    for (const int child : node.children) {
        if (depth < kMaxDepth && tree[static_cast<size_t>(child)].is_folder) {
            printTree(tree, static_cast<size_t>(child), depth + 1);
        }
    }
}

void printReport(const tools::Repository& repository, const tools::IngestReport& report) {
    fmt::print("    tokens   files\n");
    printTree(*repository.tree(), 0, 0);
    const double seconds = report.walk_seconds + report.read_seconds + report.index_seconds;
    fmt::print(
        "\n{} files, {} pieces, {} tokens, {:.1f} MB in {:.2f} s (walk {:.2f}, read {:.2f}, index "
        "{:.2f})\n",
        report.n_files, report.n_pieces, report.n_tokens, static_cast<double>(report.n_bytes) / 1e6,
        seconds, report.walk_seconds, report.read_seconds, report.index_seconds);
    std::map<tools::SkipReason, std::vector<const tools::SkippedFile*>> skipped;
    for (const tools::SkippedFile& file : report.skipped) {
        skipped[file.reason].push_back(&file);
    }
    for (const auto& [reason, files] : skipped) {
        fmt::print("skipped, {}: {}\n", tools::skipReasonName(reason), files.size());
        for (const tools::SkippedFile* file : files) {
            fmt::print("  {}{}{}\n", file->path, file->detail.empty() ? "" : ": ", file->detail);
        }
    }
}

void printJson(const tools::Repository& repository, const tools::IngestReport& report) {
    agent::Json skipped = agent::Json::array();
    for (const tools::SkippedFile& file : report.skipped) {
        skipped.push_back({{"path", file.path},
                           {"reason", tools::skipReasonName(file.reason)},
                           {"detail", file.detail}});
    }
    const agent::Json json = {{"root", repository.root()},
                              {"is_git", report.is_git},
                              {"head", report.head},
                              {"n_files", report.n_files},
                              {"n_pieces", report.n_pieces},
                              {"n_bytes", report.n_bytes},
                              {"n_tokens", report.n_tokens},
                              {"walk_seconds", report.walk_seconds},
                              {"read_seconds", report.read_seconds},
                              {"index_seconds", report.index_seconds},
                              {"skipped", skipped}};
    fmt::print("{}\n", json.dump(-1, ' ', false, agent::Json::error_handler_t::replace));
}

}  // namespace

Result<void> runIngest(const Arguments& arguments, std::stop_token stop) {
    const std::string path = !arguments.repository.empty()   ? arguments.repository
                             : !arguments.positional.empty() ? arguments.positional.front()
                                                             : "";
    if (path.empty()) {
        return fail(ErrorCode::InvalidArgument, "the folder is missing: belvedere ingest PATH");
    }
    const Config config = BV_TRY(configFor(arguments));
    const inference::LoadRequest load = BV_TRY(modelFor(arguments, config));
    const std::shared_ptr<const inference::Tokenizer> tokenizer =
        BV_TRY(inference::loadTokenizer(load.model_path));
    TerminalSink sink(arguments.json ? OutputStyle::Json : OutputStyle::Text);
    const std::shared_ptr<tools::Repository> repository = BV_TRY(ingestRepository(
        path, config, agent::makeTokenCounter(tokenizer, load.model_path), sink, stop));
    const std::shared_ptr<const tools::IngestReport> report = repository->report();
    if (arguments.json) {
        printJson(*repository, *report);
    } else {
        printReport(*repository, *report);
    }
    return {};
}

}  // namespace belvedere::app
