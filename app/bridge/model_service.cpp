// SPDX-License-Identifier: Apache-2.0
#include "app/bridge/model_service.h"

#include <utility>

#include "app/bridge/text.h"

namespace belvedere::app {

ModelService::ModelService(ModelSource source,
                           const inference::EngineConfig& config,
                           QObject* parent)
    : QObject(parent), source_(std::move(source)), engine_config_(config) {}

ModelService::~ModelService() {
    stop_.request_stop();
}

void ModelService::begin(State state) {
    stop_.request_stop();
    stop_ = std::stop_source();
    ++run_;
    state_ = state;
    fraction_ = 0;
    activity_.clear();
    Q_EMIT stateChanged();
}

void ModelService::report(uint64_t run, double fraction, const QString& activity) {
    if (run != run_) {
        return;
    }
    fraction_ = fraction;
    activity_ = activity;
    Q_EMIT progressChanged();
}

void ModelService::load(const inference::LoadRequest& request) {
    begin(State::Loading);
    const uint64_t run = run_;
    const auto progress = [this, run](double fraction, const char* what) {
        // A stopped queue is joined before `this` dies; later calls find the run changed or the
        // receiver gone.
        QMetaObject::invokeMethod(
            this, [this, run, fraction, text = qstring(what)] { report(run, fraction, text); },
            Qt::QueuedConnection);
    };
    runTask(
        queue_, this,
        [load = source_.load, request, config = engine_config_, progress, stop = stop_.get_token()](
            std::stop_token) { return load(request, config, progress, stop); },
        [this, run](Result<LoadedModel> result) { finishLoad(run, std::move(result)); });
}

void ModelService::finishLoad(uint64_t run, Result<LoadedModel> result) {
    if (run != run_) {
        return;
    }
    if (!result) {
        failRun(result.error());
        return;
    }
    loaded_ = std::move(*result);
    state_ = State::Ready;
    Q_EMIT loadedChanged();
    Q_EMIT stateChanged();
}

void ModelService::failRun(const Error& error) {
    error_ = error;
    if (error.code == ErrorCode::Cancelled) {
        state_ = loaded_ ? State::Ready : State::None;
    } else {
        state_ = State::Failed;
    }
    Q_EMIT stateChanged();
}

void ModelService::loadDefault() {
    begin(State::Loading);
    const uint64_t run = run_;
    runTask(
        queue_, this, [request = source_.default_request](std::stop_token) { return request(); },
        [this, run](Result<inference::LoadRequest> request) {
            if (run != run_) {
                return;
            }
            if (!request) {
                failRun(request.error());
                return;
            }
            load(*request);
        });
}

void ModelService::fetchDefault() {
    begin(State::Fetching);
    const uint64_t run = run_;
    const auto progress = [this, run](const FetchStep& step) {
        const double fraction =
            step.n_bytes_total == 0
                ? 0
                : static_cast<double>(step.n_bytes) / static_cast<double>(step.n_bytes_total);
        const QString text =
            tr("%1: %2 of %3")
                .arg(step.what, bytesText(step.n_bytes), bytesText(step.n_bytes_total));
        QMetaObject::invokeMethod(
            this, [this, run, fraction, text] { report(run, fraction, text); },
            Qt::QueuedConnection);
    };
    runTask(
        queue_, this,
        [fetch = source_.fetch_default, progress, stop = stop_.get_token()](std::stop_token) {
            return fetch(progress, stop);
        },
        [this, run](Result<void> result) {
            if (run != run_) {
                return;
            }
            if (!result) {
                failRun(result.error());
                return;
            }
            refreshDefault();
            loadDefault();
        });
}

void ModelService::cancel() {
    if (isBusy()) {
        stop_.request_stop();  // the result comes as Cancelled
    }
}

void ModelService::refreshDefault() {
    runTask(
        queue_, this, [describe = source_.describe_default](std::stop_token) { return describe(); },
        [this](Result<DefaultModel> result) {
            if (result) {
                default_model_ = std::move(*result);
            } else if (!isBusy() && !loaded_) {
                failRun(result.error());
            }
            Q_EMIT defaultChanged();
        });
}

QString ModelService::name() const {
    if (!loaded_) {
        return {};
    }
    const bool is_default = default_model_ && default_model_->path == qstring(loaded_->info.path);
    return is_default ? default_model_->name : qstring(loaded_->info.name);
}

}  // namespace belvedere::app
