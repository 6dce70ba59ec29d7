// SPDX-License-Identifier: Apache-2.0
#pragma once

// Cards above the transcript that say what went wrong and what to do, and a short message with one
// action at the lower edge. Neither takes the keyboard away from the user. GUI thread only.

#include <QLabel>
#include <QPushButton>
#include <QTimer>
#include <QWidget>
#include <functional>
#include <map>

#include "app/bridge/error_text.h"
#include "app/theme/theme.h"

class QVBoxLayout;

namespace belvedere::app {

enum class NoticeTone { Danger, Warning, Notice };

struct NoticeCard {
    QString title;
    QString detail;
    QString advice;
    NoticeTone tone = NoticeTone::Danger;
    QString action;  ///< label of its button, empty: none
    std::function<void()> on_action;
};

class NoticeArea : public QWidget {
    Q_OBJECT

  public:
    explicit NoticeArea(const Theme& theme, QWidget* parent);

    /// A card of the same key is replaced.
    void post(const QString& key, const NoticeCard& card);
    void post(const QString& key, const ErrorText& error);
    void remove(const QString& key);

    [[nodiscard]] bool has(const QString& key) const { return cards_.contains(key); }

  private:
    QWidget* makeCard(const QString& key, const NoticeCard& card);

    const Theme& theme_;
    QVBoxLayout* layout_ = nullptr;
    std::map<QString, QWidget*> cards_;
};

/// "Session deleted. Undo": goes by itself.
class Toast : public QWidget {
    Q_OBJECT

  public:
    Toast(const Theme& theme, QWidget* parent);

    /// `on_gone` is called when it leaves without its action being taken.
    void post(const QString& text,
              const QString& action,
              std::function<void()> on_action,
              std::function<void()> on_gone);
    /// Leaves now.
    void dismiss();

  protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

  private:
    void place();

    QLabel* label_;
    QPushButton* button_;
    QTimer timer_;
    std::function<void()> on_action_;
    std::function<void()> on_gone_;
};

}  // namespace belvedere::app
