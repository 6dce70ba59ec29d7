// SPDX-License-Identifier: Apache-2.0
#include "app/headless/cli.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <exception>
#include <map>
#include <memory>
#include <thread>

#include <pthread.h>
#include <unistd.h>

#include "app/headless/paths.h"
#include "kernels/base/log.h"

namespace belvedere::app {
namespace {

constexpr const char* kHelp =
    R"(belvedere: a coding agent, repository questions and screen automation, with its own inference engine

  belvedere                              the window where there is a display, else chat
  belvedere ask [--repo PATH] QUESTION   one answer, with citations of the files and lines used
  belvedere chat [--repo PATH]           a conversation; without a terminal it reads questions from standard input
  belvedere ingest PATH                  read a repository and print its tokens by folder
  belvedere sessions [list|show|rename|delete|search] ...
  belvedere models [list|fetch|verify|show FILE]
  belvedere doctor                       what was detected: CPU, memory, GPU, display, model, folders
  belvedere bench                        prompt and generation speed of a model

  for comparing with other programs:
  belvedere tokens --model FILE [--plain]                           text on standard input to ids
  belvedere render (--template FILE | --model FILE) --input FILE    a chat template, exactly
  belvedere logits --model FILE --input IDS.json --output FILE.safetensors [--compute exact|fast] [--chunk N] [--all]
                   [--image FILE]... [--video FOLDER]...              ids hold a placeholder for each token of these

options:
  --model FILE            a GGUF file, or a folder with config.json and safetensors; without it the config's model,
                          else the default one
  --mmproj FILE           the vision tower of a GGUF; without it the one with "mmproj" in its name beside the model
  --image FILE            an image; may be repeated, as --video (ask, chat, logits)
  --video FILE|FOLDER     a clip: a video file, of which --fps N frames a second are taken (1), or the images of a
                          folder, by name
  --adapter FILE[:scale]  a LoRA adapter in GGUF; may be repeated
  --repo PATH             the folder that questions are about
  --session ID            go on in a session
  --snapshot FILE         ask, chat: begin from the context kept there, and keep this one there at the end, so that the
                          next process need not compute it; only of the same model and settings
  --budget N              tokens of sources put into the context when the repository does not fit (8192)
  --context N             window in tokens; 0: the model's own
  --threads N             0: one per core
  --attention msa|dense   layers with an MSA index: the blocks it chooses, or everything (msa)
  --cache-type T, --index-cache-type T
                          elements of the KV cache (f16) and of MSA's index keys (bf16): f32, f16, bf16, q8_0
  --speculative on|off    guess tokens that repeat earlier ones, confirm several at once; the answer is the same (on)
  --max-tokens N, --temperature T, --seed N
  --work                  let the model use tools (chat, ask); every change asks first
  --questions FILE        ask: many questions, JSON lines with "id" and "text", each in a context of its own
  --json                  events or results as JSON lines
  --yes                   sessions delete: do not ask
)";

struct Command {
    Result<void> (*run)(const Arguments&, std::stop_token);
};

const std::map<std::string, Command>& commands() {
    static const std::map<std::string, Command> kCommands = {
        {"ask", {runAsk}},           {"chat", {runChat}},     {"ingest", {runIngest}},
        {"sessions", {runSessions}}, {"models", {runModels}}, {"doctor", {runDoctor}},
        {"bench", {runBench}},       {"tokens", {runTokens}}, {"render", {runRender}},
        {"logits", {runLogits}},
    };
    return kCommands;
}

/// Turns Ctrl-C into a stop request: a handler may not lock, so a thread waits for the signal. A
/// second one ends at once.
class InterruptWatch {
  public:
    explicit InterruptWatch(std::stop_source stop) {
        sigemptyset(&signals_);
        sigaddset(&signals_, SIGINT);
        sigaddset(&signals_, SIGTERM);
        pthread_sigmask(SIG_BLOCK, &signals_,
                        nullptr);  // before any other thread starts: all inherit it
        thread_ = std::jthread([this, stop = std::move(stop)](std::stop_token ending) mutable {
            bool is_second = false;
            const timespec wait{0, 100'000'000};
            while (!ending.stop_requested()) {
                if (sigtimedwait(&signals_, nullptr, &wait) > 0) {
                    if (is_second) {
                        _exit(130);
                    }
                    is_second = true;
                    stop.request_stop();
                }
            }
        });
    }

