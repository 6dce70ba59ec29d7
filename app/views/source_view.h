// SPDX-License-Identifier: Apache-2.0
#pragma once

// A file of the attached folder with a range of lines marked: what a citation points to. Read on
// a worker thread; a file that is gone, binary or too large is told in its place. GUI thread
// only.

#include <QLabel>
#include <QStackedWidget>
#include <QToolButton>
#include <QWidget>

#include "app/bridge/repository_service.h"
#include "app/theme/theme.h"

namespace belvedere::app {

class CodeView;

class SourceView : public QWidget {
    Q_OBJECT

  public:
    SourceView(const Theme& theme, RepositoryService& repositories, QWidget* parent);

    /// Lines [first_line, last_line], counted from 1; 0: the file from its beginning.
    void openRange(const QString& path, size_t first_line, size_t last_line);

    [[nodiscard]] const QString& path() const { return path_; }

    [[nodiscard]] const CodeView& code() const { return *code_; }

    /// The message in place of a file, empty while one is shown.
    [[nodiscard]] QString problem() const;

  Q_SIGNALS:
    void closeRequested();
    /// In the program the system has for it.
    void openOutsideRequested(const QString& path);

  protected:
    void resizeEvent(QResizeEvent* event) override;

  private:
    QWidget* makeHeader();
    void showSource(const Result<RepositoryService::Source>& source);
    void showProblem(const Error& error);
    void updateHeader();

    const Theme& theme_;
    RepositoryService& repositories_;
    QLabel* title_;
    QLabel* range_;
    QLabel* note_;
    QToolButton* copy_;
    QToolButton* outside_;
    QToolButton* close_;
    QStackedWidget* pages_;
    CodeView* code_;
    QLabel* problem_;
    QString path_;
    size_t first_line_ = 0;
    size_t last_line_ = 0;
};

}  // namespace belvedere::app
