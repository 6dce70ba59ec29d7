// SPDX-License-Identifier: Apache-2.0
#pragma once

// A CodeView for screen readers: a text that cannot be changed, with a cursor and one selection.
// GUI thread only.

#include <QAccessibleWidget>

#include "app/views/code_view.h"

namespace belvedere::app {

class AccessibleCode : public QAccessibleWidget, public QAccessibleTextInterface {
  public:
    explicit AccessibleCode(CodeView* view);

    [[nodiscard]] QAccessible::State state() const override;

    [[nodiscard]] int childCount() const override { return 0; }

    [[nodiscard]] QAccessibleInterface* child(int index) const override;
    void* interface_cast(QAccessible::InterfaceType type) override;

    void selection(int index, int* begin, int* end) const override;
    [[nodiscard]] int selectionCount() const override;
    void addSelection(int begin, int end) override;
    void removeSelection(int index) override;
    void setSelection(int index, int begin, int end) override;
    [[nodiscard]] int cursorPosition() const override;
    void setCursorPosition(int position) override;
    using QAccessibleWidget::text;
    [[nodiscard]] QString text(int begin, int end) const override;
    [[nodiscard]] int characterCount() const override;
    [[nodiscard]] QRect characterRect(int offset) const override;
    [[nodiscard]] int offsetAtPoint(const QPoint& point) const override;
    void scrollToSubstring(int begin, int end) override;
    QString attributes(int offset, int* begin, int* end) const override;

  private:
    [[nodiscard]] CodeView& view() const;
};

}  // namespace belvedere::app
