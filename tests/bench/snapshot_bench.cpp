// SPDX-License-Identifier: Apache-2.0
// How long after opening a snapshot in a fresh process the first token is there, with the file in
// the page cache and without, beside the bytes it had to read. Prints, never judges.
//
//     snapshot_bench MODEL.gguf FILE [--tokens 200000] [--threads 2] [--gen 16] [--new 1]
//
// FILE is written first, of a sequence whose first 2,048 tokens are computed; every later page is a
// copy of one of theirs, in a place of its own. Two processes of this program then open it.
// tests/bench/make_m3.py writes a model for this.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include "inference/cache/snapshot.h"
#include "inference/model/model.h"
#include "tests/bench/ceilings.h"

namespace {

using namespace belvedere;
using namespace belvedere::inference;

constexpr size_t kComputedTokens = 2048;
constexpr size_t kPassTokens = 512;

struct Options {
    std::string model;
    std::string file;
    size_t n_tokens = 200'000;
    size_t n_threads = 2;
    size_t n_gen = 16;
    size_t n_new = 1;   ///< tokens of the prompt behind those of the snapshot
    bool open = false;  ///< what the processes that are started do
    bool cold = false;
};

[[noreturn]] void giveUp(const std::string& why) {
    fmt::print(stderr, "snapshot_bench: {}\n", why);
    std::exit(1);
}

template <class T>
T valueOf(Result<T> result) {
    if (!result.has_value()) {
        giveUp(result.error().message);
    }
    if constexpr (!std::is_void_v<T>) {
        return std::move(*result);
    }
}

std::vector<TokenId> idsOf(size_t n, size_t vocab_size) {
    std::vector<TokenId> ids(n);
    for (size_t i = 0; i < n; ++i) {
        ids[i] = static_cast<TokenId>((i * 7919 + 13) % std::min<size_t>(vocab_size, 256));
    }
    return ids;
}

void makeSnapshot(const Options& options) {
    ModelOptions model_options;
    model_options.n_threads = options.n_threads;
    model_options.context_tokens = options.n_tokens + 1024;
    model_options.max_pass_tokens = kPassTokens;
    const auto model = valueOf(Model::load({options.model, {}}, model_options, nullptr, {}));
    Backend& backend = model->backend();
    SnapshotContent content;
    content.tokens = idsOf(options.n_tokens, model->info().vocab_size);
    constexpr size_t kOriginals = kComputedTokens / kernels::kPageTokens;
    while (content.pages.size() * kernels::kPageTokens < options.n_tokens) {
        content.pages.push_back(content.pages.size() < kOriginals
                                    ? valueOf(backend.allocatePage())
                                    : content.pages[content.pages.size() % kOriginals]);
    }
    for (size_t done = 0; done < kComputedTokens; done += kPassTokens) {
        valueOf(model->decoder().forward(std::span(content.tokens).subspan(done, kPassTokens), done,
                                         content.pages, {}));
    }
    const SnapshotKey key = {model->digest(), model->info().name, backend.pageShape(),
                             model->info().context_tokens, model->info().vocab_size};
    uint64_t n_bytes = 0;
    const double seconds = bench::secondsOf(
        [&] { n_bytes = valueOf(writeSnapshot(options.file, key, content, backend, {})); });
    fmt::print("{}: {}, {}; {} tokens, {:.2f} GB, written in {:.1f} s ({:.2f} GB/s, on the disk)\n",
               model->info().name, model->info().weight_types, model->info().instruction_set,
               options.n_tokens, static_cast<double>(n_bytes) * 1e-9, seconds,
               static_cast<double>(n_bytes) * 1e-9 / seconds);
}

/// Bytes of the file that are in the page cache.
double residentBytes(const std::string& path) {
    const size_t n_bytes = std::filesystem::file_size(path);
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    void* data = ::mmap(nullptr, n_bytes, PROT_READ, MAP_SHARED, descriptor, 0);
    std::vector<unsigned char> states((n_bytes + page - 1) / page);
    if (data == MAP_FAILED || ::mincore(data, n_bytes, states.data()) != 0) {
        giveUp("the page cache cannot be asked");
    }
    ::munmap(data, n_bytes);
    ::close(descriptor);
    const auto n_pages =
        std::count_if(states.begin(), states.end(), [](unsigned char s) { return (s & 1) != 0; });
    return static_cast<double>(n_pages) * static_cast<double>(page);
}

class Silence : public GenerationSink {
  public:
    void onPrefill(size_t /*n_done*/, size_t /*n_total*/) override {}

