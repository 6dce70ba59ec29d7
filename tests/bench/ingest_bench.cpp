// SPDX-License-Identifier: Apache-2.0
// Ingestion speed on a real folder: seconds and MB/s of each stage and of all together, then again
// with nothing changed. Given the questions of tests/e2e/make_questions.py about the same folder,
// also how often the defining line is among the pieces chosen, and within the best ones. Beside it:
// tests/bench/peer_hf_tokenizers.py tokenizes the same files.
//
//     ingest_bench MODEL.gguf|tokenizer.json FOLDER [THREADS [questions.json [BUDGET_TOKENS]]]
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "inference/format/gguf_vocabulary.h"
#include "inference/tokenizer/tokenizer.h"
#include "inference/tokenizer/tokenizer_json.h"
#include "tools/repository/filter.h"
#include "tools/repository/read_files.h"
#include "tools/repository/repository.h"
#include "tools/repository/source_text.h"
#include "tools/repository/walk.h"

namespace belvedere {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

class Counter final : public agent::TokenCounter {
  public:
    explicit Counter(std::unique_ptr<inference::Tokenizer> tokenizer)
        : tokenizer_(std::move(tokenizer)) {}

    [[nodiscard]] std::vector<int32_t> encode(std::string_view text) const override {
        return tokenizer_->encode(text, inference::SpecialTokens::Plain);
    }

    [[nodiscard]] std::string key() const override { return "bench"; }

