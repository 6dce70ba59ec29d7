// SPDX-License-Identifier: Apache-2.0
#pragma once

// The folder that questions are asked about: attached and read on a thread of its own, with
// progress and cancel. Reading needs the loaded model's tokenizer, so an attached folder waits for
// a model and is read again with another one. GUI thread only.

#include <QObject>
#include <QString>
#include <functional>
#include <memory>
#include <stop_token>

#include "agent/tool.h"
#include "app/bridge/task_queue.h"
#include "app/theme/source_document.h"
#include "kernels/base/result.h"
#include "tools/repository/repository.h"

namespace belvedere::app {

/// A folder with the tools that act in it.
struct AttachedFolder {
    std::shared_ptr<tools::Repository> repository;  // shared with the agent's turns
    std::shared_ptr<agent::ToolRegistry> tools;     // shared with the agent's turns
};

using AttachFolder = std::function<Result<AttachedFolder>(
    const std::string& path, std::shared_ptr<const agent::TokenCounter>)>;

class RepositoryService : public QObject {
    Q_OBJECT

  public:
    enum class State { None, WaitingForModel, Reading, Ready, Failed };

    explicit RepositoryService(AttachFolder attach, QObject* parent = nullptr);
    /// Stops reading and waits for it.
    ~RepositoryService() override;

    [[nodiscard]] State state() const { return state_; }

    [[nodiscard]] const QString& path() const { return path_; }

    /// The folder's own name.
    [[nodiscard]] QString name() const;

    [[nodiscard]] const tools::IngestProgress& progress() const { return progress_; }

    [[nodiscard]] const Error& error() const { return error_; }

    /// Set in state Ready.
    [[nodiscard]] const AttachedFolder& folder() const { return folder_; }

    /// Empty path: nothing attached. The same path again is read anew.
    void attach(const QString& path);
    void setCounter(std::shared_ptr<const agent::TokenCounter> counter);
    void cancel();

    using Source = std::shared_ptr<const SourceDocument>;  // made on a worker, never changes

    /// A file for the source view; `then` is called on the GUI thread while context lives. Errors:
    /// those of Repository::readFile; InvalidArgument where no folder is read; Unsupported (more
    /// than kMaxShownBytes).
    void readSource(const QString& path,
                    QObject* context,
                    std::function<void(const Result<Source>&)> then);

    /// Larger sources are data, and twice their size in memory.
    static constexpr size_t kMaxShownBytes = size_t{16} << 20;

  Q_SIGNALS:
    void stateChanged();
    void progressChanged();

  private:
    void start();
    void setState(State state);
    void finish(uint64_t run, Result<AttachedFolder> result);

    AttachFolder attach_;
    State state_ = State::None;
    QString path_;
    std::shared_ptr<const agent::TokenCounter> counter_;  // shared with the model
    AttachedFolder folder_;
    tools::IngestProgress progress_;
    Error error_;
    uint64_t run_ = 0;
    std::stop_source stop_;
    TaskQueue files_;  // a file is shown while a folder is being read
    TaskQueue queue_;  // last: joins before the state above dies
};

}  // namespace belvedere::app
