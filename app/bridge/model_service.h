// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which model is loaded, and the loading and fetching of one, off the GUI thread. What loading
// means is given by the composition root, so that tests load a scripted model. GUI thread only.
//
//     None -> Loading -> Ready          load()
//     None -> Fetching -> Loading ...   fetchDefault()
//     any  -> Failed or the state before (cancel)

#include <QObject>
#include <QString>
#include <QStringList>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

#include "agent/model/language_model.h"
#include "app/bridge/task_queue.h"
#include "inference/engine.h"
#include "kernels/base/result.h"

namespace belvedere::app {

struct LoadedModel {
    std::shared_ptr<agent::LanguageModel> model;  // shared with the agent's running turns
    inference::ModelInfo info;
};

/// The default model as the first page describes it.
struct DefaultModel {
    QString name;
    QString summary;
    QStringList limits;
    QString licence;
    QString path;  ///< of its main file, whether it is there or not
    uint64_t n_bytes = 0;
    uint64_t n_bytes_to_fetch = 0;
    bool is_installed = false;
};

struct FetchStep {
    QString what;  ///< "downloading", "checking"
    uint64_t n_bytes = 0;
    uint64_t n_bytes_total = 0;
};

/// What the service needs of the world. Called on its thread.
struct ModelSource {
    std::function<Result<LoadedModel>(const inference::LoadRequest&,
                                      const inference::EngineConfig&,
                                      const inference::LoadProgress&,
                                      std::stop_token)>
        load;
    std::function<Result<DefaultModel>()> describe_default;
    std::function<Result<inference::LoadRequest>()> default_request;
    std::function<Result<void>(const std::function<void(const FetchStep&)>&, std::stop_token)>
        fetch_default;
};

class ModelService : public QObject {
    Q_OBJECT

  public:
    enum class State { None, Fetching, Loading, Ready, Failed };

    ModelService(ModelSource source,
                 const inference::EngineConfig& config,
                 QObject* parent = nullptr);
    /// Stops what runs and waits for it.
    ~ModelService() override;

    [[nodiscard]] State state() const { return state_; }

    [[nodiscard]] bool isBusy() const {
        return state_ == State::Loading || state_ == State::Fetching;
    }

    /// In [0, 1], and what is being done, while busy.
    [[nodiscard]] double fraction() const { return fraction_; }

    [[nodiscard]] const QString& activity() const { return activity_; }

    [[nodiscard]] const Error& error() const { return error_; }

    /// The model in use; the one before stays in use while another is loading.
    [[nodiscard]] const std::optional<LoadedModel>& loaded() const { return loaded_; }

    /// What people call the loaded model: the default one by the name of its manifest, others by
    /// that of their file; empty without one.
    [[nodiscard]] QString name() const;

    [[nodiscard]] const std::optional<DefaultModel>& defaultModel() const { return default_model_; }

    /// For models loaded from now on.
    void setEngineConfig(const inference::EngineConfig& config) { engine_config_ = config; }

    void load(const inference::LoadRequest& request);
    void loadDefault();
    /// Downloads the default model, then loads it.
    void fetchDefault();
    void cancel();
    /// Looks again whether the default model is there.
    void refreshDefault();

  Q_SIGNALS:
    void stateChanged();
    void progressChanged();
    void loadedChanged();
    void defaultChanged();

  private:
    void begin(State state);
    void finishLoad(uint64_t run, Result<LoadedModel> result);
    void failRun(const Error& error);
    void report(uint64_t run, double fraction, const QString& activity);

    ModelSource source_;
    inference::EngineConfig engine_config_;
    State state_ = State::None;
    double fraction_ = 0;
    QString activity_;
    Error error_;
    std::optional<LoadedModel> loaded_;
    std::optional<DefaultModel> default_model_;
    uint64_t run_ = 0;  ///< news of an earlier run is dropped
    std::stop_source stop_;
    TaskQueue queue_;  // last: joins before the state above dies
};

}  // namespace belvedere::app
