// SPDX-License-Identifier: Apache-2.0
#include "app/views/session_panel.h"

#include <QAction>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QMenu>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QTextLayout>
#include <QVBoxLayout>

namespace belvedere::app {

namespace {

constexpr int kSearchDelayMs = 120;
constexpr int kPadding = 10;

/// Plain text of an excerpt and where its match stands.
struct Excerpt {
    QString text;
    QVector<QTextLayout::FormatRange> formats;
};

Excerpt readExcerpt(const QString& marked, const QTextCharFormat& format) {
    Excerpt excerpt;
    int begin = -1;
    for (const QChar c : marked.simplified()) {
        if (c == QChar(1)) {
            begin = static_cast<int>(excerpt.text.size());
        } else if (c == QChar(2) && begin >= 0) {
            excerpt.formats.append({begin, static_cast<int>(excerpt.text.size()) - begin, format});
        } else {
            excerpt.text += c;
        }
    }
    return excerpt;
}

class SessionDelegate : public QStyledItemDelegate {
  public:
    SessionDelegate(const Theme& theme, QObject* parent)
        : QStyledItemDelegate(parent), theme_(theme) {}

    [[nodiscard]] QSize sizeHint(const QStyleOptionViewItem& /*option*/,
                                 const QModelIndex& index) const override {
        if (index.data(SessionListModel::IsHeadingRole).toBool()) {
            return {100, index.row() == 0 ? 26 : 34};
        }
        const bool has_second = !secondLine(index).isEmpty();
        return {100, has_second ? 46 : 32};
    }

    void paint(QPainter* painter,
               const QStyleOptionViewItem& option,
               const QModelIndex& index) const override {
        painter->save();
        painter->setRenderHint(QPainter::Antialiasing);
        if (index.data(SessionListModel::IsHeadingRole).toBool()) {
            paintHeading(*painter, option, index);
        } else {
            paintSession(*painter, option, index);
        }
        painter->restore();
    }

    QWidget* createEditor(QWidget* parent,
                          const QStyleOptionViewItem& /*option*/,
                          const QModelIndex& /*index*/) const override {
        auto* editor = new QLineEdit(parent);
        editor->setFont(theme_.font(Text::Ui));
        editor->setAccessibleName(SessionPanel::tr("Name of the session"));
        return editor;
    }

    void updateEditorGeometry(QWidget* editor,
                              const QStyleOptionViewItem& option,
                              const QModelIndex& /*index*/) const override {
        const int height = editor->sizeHint().height();
        editor->setGeometry(option.rect.left() + 2, option.rect.center().y() - height / 2,
                            option.rect.width() - 4, height);
    }

  private:
    static QString secondLine(const QModelIndex& index) {
        const QString excerpt = index.data(SessionListModel::ExcerptRole).toString();
        return excerpt.isEmpty() ? index.data(SessionListModel::DetailRole).toString() : excerpt;
    }

    void paintHeading(QPainter& painter,
                      const QStyleOptionViewItem& option,
                      const QModelIndex& index) const {
        painter.setFont(theme_.font(Text::Caption));
        painter.setPen(theme_.colour(Colour::TextMuted));
        painter.drawText(option.rect.adjusted(kPadding, 0, -kPadding, -5),
                         Qt::AlignLeft | Qt::AlignBottom, index.data().toString());
    }

    void paintSession(QPainter& painter,
                      const QStyleOptionViewItem& option,
                      const QModelIndex& index) const {
        const bool is_selected = option.state.testFlag(QStyle::State_Selected);
        const bool is_hovered = option.state.testFlag(QStyle::State_MouseOver);
        const QRectF box = QRectF(option.rect).adjusted(2, 1, -2, -1);
        if (is_selected || is_hovered) {
            painter.setPen(Qt::NoPen);
            painter.setBrush(
                theme_.colour(is_selected ? Colour::SurfacePressed : Colour::SurfaceHover));
            painter.drawRoundedRect(box, theme_.sizes().radius_small, theme_.sizes().radius_small);
        }
        if (option.state.testFlag(QStyle::State_HasFocus)) {
            painter.setBrush(Qt::NoBrush);
            painter.setPen(theme_.colour(Colour::Accent));
            painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), theme_.sizes().radius_small,
                                    theme_.sizes().radius_small);
        }
        QRectF text = box.adjusted(kPadding - 2, 5, -kPadding + 2, -5);
        if (index.data(SessionListModel::IsRunningRole).toBool()) {
            painter.setPen(Qt::NoPen);
            painter.setBrush(theme_.colour(Colour::Accent));
            painter.drawEllipse(QPointF(text.right() - 3, text.top() + 9), 3.5, 3.5);
            text.setRight(text.right() - 14);
        }
        const QString second = secondLine(index);
        painter.setFont(theme_.font(Text::Ui));
        painter.setPen(theme_.colour(Colour::Text));
        const QFontMetricsF metrics(painter.font());
        painter.drawText(
            second.isEmpty() ? text : QRectF(text.left(), text.top(), text.width(), 18),
            Qt::AlignLeft | Qt::AlignVCenter,
            metrics.elidedText(index.data().toString().simplified(), Qt::ElideRight, text.width()));
        if (!second.isEmpty()) {
            paintSecond(painter, QRectF(text.left(), text.bottom() - 16, text.width(), 16), second);
        }
    }