  private:
    sigset_t signals_{};
    std::jthread thread_;
};

/// The window replaces this process; returns only where that fails.
Result<void> startWindow() {
    const std::string program = siblingProgram(kWindowProgram).string();
    execl(program.c_str(), program.c_str(), nullptr);
    return fail(ErrorCode::NotFound,
                "the window cannot be started: {}: {}: belvedere chat works in the terminal",
                program, std::strerror(errno));
}

Result<void> dispatch(const Arguments& arguments, std::stop_token stop) {
    if (arguments.help || arguments.command == "help") {
        fmt::print("{}", kHelp);
        return {};
    }
    if (arguments.version) {
        fmt::print("belvedere {}\n", BV_VERSION);
        return {};
    }
    if (arguments.command.empty()) {
        return runChat(arguments, stop);
    }
    const auto found = commands().find(arguments.command);
    if (found == commands().end()) {
        return fail(ErrorCode::InvalidArgument, "{}: unknown command: see belvedere --help",
                    arguments.command);
    }
    return found->second.run(arguments, stop);
}

int report(const Result<void>& result) {
    if (result.has_value()) {
        return 0;
    }
    const Error& error = result.error();
    if (error.code == ErrorCode::Cancelled) {
        return 130;
    }
    std::string line = error.message;
    std::replace(line.begin(), line.end(), '\n', ' ');
    fmt::print(stderr, "belvedere: {}\n", line);
    return error.code == ErrorCode::InvalidArgument ? 2 : 1;
}

}  // namespace

Result<std::string> readStandardInput() {
    std::string text;
    char buffer[1 << 16];
    while (const size_t n = std::fread(buffer, 1, sizeof buffer, stdin)) {
        text.append(buffer, n);
    }
    if (std::ferror(stdin) != 0) {
        return fail(ErrorCode::Io, "standard input: {}", std::strerror(errno));
    }
    return text;
}

Result<std::string> readTextFile(const std::string& path) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"),
                                                               &std::fclose);
    if (file == nullptr) {
        return fail(errno == ENOENT ? ErrorCode::NotFound : ErrorCode::Io, "{}: {}", path,
                    std::strerror(errno));
    }
    std::string text;
    char buffer[1 << 16];
    while (const size_t n = std::fread(buffer, 1, sizeof buffer, file.get())) {
        text.append(buffer, n);
    }
    if (std::ferror(file.get()) != 0) {
        return fail(ErrorCode::Io, "{}: {}", path, std::strerror(errno));
    }
    return text;
}

int runCommandLine(const std::vector<std::string>& words) {
    configureLog({logLevelFromEnvironment(LogLevel::Warn), ""});
    std::signal(SIGPIPE, SIG_IGN);
    const Result<Arguments> arguments = parseArguments(words);
    if (!arguments) {
        return report(fail(ErrorCode::InvalidArgument, "{}", arguments.error().message));
    }
    if (words.empty() && canOpenWindow()) {
        return report(startWindow());
    }
    try {
        std::stop_source stop;
        const InterruptWatch watch(stop);
        const int code = report(dispatch(*arguments, stop.get_token()));
        if (std::fflush(stdout) != 0) {
            return report(fail(ErrorCode::Io, "standard output: {}", std::strerror(errno)));
        }
        return code;
    } catch (const std::exception& error) {
        return report(fail(ErrorCode::Internal, "{}", error.what()));
    }
}

}  // namespace belvedere::app
