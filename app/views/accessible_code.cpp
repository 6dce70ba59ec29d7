// SPDX-License-Identifier: Apache-2.0
#include "app/views/accessible_code.h"

#include <algorithm>

namespace belvedere::app {

AccessibleCode::AccessibleCode(CodeView* view)
    : QAccessibleWidget(view, QAccessible::EditableText) {}

CodeView& AccessibleCode::view() const {
    return *static_cast<CodeView*>(widget());
}

QAccessible::State AccessibleCode::state() const {
    QAccessible::State state = QAccessibleWidget::state();
    state.readOnly = true;
    state.multiLine = true;
    state.selectableText = true;
    return state;
}

QAccessibleInterface* AccessibleCode::child(int /*index*/) const {
    return nullptr;
}

void* AccessibleCode::interface_cast(QAccessible::InterfaceType type) {
    if (type == QAccessible::TextInterface) {
        return static_cast<QAccessibleTextInterface*>(this);
    }
    return QAccessibleWidget::interface_cast(type);
}

void AccessibleCode::selection(int index, int* begin, int* end) const {
    const auto [from, to] = std::minmax(view().anchorPosition(), view().cursorPosition());
    *begin = index == 0 ? static_cast<int>(from) : 0;
    *end = index == 0 ? static_cast<int>(to) : 0;
}

int AccessibleCode::selectionCount() const {
    return view().anchorPosition() == view().cursorPosition() ? 0 : 1;
}

void AccessibleCode::addSelection(int begin, int end) {
    view().select(begin, end);
}

void AccessibleCode::removeSelection(int /*index*/) {
    view().select(view().cursorPosition(), view().cursorPosition());
}

void AccessibleCode::setSelection(int /*index*/, int begin, int end) {
    view().select(begin, end);
}

int AccessibleCode::cursorPosition() const {
    return static_cast<int>(view().cursorPosition());
}

void AccessibleCode::setCursorPosition(int position) {
    view().select(position, position);
    view().showCursor();
}

QString AccessibleCode::text(int begin, int end) const {
    return view().toPlainText().mid(begin, std::max(0, end - begin));
}

int AccessibleCode::characterCount() const {
    return static_cast<int>(view().toPlainText().size());
}

QRect AccessibleCode::characterRect(int offset) const {
    const QRect rect = view().characterRect(offset).toAlignedRect();
    return {view().viewport()->mapToGlobal(rect.topLeft()), rect.size()};
}

int AccessibleCode::offsetAtPoint(const QPoint& point) const {
    return static_cast<int>(view().positionAt(view().viewport()->mapFromGlobal(point)));
}

void AccessibleCode::scrollToSubstring(int begin, int /*end*/) {
    setCursorPosition(begin);
}

QString AccessibleCode::attributes(int /*offset*/, int* begin, int* end) const {
    *begin = 0;
    *end = characterCount();
    return {};
}

}  // namespace belvedere::app
