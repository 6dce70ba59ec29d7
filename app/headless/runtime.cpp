// SPDX-License-Identifier: Apache-2.0
#include "app/headless/runtime.h"

#include <filesystem>

#include "agent/model/engine_model.h"
#include "app/headless/paths.h"
#include "kernels/base/log.h"
#include "tools/all_tools.h"
#include "tools/workspace.h"

namespace belvedere::app {
namespace {

/// Of a conversation, beyond those that its snapshot has: computing them takes a moment, writing
/// the file anew can take a minute.
constexpr size_t kPagesNotWorthKeeping = 8;

}  // namespace

Result<Config> configFor(const Arguments& arguments) {
    Config config = BV_TRY(readConfig(configFile()));
    for (const std::string& warning : config.warnings) {
        fmt::print(stderr, "note: {}\n", warning);
    }
    if (!arguments.model.empty()) {
        config.model = arguments.model;
        config.adapters.clear();
    }
    if (!arguments.adapters.empty()) {
        config.adapters = arguments.adapters;
    }
    config.engine.n_threads = arguments.n_threads.value_or(config.engine.n_threads);
    config.engine.context_tokens = arguments.context_tokens.value_or(config.engine.context_tokens);
    config.engine.attention = arguments.attention.value_or(config.engine.attention);
    config.engine.cache_type = arguments.cache_type.value_or(config.engine.cache_type);
    config.engine.index_cache_type =
        arguments.index_cache_type.value_or(config.engine.index_cache_type);
    config.engine.drafts = arguments.speculative.value_or(config.engine.drafts);
    config.engine.compute = arguments.compute.value_or(config.engine.compute);
    config.agent.source_budget_tokens =
        arguments.budget.value_or(config.agent.source_budget_tokens);
    agent::GenerationOptions& generation = config.agent.generation;
    generation.max_tokens = arguments.max_tokens.value_or(generation.max_tokens);
    generation.seed = arguments.seed.value_or(generation.seed);
    if (arguments.temperature) {
        generation.temperature = static_cast<float>(*arguments.temperature);
    }
    return config;
}

Result<inference::LoadRequest> modelFor(const Arguments& arguments, const Config& config) {
    if (!config.model.empty()) {
        return inference::LoadRequest{config.model.string(), config.adapters, arguments.mmproj};
    }
    const ModelLibrary library = BV_TRY(ModelLibrary::open(resourceDir(), dataDir()));
    if (!library.isInstalled()) {
        return fail(ErrorCode::NotFound,
                    "the default model is not in {}: run belvedere models fetch ({} MB), or give "
                    "--model FILE.gguf",
                    (dataDir() / "models").string(), library.bytesToFetch() / 1'000'000);
    }
    inference::LoadRequest request = library.loadRequest();
    request.mmproj_path = arguments.mmproj;
    request.adapters.insert(request.adapters.end(), config.adapters.begin(), config.adapters.end());
    return request;
}

Result<std::unique_ptr<agent::SessionStore>> openStore() {
    std::error_code error;
    std::filesystem::create_directories(dataDir(), error);
    if (error) {
        return fail(ErrorCode::Io, "{}: {}: set BV_DATA_DIR to a folder that can be written",
                    dataDir().string(), error.message());
    }
    return agent::SessionStore::open(dataDir() / "sessions.db");
}

namespace {

/// What each image and clip costs, known before anything is computed. Errors: those of reading.
Result<std::vector<std::string>> mediaCosts(const Arguments& arguments) {
    std::vector<std::string> lines;
    for (const MediaArgument& file : arguments.media) {
        const bool is_video = file.kind == inference::MediaKind::Video;
        const inference::Media media = BV_TRY(
            inference::readMedia(file.kind, file.path, arguments.frames_per_second.value_or(1)));
        const inference::ImageSize size = media.frames.front().size;
        lines.push_back(fmt::format(
            "{}: {}{} x {} pixels, seen as {} x {}: {} tokens", file.path,
            is_video ? fmt::format("{} frames of ", media.frames.size()) : "", media.original.width,
            media.original.height, size.width, size.height, media.tokenCount()));
    }
    return lines;
}

std::vector<agent::Part> attachmentsOf(const Arguments& arguments) {
    std::vector<agent::Part> parts;
    for (const MediaArgument& file : arguments.media) {
        agent::Part part;
        part.kind = file.kind == inference::MediaKind::Video ? agent::Part::Kind::Video
                                                             : agent::Part::Kind::Image;
        std::error_code error;
        const std::filesystem::path path = std::filesystem::absolute(file.path, error);
        part.path = error ? file.path : path.string();
        part.frames_per_second = arguments.frames_per_second.value_or(part.frames_per_second);
        parts.push_back(std::move(part));
    }
    return parts;
}

}  // namespace

Result<std::unique_ptr<Runtime>> Runtime::create(const Arguments& arguments, std::stop_token stop) {
    Config config = BV_TRY(configFor(arguments));
    const inference::LoadRequest load = BV_TRY(modelFor(arguments, config));
    const std::vector<std::string> costs = BV_TRY(mediaCosts(arguments));
    const OutputStyle style = arguments.json ? OutputStyle::Json : OutputStyle::Text;
    std::unique_ptr<Runtime> runtime(new Runtime(arguments, std::move(config), style));
    runtime->store_ = BV_TRY(openStore());

    runtime->sink_.showProgress("loading " + load.model_path);
    const auto progress = [&](double fraction, const char* what) {
        runtime->sink_.showProgress(
            fmt::format("loading the model: {} {:.0f} %", what, fraction * 100));
    };
    runtime->engine_ =
        BV_TRY(inference::Engine::load(load, runtime->config_.engine, progress, stop));
    runtime->sink_.clearProgress();
    if (!costs.empty() && runtime->model().vision.empty()) {
        return fail(ErrorCode::InvalidArgument,
                    "{} reads text only: no vision tower in it or beside it (--mmproj FILE): leave "
                    "out --image and --video",
                    runtime->model().name);
    }
    for (const std::string& cost : costs) {
        fmt::print(stderr, "{}\n", cost);
    }
    BV_TRY(runtime->openSnapshot(stop));
    runtime->language_model_ = agent::makeEngineModel(runtime->engine_);
    runtime->agent_ =
        agent::Agent::create(runtime->config_.agent, *runtime->store_, runtime->sink_);
    runtime->agent_->setModel(runtime->language_model_);
    return runtime;
}

/// What the file holds is found like any other prefix, whichever conversation asks for it. A file
/// of another model is refused, as it would be replaced in the end; a damaged one is computed anew.
Result<void> Runtime::openSnapshot(std::stop_token stop) {
    if (arguments_.snapshot.empty()) {
        return {};
    }
    const Result<inference::SequenceId> opened =
        engine_->openSnapshot(arguments_.snapshot, std::move(stop));
    if (opened || opened.error().code == ErrorCode::NotFound) {
        return {};
    }
    if (opened.error().code == ErrorCode::Corrupt) {
        fmt::print(stderr, "note: {}: what it held is computed anew\n", opened.error().message);
        return {};
    }
    return tl::unexpected<Error>(opened.error());
}

Result<void> Runtime::keepSnapshot(std::stop_token stop) {
    const std::vector<inference::Engine::SequenceUse> sequences = engine_->sequences();
    if (arguments_.snapshot.empty() || sequences.empty() || sequences.front().n_tokens == 0 ||
        stop.stop_requested()) {
        return {};
    }
    const inference::Engine::SequenceUse& newest = sequences.front();
    if (newest.n_stored_pages > 0 &&
        newest.n_pages - newest.n_stored_pages <= kPagesNotWorthKeeping) {
        return {};
    }
    sink_.showProgress(
        fmt::format("keeping {} tokens in {}", newest.n_tokens, arguments_.snapshot));
    BV_TRY(engine_->saveSnapshot(newest.sequence, arguments_.snapshot, std::move(stop)));
    sink_.clearProgress();
    return {};
}

Result<agent::SessionSummary> Runtime::openSession() {
    if (!arguments_.session.empty()) {
        const agent::StoredSession stored = BV_TRY(store_->loadSession(arguments_.session));
        return stored.summary;
    }
    std::string root;
    if (!arguments_.repository.empty()) {
        std::error_code error;
        root = std::filesystem::canonical(arguments_.repository, error).string();
        if (error) {
            return fail(ErrorCode::NotFound, "--repo {}: {}", arguments_.repository,
                        error.message());
        }
    }
    return store_->createSession(root, engine_->info().name);
}

Result<void> Runtime::attachRepository(const agent::SessionSummary& session, std::stop_token stop) {
    const std::string path =
        arguments_.repository.empty() ? session.repository : arguments_.repository;
    if (path.empty()) {
        return {};
    }
    if (repository_ == nullptr) {
        repository_ = BV_TRY(ingestRepository(path, config_, language_model_->tokenCounter(), sink_,
                                              std::move(stop)));
    }
    const std::shared_ptr<const tools::Workspace> workspace =
        BV_TRY(tools::Workspace::open(repository_->root()));
    if (session.repository != repository_->root()) {
        BV_TRY(store_->setRepository(session.id, repository_->root()));
    }
    agent_->attach(session.id, repository_, tools::allTools(workspace, config_.tools));
    return {};
}

Result<void> Runtime::runTurn(const std::string& session_id,
                              const std::string& text,
                              const std::string& label,
                              std::stop_token stop) {
    const agent::TurnMode mode = arguments_.work ? agent::TurnMode::Work : agent::TurnMode::Ask;
    std::vector<agent::Part> attachments;
    if (std::exchange(last_session_, session_id) != session_id) {
        attachments = attachmentsOf(arguments_);
    }
    const agent::TurnId turn =
        BV_TRY(agent_->startTurn({session_id, text, mode, std::move(attachments)}));
    Result<void> shown = sink_.showTurn(*agent_, turn, label, std::move(stop));
    if (!shown && shown.error().code == ErrorCode::InvalidArgument) {
        // The command line was right: a turn that fails (a prompt too long, say) is exit code 1.
        return fail(ErrorCode::Unsupported, "{}", shown.error().message);
    }
    return shown;
}

Result<std::shared_ptr<tools::Repository>> ingestRepository(
    const std::string& path,
    const Config& config,
    std::shared_ptr<const agent::TokenCounter> counter,
    TerminalSink& sink,
    std::stop_token stop) {
    tools::RepositoryConfig repository_config = config.repository;
    repository_config.index_dir = dataDir() / "indexes";
    std::shared_ptr<tools::Repository> repository =
        BV_TRY(tools::Repository::attach(path, repository_config, std::move(counter)));
    const auto progress = [&](const tools::IngestProgress& p) {
        sink.showProgress(p.n_files_total == 0
                              ? fmt::format("looking for files in {}", path)
                              : fmt::format("reading {} of {} files, {} tokens", p.n_files_done,
                                            p.n_files_total, p.n_tokens));
    };
    const tools::IngestReport report = BV_TRY(repository->ingest(progress, std::move(stop)));
    sink.clearProgress();
    BV_LOG(LogLevel::Info, "app", "ingested files={} pieces={} tokens={} skipped={}",
           report.n_files, report.n_pieces, report.n_tokens, report.skipped.size());
    return repository;
}

}  // namespace belvedere::app
