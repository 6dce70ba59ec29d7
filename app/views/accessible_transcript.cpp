// SPDX-License-Identifier: Apache-2.0
#include "app/views/accessible_transcript.h"

#include <QCoreApplication>
#include <QToolButton>

#include "app/models/transcript_text.h"

namespace belvedere::app {

namespace {

QRect onScreen(const TranscriptView& view, const QRect& rect) {
    return {view.viewport()->mapToGlobal(rect.topLeft()), rect.size()};
}

QString speakerOf(const TranscriptItem& item) {
    using Kind = TranscriptItem::Kind;
    const auto tr = [](const char* text) {
        return QCoreApplication::translate("Accessible", text);
    };
    switch (item.kind) {
        case Kind::User:
            return tr("You");
        case Kind::Context:
            return tr("Sources");
        case Kind::Thinking:
            return tr("Thinking");
        case Kind::Answer:
            return tr("Answer");
        case Kind::ToolCall:
            return tr("Tool");
        case Kind::Plan:
            return tr("Plan");
        case Kind::Error:
            return tr("Error");
        case Kind::Notice:
        case Kind::End:
            break;
    }
    return tr("Note");
}

QAccessibleInterface* childUnder(const QAccessibleInterface& of, int x, int y) {
    for (int i = 0; i < of.childCount(); ++i) {
        QAccessibleInterface* child = of.child(i);
        if (child != nullptr && child->rect().contains(x, y)) {
            return child;
        }
    }
    return nullptr;
}

}  // namespace

void AccessibleChildren::clear() {
    for (const QAccessible::Id id : ids_) {
        if (id != 0) {
            QAccessible::deleteAccessibleInterface(id);
        }
    }
    ids_.clear();
}

AccessibleTranscript::AccessibleTranscript(TranscriptView* view)
    : QAccessibleWidget(view, QAccessible::List) {}

TranscriptView& AccessibleTranscript::view() const {
    return *static_cast<TranscriptView*>(widget());
}

int AccessibleTranscript::numRows() const {
    const TranscriptModel* transcript = view().transcript();
    return transcript == nullptr ? 0 : transcript->rowCount();
}

int AccessibleTranscript::childCount() const {
    return numRows() + (view().jumpButton().isVisible() ? 1 : 0);
}

QAccessibleInterface* AccessibleTranscript::child(int index) const {
    const int n_rows = numRows();
    if (rows_.size() > static_cast<size_t>(n_rows)) {
        rows_.clear();  // another transcript
    }
    if (index < 0 || index >= childCount()) {
        return nullptr;
    }
    if (index == n_rows) {
        return QAccessible::queryAccessibleInterface(&view().jumpButton());
    }
    return rows_.at(index, [&] { return new AccessibleRow(&view(), index); });
}

int AccessibleTranscript::indexOfChild(const QAccessibleInterface* child) const {
    if (child->object() == &view().jumpButton()) {
        return view().jumpButton().isVisible() ? numRows() : -1;
    }
    const auto* row = dynamic_cast<const AccessibleRow*>(child);
    return row == nullptr ? -1 : row->row();
}

QAccessibleInterface* AccessibleTranscript::childAt(int x, int y) const {
    return childUnder(*this, x, y);
}

QAccessibleInterface* AccessibleTranscript::focusChild() const {
    const auto target = view().keyboardTarget();
    if (!target || !view().hasFocus()) {
        return QAccessibleWidget::focusChild();
    }
    QAccessibleInterface* row = child(target->row);
    return row == nullptr ? nullptr : row->child(static_cast<int>(target->action));
}

bool AccessibleRow::isValid() const {
    return view_ != nullptr && view_->transcript() != nullptr &&
           row_ < view_->transcript()->rowCount();
}

QAccessibleInterface* AccessibleRow::parent() const {
    return QAccessible::queryAccessibleInterface(view_);
}

int AccessibleRow::childCount() const {
    return isValid() ? static_cast<int>(view_->actionsOf(row_).size()) : 0;
}

QAccessibleInterface* AccessibleRow::child(int index) const {
    if (index < 0 || index >= childCount()) {
        return nullptr;
    }
    return targets_.at(index, [&] { return new AccessibleTarget(view_, row_, index); });
}

int AccessibleRow::indexOfChild(const QAccessibleInterface* child) const {
    const auto* target = dynamic_cast<const AccessibleTarget*>(child);
    return target == nullptr ? -1 : target->index();
}

QAccessibleInterface* AccessibleRow::childAt(int x, int y) const {
    return childUnder(*this, x, y);
}

QString AccessibleRow::text(QAccessible::Text kind) const {
    if (!isValid() || kind != QAccessible::Name) {
        return {};
    }
    const TranscriptItem& item = view_->transcript()->item(row_);
    return QStringLiteral("%1: %2").arg(speakerOf(item), transcriptText(item));
}

QRect AccessibleRow::rect() const {
    return isValid() ? onScreen(*view_, view_->rowRect(row_)) : QRect();
}

QAccessible::State AccessibleRow::state() const {
    QAccessible::State state;
    state.invalid = !isValid();
    state.readOnly = true;
    if (isValid()) {
        state.offscreen = !view_->rowRect(row_).intersects(view_->viewport()->rect());
        state.busy = view_->transcript()->item(row_).is_streaming;
    }
    return state;
}

bool AccessibleTarget::isValid() const {
    return view_ != nullptr && static_cast<size_t>(index_) < view_->actionsOf(row_).size();
}

QAccessibleInterface* AccessibleTarget::parent() const {
    QAccessibleInterface* list = QAccessible::queryAccessibleInterface(view_);
    return list == nullptr ? nullptr : list->child(row_);
}

QString AccessibleTarget::text(QAccessible::Text kind) const {
    return isValid() && kind == QAccessible::Name
               ? view_->actionsOf(row_)[static_cast<size_t>(index_)].name
               : QString();
}

QRect AccessibleTarget::rect() const {
    return isValid() ? onScreen(*view_, view_->actionRect(row_, static_cast<size_t>(index_)))
                     : QRect();
}

QAccessible::Role AccessibleTarget::role() const {
    if (!isValid()) {
        return QAccessible::NoRole;
    }
    const RowAction::Kind kind = view_->actionsOf(row_)[static_cast<size_t>(index_)].kind;
    return kind == RowAction::Kind::OpenCitation || kind == RowAction::Kind::OpenLink
               ? QAccessible::Link
               : QAccessible::Button;
}

QAccessible::State AccessibleTarget::state() const {
    QAccessible::State state;
    state.invalid = !isValid();
    state.focusable = true;
    const auto target = view_ == nullptr ? std::nullopt : view_->keyboardTarget();
    state.focused = target && view_->hasFocus() && target->row == row_ &&
                    target->action == static_cast<size_t>(index_);
    return state;
}

void* AccessibleTarget::interface_cast(QAccessible::InterfaceType type) {
    return type == QAccessible::ActionInterface ? static_cast<QAccessibleActionInterface*>(this)
                                                : nullptr;
}

void AccessibleTarget::doAction(const QString& name) {
    if (name == pressAction() && view_ != nullptr) {
        view_->activateAction(row_, static_cast<size_t>(index_));
    }
}

}  // namespace belvedere::app
