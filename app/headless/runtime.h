// SPDX-License-Identifier: Apache-2.0
#pragma once

// The composition root of the terminal program: config, model, store, agent, repository, built in
// this order and torn down in reverse. Main thread only.

#include <memory>
#include <stop_token>
#include <string>

#include "agent/agent.h"
#include "app/config.h"
#include "app/headless/arguments.h"
#include "app/headless/model_library.h"
#include "app/headless/terminal_sink.h"
#include "inference/engine.h"
#include "kernels/base/result.h"
#include "tools/repository/repository.h"

namespace belvedere::app {

/// The config file with the command line's options over it.
[[nodiscard]] Result<Config> configFor(const Arguments& arguments);

/// --model, else the config's model, else the default one. Errors: NotFound with how to get it.
[[nodiscard]] Result<inference::LoadRequest> modelFor(const Arguments& arguments,
                                                      const Config& config);

/// The database of sessions; makes the data folder.
[[nodiscard]] Result<std::unique_ptr<agent::SessionStore>> openStore();

class Runtime {
  public:
    /// Loads the model, with progress on standard error.
    static Result<std::unique_ptr<Runtime>> create(const Arguments& arguments,
                                                   std::stop_token stop);

    /// Reads --repo and attaches it to the session. Without --repo: the session's own repository,
    /// if it has one.
    Result<void> attachRepository(const agent::SessionSummary& session, std::stop_token stop);

    /// The session that --session names, else a new one.
    Result<agent::SessionSummary> openSession();

    /// Starts a turn and shows it until its end. The first one of a session takes the images and
    /// videos of the command line.
    Result<void> runTurn(const std::string& session_id,
                         const std::string& text,
                         const std::string& label,
                         std::stop_token stop);

    /// With --snapshot: puts the newest context into the file, unless the file has nearly all of
    /// it.
    Result<void> keepSnapshot(std::stop_token stop);

    [[nodiscard]] agent::SessionStore& store() { return *store_; }

    [[nodiscard]] const inference::ModelInfo& model() const { return engine_->info(); }

  private:
    Runtime(Arguments arguments, Config config, OutputStyle style)
        : arguments_(std::move(arguments)), config_(std::move(config)), sink_(style) {}

    Result<void> openSnapshot(std::stop_token stop);

    Arguments arguments_;
    Config config_;
    TerminalSink sink_;
    std::string last_session_;  ///< of runTurn
    std::unique_ptr<agent::SessionStore> store_;
    std::shared_ptr<inference::Engine> engine_;  // shared with the agent's language model
    std::shared_ptr<agent::LanguageModel> language_model_;
    std::shared_ptr<tools::Repository>
        repository_;  // shared with the agent; kept for the next session of --questions
    std::unique_ptr<agent::Agent> agent_;  // last: joins its turns before what they use dies
};

/// Reads a repository with progress; used by ask, chat and ingest.
[[nodiscard]] Result<std::shared_ptr<tools::Repository>> ingestRepository(
    const std::string& path,
    const Config& config,
    std::shared_ptr<const agent::TokenCounter> counter,
    TerminalSink& sink,
    std::stop_token stop);

}  // namespace belvedere::app
