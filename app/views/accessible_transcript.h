// SPDX-License-Identifier: Apache-2.0
#pragma once

// A TranscriptView for screen readers: a list, its rows with who speaks and what is said, and in
// each row what can be pressed. Rows and their children are made when they are asked for. GUI
// thread only.

#include <QAccessibleWidget>
#include <QPointer>
#include <vector>

#include "app/views/transcript_view.h"

namespace belvedere::app {

/// Children of an interface that are made when they are asked for and kept by Qt under their ids.
class AccessibleChildren {
  public:
    AccessibleChildren() = default;

    ~AccessibleChildren() { clear(); }

    AccessibleChildren(const AccessibleChildren&) = delete;
    AccessibleChildren& operator=(const AccessibleChildren&) = delete;

    /// The child at this index; make() gives a new one.
    template <class Make>
    QAccessibleInterface* at(int index, Make make) {
        const auto i = static_cast<size_t>(index);
        if (ids_.size() <= i) {
            ids_.resize(i + 1, 0);
        }
        if (ids_[i] == 0) {
            ids_[i] = QAccessible::registerAccessibleInterface(make());
        }
        return QAccessible::accessibleInterface(ids_[i]);
    }

    void clear();

    [[nodiscard]] size_t size() const { return ids_.size(); }

  private:
    std::vector<QAccessible::Id> ids_;  ///< 0: not made yet
};

class AccessibleTranscript : public QAccessibleWidget {
  public:
    explicit AccessibleTranscript(TranscriptView* view);

    [[nodiscard]] int childCount() const override;
    [[nodiscard]] QAccessibleInterface* child(int index) const override;
    int indexOfChild(const QAccessibleInterface* child) const override;
    [[nodiscard]] QAccessibleInterface* childAt(int x, int y) const override;
    [[nodiscard]] QAccessibleInterface* focusChild() const override;

  private:
    [[nodiscard]] TranscriptView& view() const;
    [[nodiscard]] int numRows() const;

    mutable AccessibleChildren rows_;
};

class AccessibleRow : public QAccessibleInterface {
  public:
    AccessibleRow(TranscriptView* view, int row) : view_(view), row_(row) {}

    [[nodiscard]] int row() const { return row_; }

    [[nodiscard]] bool isValid() const override;

    [[nodiscard]] QObject* object() const override { return nullptr; }

    [[nodiscard]] QAccessibleInterface* childAt(int x, int y) const override;
    [[nodiscard]] QAccessibleInterface* parent() const override;
    [[nodiscard]] QAccessibleInterface* child(int index) const override;
    [[nodiscard]] int childCount() const override;
    int indexOfChild(const QAccessibleInterface* child) const override;
    [[nodiscard]] QString text(QAccessible::Text kind) const override;

    void setText(QAccessible::Text /*kind*/, const QString& /*text*/) override {}

    [[nodiscard]] QRect rect() const override;

    [[nodiscard]] QAccessible::Role role() const override { return QAccessible::ListItem; }

    [[nodiscard]] QAccessible::State state() const override;

  private:
    QPointer<TranscriptView> view_;
    int row_;
    mutable AccessibleChildren targets_;
};

/// A link, a citation or a button of a row.
class AccessibleTarget : public QAccessibleInterface, public QAccessibleActionInterface {
  public:
    AccessibleTarget(TranscriptView* view, int row, int index)
        : view_(view), row_(row), index_(index) {}

    [[nodiscard]] int index() const { return index_; }

    [[nodiscard]] bool isValid() const override;

    [[nodiscard]] QObject* object() const override { return nullptr; }

    [[nodiscard]] QAccessibleInterface* childAt(int /*x*/, int /*y*/) const override {
        return nullptr;
    }

    [[nodiscard]] QAccessibleInterface* parent() const override;

    [[nodiscard]] QAccessibleInterface* child(int /*index*/) const override { return nullptr; }

    [[nodiscard]] int childCount() const override { return 0; }

    int indexOfChild(const QAccessibleInterface* /*child*/) const override { return -1; }

    [[nodiscard]] QString text(QAccessible::Text kind) const override;

    void setText(QAccessible::Text /*kind*/, const QString& /*text*/) override {}

    [[nodiscard]] QRect rect() const override;
    [[nodiscard]] QAccessible::Role role() const override;
    [[nodiscard]] QAccessible::State state() const override;
    void* interface_cast(QAccessible::InterfaceType type) override;

    [[nodiscard]] QStringList actionNames() const override { return {pressAction()}; }

    void doAction(const QString& name) override;

    [[nodiscard]] QStringList keyBindingsForAction(const QString& /*name*/) const override {
        return {};
    }

  private:
    QPointer<TranscriptView> view_;
    int row_;
    int index_;
};

}  // namespace belvedere::app
