// SPDX-License-Identifier: Apache-2.0
#pragma once

// The command line: options of every command in one struct, so that a name means the same
// everywhere.

#include <optional>
#include <string>
#include <vector>

#include "inference/engine.h"
#include "kernels/base/result.h"

namespace belvedere::app {

/// A file, or for a video a folder of its frames.
struct MediaArgument {
    inference::MediaKind kind = inference::MediaKind::Image;
    std::string path;
};

struct Arguments {
    std::string command;                            ///< "" where none was named
    std::vector<std::string> positional;            ///< what follows the command and is no option
    std::string model;                              ///< --model FILE
    std::vector<inference::AdapterFile> adapters;   ///< --adapter FILE[:scale], repeated
    std::string mmproj;                             ///< --mmproj FILE
    std::vector<MediaArgument> media;               ///< --image, --video, repeated, in their order
    std::string repository;                         ///< --repo PATH
    std::string session;                            ///< --session ID
    std::string snapshot;                           ///< --snapshot FILE
    std::string questions;                          ///< --questions FILE
    std::string template_file;                      ///< --template FILE
    std::string input;                              ///< --input FILE
    std::string output;                             ///< --output FILE
    std::optional<size_t> budget;                   ///< --budget N tokens
    std::optional<size_t> n_threads;                ///< --threads N
    std::optional<size_t> context_tokens;           ///< --context N tokens
    std::optional<size_t> chunk;                    ///< --chunk N tokens
    std::optional<size_t> max_tokens;               ///< --max-tokens N
    std::optional<size_t> n_prompt;                 ///< --prompt N tokens (bench)
    std::optional<size_t> n_depth;                  ///< --depth N tokens (bench)
    std::optional<double> frames_per_second;        ///< --fps N: taken of a video file
    std::optional<double> temperature;              ///< --temperature T
    std::optional<uint64_t> seed;                   ///< --seed N
    std::optional<inference::Compute> compute;      ///< --compute exact|fast
    std::optional<inference::Attention> attention;  ///< --attention msa|dense
    std::optional<kernels::CacheType> cache_type;   ///< --cache-type f32|f16|bf16|q8_0
    std::optional<kernels::CacheType> index_cache_type;  ///< --index-cache-type, likewise
    std::optional<bool> speculative;                     ///< --speculative on|off
    bool plain = false;                                  ///< --plain
    bool json = false;                                   ///< --json
    bool work = false;     ///< --work: the model-tool loop instead of answers from the sources
    bool all = false;      ///< --all: also what the layers computed (logits)
    bool yes = false;      ///< --yes: do not ask before deleting
    bool help = false;     ///< --help, -h
    bool version = false;  ///< --version
};

/// Errors: InvalidArgument naming the argument. "--" ends the options.
[[nodiscard]] Result<Arguments> parseArguments(const std::vector<std::string>& words);

/// "FILE" or "FILE:scale". Errors: InvalidArgument.
[[nodiscard]] Result<inference::AdapterFile> parseAdapter(const std::string& word);

}  // namespace belvedere::app
