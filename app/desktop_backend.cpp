// SPDX-License-Identifier: Apache-2.0
#include "app/desktop_backend.h"

#include <utility>

#include "agent/model/engine_model.h"
#include "app/bridge/text.h"
#include "app/headless/model_library.h"
#include "app/headless/paths.h"
#include "app/headless/runtime.h"
#include "tools/all_tools.h"
#include "tools/workspace.h"

namespace belvedere::app {

namespace {

Result<LoadedModel> loadModel(const inference::LoadRequest& request,
                              const inference::EngineConfig& config,
                              const inference::LoadProgress& progress,
                              std::stop_token stop) {
    std::shared_ptr<inference::Engine> engine =
        BV_TRY(inference::Engine::load(request, config, progress, std::move(stop)));
    LoadedModel loaded{nullptr, engine->info()};
    loaded.model = agent::makeEngineModel(std::move(engine));
    return loaded;
}

Result<DefaultModel> describeDefault() {
    const ModelLibrary library = BV_TRY(ModelLibrary::open(resourceDir(), dataDir()));
    const ModelManifest& manifest = library.manifest();
    DefaultModel model;
    model.name = qstring(manifest.name);
    model.summary = qstring(manifest.summary);
    for (const std::string& limit : manifest.limits) {
        model.limits += qstring(limit);
    }
    QStringList licences;
    for (const ModelPart& part : manifest.parts) {
        model.n_bytes += part.n_bytes;
        if (part.role == "base") {
            model.path = qstring(library.pathOf(part).string());
        }
        if (const QString licence = qstring(part.licence); !licences.contains(licence)) {
            licences += licence;
        }
    }
    model.licence = licences.join(QStringLiteral(", "));
    model.is_installed = library.isInstalled();
    model.n_bytes_to_fetch = library.bytesToFetch();
    return model;
}

Result<void> fetchDefault(const std::function<void(const FetchStep&)>& progress,
                          std::stop_token stop) {
    const ModelLibrary library = BV_TRY(ModelLibrary::open(resourceDir(), dataDir()));
    return library.fetch(
        [&](const FetchProgress& now) {
            progress({qstring(now.what), now.n_bytes, now.n_bytes_total});
        },
        std::move(stop));
}

Result<AttachedFolder> attachFolder(const Config& config,
                                    const std::string& path,
                                    std::shared_ptr<const agent::TokenCounter> counter) {
    tools::RepositoryConfig repository = config.repository;
    repository.index_dir = dataDir() / "indexes";
    AttachedFolder folder;
    folder.repository = BV_TRY(tools::Repository::attach(path, repository, std::move(counter)));
    const auto workspace = BV_TRY(tools::Workspace::open(folder.repository->root()));
    folder.tools = tools::allTools(workspace, config.tools);
    return folder;
}

}  // namespace

Backend makeBackend(const Config& config) {
    Backend backend;
    backend.models.load = loadModel;
    backend.models.describe_default = describeDefault;
    backend.models.default_request = [adapters =
                                          config.adapters]() -> Result<inference::LoadRequest> {
        const ModelLibrary library = BV_TRY(ModelLibrary::open(resourceDir(), dataDir()));
        if (!library.isInstalled()) {
            return fail(ErrorCode::NotFound, "the default model is not in {}",
                        (dataDir() / "models").string());
        }
        inference::LoadRequest request = library.loadRequest();
        request.adapters.insert(request.adapters.end(), adapters.begin(), adapters.end());
        return request;
    };
    backend.models.fetch_default = fetchDefault;
    backend.attach = [config](const std::string& path,
                              std::shared_ptr<const agent::TokenCounter> counter) {
        return attachFolder(config, path, std::move(counter));
    };
    backend.open_store = openStore;
    return backend;
}

}  // namespace belvedere::app