  private:
    std::unique_ptr<inference::Tokenizer> tokenizer_;
};

std::string readText(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

Result<std::shared_ptr<const agent::TokenCounter>> openCounter(const fs::path& model) {
    std::unique_ptr<inference::Tokenizer> tokenizer;
    if (model.extension() == ".json") {
        tokenizer = BV_TRY(
            inference::Tokenizer::create(BV_TRY(inference::fromTokenizerJson(readText(model)))));
    } else {
        const auto file = BV_TRY(inference::GgufFile::open(model.native()));
        tokenizer =
            BV_TRY(inference::Tokenizer::create(BV_TRY(inference::vocabularyFromGguf(file))));
    }
    return std::make_shared<const Counter>(std::move(tokenizer));
}

/// Each stage alone, on one thread.
Result<void> printStages(const fs::path& root, const agent::TokenCounter& counter) {
    const tools::RepositoryConfig config;
    const tools::WalkResult walk = BV_TRY(tools::walkRepository(root, config.max_files, {}));
    tools::SafeReader reader(root);
    double read_s = 0;
    double filter_s = 0;
    double tokenize_s = 0;
    double words_s = 0;
    size_t n_bytes = 0;
    for (const std::string& path : walk.files) {
        std::string bytes;
        auto start = Clock::now();
        if (tools::skipByName(path) ||
            !reader.read(path, config.max_file_bytes, bytes).has_value()) {
            continue;
        }
        read_s += secondsSince(start);
        start = Clock::now();
        size_t bad_line = 0;
        const auto source =
            tools::skipByContent(bytes) ? std::nullopt : tools::readSourceText(bytes, bad_line);
        filter_s += secondsSince(start);
        if (!source) {
            continue;
        }
        n_bytes += source->text.size();
        start = Clock::now();
        const auto lines = tools::splitLines(source->text);
        const auto pieces = tools::cutIntoPieces(source->text);
        size_t n_tokens = 0;
        for (const auto& piece : pieces) {
            n_tokens += counter.encode(tools::pieceText(path, lines, piece)).size();
        }
        tokenize_s += secondsSince(start);
        start = Clock::now();
        const auto words = tools::wordsOfPieces(path, lines, pieces);
        words_s += secondsSince(start);
    }
    const double megabytes = static_cast<double>(n_bytes) / 1e6;
    fmt::print(
        "one thread, {:.1f} MB: read {:.0f} MB/s, filter {:.0f} MB/s, cut and tokenize {:.1f} "
        "MB/s, words {:.1f} MB/s\n",
        megabytes, megabytes / read_s, megabytes / filter_s, megabytes / tokenize_s,
        megabytes / words_s);
    return {};
}

Result<void> printIngestion(tools::Repository& repository, const char* what) {
    const auto start = Clock::now();
    const tools::IngestReport report = BV_TRY(repository.ingest({}, {}));
    const double seconds = secondsSince(start);
    const double megabytes = static_cast<double>(report.n_bytes) / 1e6;
    fmt::print(
        "{}: {} files ({} skipped, {} read), {:.1f} MB, {} pieces, {} tokens in {:.2f} s = {:.1f} "
        "MB/s; walk {:.2f} s, "
        "read to words {:.2f} s, of it waiting for the database {:.2f} s\n",
        what, report.n_files, report.skipped.size(), report.n_read, megabytes, report.n_pieces,
        report.n_tokens, seconds, megabytes / seconds, report.walk_seconds, report.read_seconds,
        report.index_seconds);
    return {};
}

bool holds(const agent::SourcePiece& piece, const std::string& path, size_t line) {
    return piece.path == path && piece.first_line <= line && line <= piece.last_line;
}

Result<void> printChoices(const tools::Repository& repository,
                          const fs::path& questions,
                          size_t budget_tokens) {
    const auto json = nlohmann::json::parse(readText(questions), nullptr, false);
    if (!json.is_object()) {
        return fail(ErrorCode::Corrupt, "{}: no questions", questions.native());
    }
    size_t n_asked = 0;
    size_t n_chosen = 0;
    size_t n_best = 0;
    size_t n_first = 0;
    double seconds = 0;
    for (const auto& group : json["groups"]) {
        if (fs::path(group["root"].get<std::string>()) != repository.root()) {
            continue;
        }
        for (const auto& question : group["questions"]) {
            if (question["path"].is_null()) {
                continue;
            }
            const auto start = Clock::now();
            const auto choice =
                BV_TRY(repository.choose(question["text"].get<std::string>(), budget_tokens, {}));
            seconds += secondsSince(start);
            const auto is_right = [&](const auto& piece) {
                return holds(*piece, question["path"], question["line"]);
            };
            const bool is_best = std::any_of(choice.best.begin(), choice.best.end(), is_right);
            n_asked += 1;
            n_chosen += std::any_of(choice.pieces.begin(), choice.pieces.end(), is_right) ? 1U : 0U;
            n_best += is_best ? 1U : 0U;
            n_first += !choice.best.empty() && is_right(choice.best.front()) ? 1U : 0U;
            if (!is_best) {
                fmt::print("  not among the best: {} ({}:{})\n",
                           question["text"].get<std::string>(), question["path"].get<std::string>(),
                           question["line"].get<size_t>());
            }
        }
    }
    if (n_asked > 0) {
        fmt::print(
            "{} questions, budget {}: defining line chosen {}, among the best {}, the first {}; "
            "{:.1f} ms each\n",
            n_asked, budget_tokens, n_chosen, n_best, n_first,
            seconds * 1e3 / static_cast<double>(n_asked));
    }
    return {};
}

Result<void> runBench(int argc, char** argv) {
    const auto counter = BV_TRY(openCounter(argv[1]));
    const fs::path root = fs::canonical(argv[2]);
    tools::RepositoryConfig config;
    config.n_threads = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 0;
    BV_TRY(printStages(root, *counter));
    const auto repository = BV_TRY(tools::Repository::attach(root, config, counter));
    BV_TRY(printIngestion(*repository, "first"));
    BV_TRY(printIngestion(*repository, "again"));
    if (argc > 4) {
        BV_TRY(printChoices(*repository, argv[4],
                            argc > 5 ? std::strtoul(argv[5], nullptr, 10) : 8192));
    }
    return {};
}

}  // namespace
}  // namespace belvedere

int main(int argc, char** argv) {
    if (argc < 3) {
        fmt::print(stderr,
                   "ingest_bench MODEL.gguf|tokenizer.json FOLDER [THREADS [questions.json "
                   "[BUDGET_TOKENS]]]\n");
        return 2;
    }
    const belvedere::Result<void> result = belvedere::runBench(argc, argv);
    if (!result.has_value()) {
        fmt::print(stderr, "ingest_bench: {}\n", result.error().message);
        return 1;
    }
    return 0;
}
