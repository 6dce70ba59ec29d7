// SPDX-License-Identifier: Apache-2.0
// Tokenizer speed on real files: MB/s of text by threads, and the worst case, one word of 1 MB.
// Beside it: tests/bench/peer_hf_tokenizers.py prints the same for Hugging Face tokenizers; count
// and sum of the ids must agree.
//
//     tokenizer_bench MODEL.gguf|tokenizer.json PATH...      (folders are searched for source
//     files)
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include <fmt/core.h>

#include "inference/format/gguf_vocabulary.h"
#include "inference/tokenizer/tokenizer.h"
#include "inference/tokenizer/tokenizer_json.h"

namespace belvedere::inference {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 5;

std::string readText(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

bool isSource(const std::filesystem::path& path) {
    const std::string extension = path.extension().string();
    return extension.empty() || extension == ".h" || extension == ".hpp" || extension == ".tcc" ||
           extension == ".cpp" || extension == ".c" || extension == ".py";
}

std::vector<std::string> readSources(std::span<char*> paths) {
    std::vector<std::filesystem::path> files;
    std::error_code ignored;
    for (const char* path : paths) {
        if (std::filesystem::is_regular_file(path)) {
            files.emplace_back(path);
            continue;
        }
        for (const auto& entry : std::filesystem::recursive_directory_iterator(path, ignored)) {
            if (entry.is_regular_file() && !entry.is_symlink() && isSource(entry.path())) {
                files.push_back(entry.path());
            }
        }
    }
    std::sort(files.begin(), files.end());
    std::vector<std::string> texts;
    for (const auto& file : files) {
        texts.push_back(readText(file));
    }
    return texts;
}

Result<std::unique_ptr<Tokenizer>> loadTokenizer(const std::string& path) {
    if (path.ends_with(".json")) {
        return Tokenizer::create(BV_TRY(fromTokenizerJson(readText(path))));
    }
    const GgufFile file = BV_TRY(GgufFile::open(path));
    return Tokenizer::create(BV_TRY(vocabularyFromGguf(file)));
}

struct Totals {
    std::atomic<size_t> n_tokens{0};
    std::atomic<size_t> id_sum{0};
};

void encodeAll(const Tokenizer& tokenizer,
               const std::vector<std::string>& texts,
               size_t n_threads,
               Totals& totals) {
    std::atomic<size_t> next{0};
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < n_threads; ++t) {
        threads.emplace_back([&] {
            for (size_t i = next++; i < texts.size(); i = next++) {
                const std::vector<TokenId> ids = tokenizer.encode(texts[i], SpecialTokens::Plain);
                size_t sum = 0;
                for (const TokenId id : ids) {
                    sum += static_cast<size_t>(id);
                }
                totals.n_tokens += ids.size();
                totals.id_sum += sum;
            }
        });
    }
}

double seconds(Clock::time_point since) {
    return std::chrono::duration<double>(Clock::now() - since).count();
}

void benchFiles(const Tokenizer& tokenizer,
                const std::vector<std::string>& texts,
                size_t n_threads) {
    size_t n_bytes = 0;
    for (const std::string& text : texts) {
        n_bytes += text.size();
    }
    std::vector<double> times;
    const std::clock_t cpu_start = std::clock();
    size_t n_tokens = 0;
    size_t id_sum = 0;
    for (int round = 0; round < kRounds; ++round) {
        Totals totals;
        const auto start = Clock::now();
        encodeAll(tokenizer, texts, n_threads, totals);
        times.push_back(seconds(start));
        n_tokens = totals.n_tokens;
        id_sum = totals.id_sum;
    }
    const double cpu_seconds = static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC;
    const double first = times[0];
    std::sort(times.begin(), times.end());
    const double mega_bytes = static_cast<double>(n_bytes) / 1e6;
    fmt::print("belvedere  {} thread(s)  {} files  {:.1f} MB  {} tokens  id sum {}\n", n_threads,
               texts.size(), mega_bytes, n_tokens, id_sum);
    // On a busy machine the last figure is the one to compare: it counts only the time this program
    // ran.
    fmt::print(
        "           median {:.1f} MB/s  first round {:.1f} MB/s  per core and CPU second {:.1f} "
        "MB\n",
        mega_bytes / times[times.size() / 2], mega_bytes / first,
        mega_bytes * kRounds / cpu_seconds);
}

void benchWorstCase(const Tokenizer& tokenizer) {
    for (const char letter : {'a', ' ', '('}) {
        const std::string word(1 << 20, letter);
        const auto start = Clock::now();
        const size_t n = tokenizer.encode(word, SpecialTokens::Plain).size();
        fmt::print("belvedere  1 MiB of '{}': {} tokens in {:.0f} ms\n", letter, n,
                   seconds(start) * 1e3);
    }
}

int run(std::span<char*> arguments) {
    if (arguments.size() < 3) {
        fmt::print(stderr, "usage: tokenizer_bench MODEL.gguf|tokenizer.json PATH...\n");
        return 2;
    }
    const auto start = Clock::now();
    const auto tokenizer = loadTokenizer(arguments[1]);
    if (!tokenizer) {
        fmt::print(stderr, "tokenizer_bench: {}\n", tokenizer.error().message);
        return 1;
    }
    fmt::print("belvedere  {} tokens, loaded in {:.0f} ms\n", (*tokenizer)->vocabSize(),
               seconds(start) * 1e3);
    const std::vector<std::string> texts = readSources(arguments.subspan(2));
    for (const size_t n_threads : {1U, 2U}) {
        benchFiles(**tokenizer, texts, n_threads);
    }
    benchWorstCase(**tokenizer);
    return 0;
}

}  // namespace
}  // namespace belvedere::inference

int main(int argc, char** argv) {
    return belvedere::inference::run({argv, static_cast<size_t>(argc)});
}