    void paintSecond(QPainter& painter, const QRectF& rect, const QString& marked) const {
        QTextCharFormat match;
        match.setFontWeight(QFont::DemiBold);
        match.setForeground(theme_.colour(Colour::Accent));
        const Excerpt excerpt = readExcerpt(marked, match);
        QTextLayout layout(excerpt.text, theme_.font(Text::Small));
        QTextOption option;
        option.setWrapMode(QTextOption::NoWrap);
        layout.setTextOption(option);
        layout.setFormats(excerpt.formats);
        layout.beginLayout();
        QTextLine line = layout.createLine();
        layout.endLayout();
        painter.setPen(theme_.colour(Colour::TextMuted));
        painter.setClipRect(rect);
        if (line.isValid()) {
            layout.draw(&painter, {rect.left(), rect.center().y() - line.height() / 2});
        }
        painter.setClipping(false);
    }

    const Theme& theme_;
};

}  // namespace

SessionPanel::SessionPanel(const Theme& theme, QWidget* parent) : QWidget(parent), theme_(theme) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(10, 8, 10, 0);
    column->setSpacing(6);
    auto* row = new QHBoxLayout;
    row->setSpacing(6);
    column->addLayout(row);
    search_ = new QLineEdit(this);
    search_->setPlaceholderText(tr("Search sessions"));
    search_->setAccessibleName(tr("Search sessions"));
    search_->setToolTip(tr("Search titles, questions and answers (Ctrl+F)"));
    search_->setClearButtonEnabled(true);
    search_icon_ = search_->addAction(QIcon(), QLineEdit::LeadingPosition);
    search_->installEventFilter(this);
    row->addWidget(search_, 1);
    new_ = new QToolButton(this);
    new_->setToolTip(tr("New session (Ctrl+N)"));
    new_->setAccessibleName(tr("New session"));
    row->addWidget(new_);
    list_ = new QListView(this);
    list_->setAccessibleName(tr("Sessions"));
    list_->setItemDelegate(new SessionDelegate(theme, this));
    list_->setMouseTracking(true);
    list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    list_->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
    list_->setEditTriggers(QAbstractItemView::EditKeyPressed);
    list_->setContextMenuPolicy(Qt::CustomContextMenu);
    list_->installEventFilter(this);
    column->addWidget(list_, 1);

    search_delay_.setSingleShot(true);
    search_delay_.setInterval(kSearchDelayMs);
    connect(search_, &QLineEdit::textChanged, &search_delay_, qOverload<>(&QTimer::start));
    connect(&search_delay_, &QTimer::timeout, this,
            [this] { Q_EMIT searchChanged(search_->text()); });
    connect(new_, &QToolButton::clicked, this, &SessionPanel::newRequested);
    connect(list_, &QListView::clicked, this, [this](const QModelIndex& index) {
        Q_EMIT openRequested(index.data(SessionListModel::IdRole).toString());
    });
    connect(list_, &QListView::customContextMenuRequested, this, &SessionPanel::showMenu);
    connect(&theme, &Theme::changed, this, &SessionPanel::updateIcons);
    updateIcons();
}

void SessionPanel::updateIcons() {
    search_icon_->setIcon(theme_.icon(QStringLiteral("search"), Colour::TextFaint));
    new_->setIcon(theme_.icon(QStringLiteral("plus")));
    list_->viewport()->update();
}

void SessionPanel::setModel(SessionListModel* model) {
    model_ = model;
    list_->setModel(model);
    connect(model, &SessionListModel::modelReset, this, &SessionPanel::selectCurrent);
    connect(model, &SessionListModel::renameRequested, this, &SessionPanel::renameRequested);
    selectCurrent();
}

void SessionPanel::setCurrent(const QString& id) {
    current_ = id;
    selectCurrent();
}

void SessionPanel::selectCurrent() {
    const QModelIndex index = model_ == nullptr ? QModelIndex() : model_->indexOf(current_);
    if (index.isValid()) {
        list_->setCurrentIndex(index);
    } else {
        list_->setCurrentIndex({});
    }
}

void SessionPanel::focusSearch() {
    search_->setFocus(Qt::ShortcutFocusReason);
    search_->selectAll();
}

QString SessionPanel::selectedId() const {
    return list_->currentIndex().data(SessionListModel::IdRole).toString();
}

void SessionPanel::showMenu(const QPoint& point) {
    const QModelIndex index = list_->indexAt(point);
    const QString id = index.data(SessionListModel::IdRole).toString();
    if (id.isEmpty()) {
        return;
    }
    auto* menu = new QMenu(this);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    menu->addAction(tr("Open"), this, [this, id] { Q_EMIT openRequested(id); });
    const QPersistentModelIndex row(index);
    menu->addAction(theme_.icon(QStringLiteral("pencil")), tr("Rename\tF2"), this, [this, row] {
        if (row.isValid()) {
            list_->edit(row);
        }
    });
    menu->addSeparator();
    menu->addAction(theme_.icon(QStringLiteral("trash"), Colour::Danger), tr("Delete\tDel"), this,
                    [this, id] { Q_EMIT deleteRequested(id); });
    menu->popup(list_->viewport()->mapToGlobal(point));
}

bool SessionPanel::eventFilter(QObject* watched, QEvent* event) {
    if (event->type() != QEvent::KeyPress) {
        return QWidget::eventFilter(watched, event);
    }
    const int key = static_cast<QKeyEvent*>(event)->key();
    if (watched == list_) {
        if (key == Qt::Key_Delete && !selectedId().isEmpty()) {
            Q_EMIT deleteRequested(selectedId());
            return true;
        }
        if ((key == Qt::Key_Return || key == Qt::Key_Enter) && !selectedId().isEmpty()) {
            Q_EMIT openRequested(selectedId());
            return true;
        }
    }
    if (watched == search_) {
        if (key == Qt::Key_Escape && !search_->text().isEmpty()) {
            search_->clear();
            return true;
        }
        if (key == Qt::Key_Down) {
            list_->setFocus(Qt::TabFocusReason);
            return true;
        }
    }
    return QWidget::eventFilter(watched, event);
}

}  // namespace belvedere::app
