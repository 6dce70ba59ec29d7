// SPDX-License-Identifier: Apache-2.0
#include "app/bridge/repository_service.h"

#include <QFileInfo>
#include <utility>

#include "app/bridge/text.h"

namespace belvedere::app {

RepositoryService::RepositoryService(AttachFolder attach, QObject* parent)
    : QObject(parent), attach_(std::move(attach)) {}

RepositoryService::~RepositoryService() {
    stop_.request_stop();
}

QString RepositoryService::name() const {
    const QString last = QFileInfo(path_).fileName();
    return last.isEmpty() ? path_ : last;
}

void RepositoryService::setState(State state) {
    state_ = state;
    Q_EMIT stateChanged();
}

void RepositoryService::attach(const QString& path) {
    path_ = path;
    folder_ = {};
    start();
}

void RepositoryService::setCounter(std::shared_ptr<const agent::TokenCounter> counter) {
    const bool is_other = (counter_ == nullptr) != (counter == nullptr) ||
                          (counter && counter->key() != counter_->key());
    counter_ = std::move(counter);
    if (is_other) {
        start();
    }
}

void RepositoryService::start() {
    stop_.request_stop();
    stop_ = std::stop_source();
    ++run_;
    progress_ = {};
    if (path_.isEmpty()) {
        setState(State::None);
        return;
    }
    if (counter_ == nullptr) {
        setState(State::WaitingForModel);
        return;
    }
    setState(State::Reading);
    const uint64_t run = run_;
    const auto progress = [this, run](const tools::IngestProgress& now) {
        QMetaObject::invokeMethod(
            this,
            [this, run, now] {
                if (run == run_) {
                    progress_ = now;
                    Q_EMIT progressChanged();
                }
            },
            Qt::QueuedConnection);
    };
    runTask(
        queue_, this,
        [attach = attach_, path = utf8(path_), counter = counter_, progress,
         stop = stop_.get_token()](std::stop_token) -> Result<AttachedFolder> {
            AttachedFolder folder = BV_TRY(attach(path, counter));
            static_cast<void>(BV_TRY(folder.repository->ingest(progress, stop)));
            return folder;
        },
        [this, run](Result<AttachedFolder> result) { finish(run, std::move(result)); });
}

void RepositoryService::finish(uint64_t run, Result<AttachedFolder> result) {
    if (run != run_) {
        return;
    }
    if (result) {
        folder_ = std::move(*result);
        setState(State::Ready);
    } else if (result.error().code == ErrorCode::Cancelled) {
        path_.clear();
        setState(State::None);
    } else {
        error_ = result.error();
        setState(State::Failed);
    }
}

void RepositoryService::cancel() {
    if (state_ == State::Reading) {
        stop_.request_stop();
    } else if (state_ == State::WaitingForModel) {
        attach({});
    }
}

void RepositoryService::readSource(const QString& path,
                                   QObject* context,
                                   std::function<void(const Result<Source>&)> then) {
    runTask(
        files_, context,
        [repository = folder_.repository, name = utf8(path),
         language = languageOfPath(path)](std::stop_token) -> Result<Source> {
            if (repository == nullptr) {
                return fail(ErrorCode::InvalidArgument,
                            "no folder is read: attach one, and load a model");
            }
            const std::string text = BV_TRY(repository->readFile(name));
            if (text.size() > kMaxShownBytes) {
                return fail(ErrorCode::Unsupported, "{}: {} MiB, and at most {} are shown", name,
                            text.size() >> 20U, kMaxShownBytes >> 20U);
            }
            return std::make_shared<const SourceDocument>(text, language);
        },
        std::move(then));
}

}  // namespace belvedere::app