    void onText(std::string_view /*text*/, std::span<const TokenId> /*ids*/) override {}
};

double peakMegabytes() {
    std::ifstream status("/proc/self/status");
    std::string word;
    double kilobytes = 0;
    while (status >> word) {
        if (word == "RssAnon:") {
            status >> kilobytes;
        }
    }
    return kilobytes * 1e-3;
}

void openSnapshot(const Options& options) {
    if (options.cold) {
        const int descriptor = ::open(options.file.c_str(), O_RDONLY | O_CLOEXEC);
        ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
        ::close(descriptor);
    }
    const double before = residentBytes(options.file);
    EngineConfig config;
    config.n_threads = options.n_threads;
    config.context_tokens = options.n_tokens + 1024;
    std::unique_ptr<Engine> engine;
    const double load = bench::secondsOf(
        [&] { engine = valueOf(Engine::load({options.model, {}}, config, nullptr, {})); });
    const std::string is_cold = options.cold ? "cold" : "warm";
    SequenceId sequence = 0;
    const double open =
        bench::secondsOf([&] { sequence = valueOf(engine->openSnapshot(options.file, {})); });
    GenerateRequest request;
    request.sequence = sequence;
    request.prompt = idsOf(options.n_tokens + options.n_new, engine->info().vocab_size);
    request.max_tokens = options.n_gen;
    request.ignore_end_of_turn = true;
    request.drafts = false;
    Silence sink;
    const GenerationStats first = valueOf(engine->generate(request, sink, {}));
    const double read = residentBytes(options.file) - before;
    GenerationStats second;
    request.prompt.back() = 7;
    second = valueOf(engine->generate(request, sink, {}));
    fmt::print(
        "{}: model loaded in {:.2f} s; opened in {:.3f} s, first token {:.3f} s after ({} "
        "tokens of the prompt new), together {:.3f} s\n",
        is_cold, load, open, first.first_token.count(), first.n_prefilled,
        open + first.first_token.count());
    fmt::print(
        "      {:.0f} MB of the file read; then {:.1f} ms a token; asked again the first "
        "token comes after {:.3f} s; {:.0f} MB of memory beside the mapped file\n",
        read * 1e-6, first.generation.count() * 1e3 / static_cast<double>(first.n_generated),
        second.first_token.count(), peakMegabytes());
}

bool parse(int argc, char** argv, Options& options) {
    std::vector<std::string> files;
    for (int i = 1; i < argc; ++i) {
        const std::string arg = argv[i];
        if (arg == "--open") {
            options.open = true;
        } else if (arg == "--cold") {
            options.cold = true;
        } else if (arg.starts_with("--") && i + 1 < argc) {
            const auto number = static_cast<size_t>(std::strtoull(argv[++i], nullptr, 10));
            (arg == "--tokens"    ? options.n_tokens
             : arg == "--threads" ? options.n_threads
             : arg == "--new"     ? options.n_new
                                  : options.n_gen) = number;
        } else {
            files.push_back(arg);
        }
    }
    if (files.size() == 2) {
        options.model = files[0];
        options.file = files[1];
    }
    return files.size() == 2 && options.n_tokens > kComputedTokens && options.n_threads > 0 &&
           options.n_gen > 0 && options.n_new > 0 && options.n_new <= 512;
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    if (!parse(argc, argv, options)) {
        fmt::print(stderr,
                   "snapshot_bench: MODEL.gguf FILE [--tokens N] [--threads N] [--gen N] [--new "
                   "N]\n");
        return 2;
    }
    if (options.open) {
        openSnapshot(options);
        return 0;
    }
    makeSnapshot(options);
    std::fflush(stdout);
    const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
    for (const char* how : {"", "--cold"}) {
        const std::string command = fmt::format(
            "'{}' '{}' '{}' --open {} --tokens {} --threads {} --gen {}", self, options.model,
            options.file, how, options.n_tokens, options.n_threads, options.n_gen);
        if (std::system(command.c_str()) != 0) {
            giveUp("the other process failed");
        }
    }
    return 0;
}
