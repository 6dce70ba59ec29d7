// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the window needs of the world, as functions: so that its tests run with a scripted model and
// the product with the engine. Each function is called on a thread of its service.

#include <functional>
#include <memory>

#include "agent/store/session_store.h"
#include "app/bridge/model_service.h"
#include "app/bridge/repository_service.h"
#include "app/config.h"
#include "kernels/base/result.h"

namespace belvedere::app {

struct Backend {
    ModelSource models;
    AttachFolder attach;
    std::function<Result<std::unique_ptr<agent::SessionStore>>()> open_store;
};

/// Our engine, the default model's library, folders on disk and the sessions in the data folder.
[[nodiscard]] Backend makeBackend(const Config& config);

}  // namespace belvedere::app
