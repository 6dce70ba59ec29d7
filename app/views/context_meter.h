// SPDX-License-Identifier: Apache-2.0
#pragma once

// The strip below the window: what fills the model's context, by category, and how fast it works.
// GUI thread only.

#include <QPointer>
#include <QString>
#include <QWidget>
#include <memory>
#include <optional>
#include <vector>

#include "app/models/transcript_model.h"
#include "app/theme/theme.h"

namespace belvedere::app {

/// One part of the bar.
struct MeterPart {
    QString name;
    size_t n_tokens = 0;
    Colour colour = Colour::MeterOther;
};

/// The categories of a context in the order they stand in the window.
[[nodiscard]] std::vector<MeterPart> meterParts(const agent::ContextChanged& context);

/// "12 of 48 files, 7.9K of 61.2K tokens"
[[nodiscard]] QString coverageText(const agent::ContextChanged& context);

/// What is being done, else the figures of the last answer; `is_short` leaves out all but the rate.
[[nodiscard]] QString rateText(const Activity& activity,
                               const std::optional<agent::UsageUpdated>& usage,
                               bool is_short);

class ContextMeter : public QWidget {
    Q_OBJECT

  public:
    ContextMeter(const Theme& theme, QWidget* parent);

    /// nullptr: none yet.
    void setTranscript(TranscriptModel* transcript);
    /// Shown while no question has been asked: "48 files, 61,204 tokens in belvedere".
    void setIdleText(const QString& text);

    [[nodiscard]] QSize sizeHint() const override;
    [[nodiscard]] QSize minimumSizeHint() const override;

  protected:
    void paintEvent(QPaintEvent* event) override;
    bool event(QEvent* event) override;

  private:
    void refresh();
    [[nodiscard]] QString tooltip() const;
    [[nodiscard]] QRectF barRect() const;

    const Theme& theme_;
    QPointer<TranscriptModel> transcript_;
    QString idle_text_;
};

}  // namespace belvedere::app
