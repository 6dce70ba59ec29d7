// SPDX-License-Identifier: Apache-2.0
#include "app/views/repository_panel.h"

#include <QHBoxLayout>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QVBoxLayout>

#include "app/bridge/error_text.h"
#include "app/bridge/text.h"

namespace belvedere::app {

namespace {

constexpr int kRowHeight = 26;
constexpr int kSkippedRowHeight = 40;
constexpr int kIconSize = 15;

/// Name at the left, tokens at the right.
class TreeDelegate : public QStyledItemDelegate {
  public:
    TreeDelegate(const Theme& theme, QTreeView* tree)
        : QStyledItemDelegate(tree), theme_(theme), tree_(tree) {}

    [[nodiscard]] QSize sizeHint(const QStyleOptionViewItem& /*option*/,
                                 const QModelIndex& /*index*/) const override {
        return {80, kRowHeight};
    }

    void paint(QPainter* painter,
               const QStyleOptionViewItem& option,
               const QModelIndex& index) const override {
        painter->save();
        painter->setRenderHint(QPainter::Antialiasing);
        const bool is_folder = index.data(RepositoryModel::IsFolderRole).toBool();
        const QRectF row(0, option.rect.top(), tree_->viewport()->width(), option.rect.height());
        paintBackground(*painter, option, row);
        qreal x = option.rect.left();
        const qreal ratio = painter->device()->devicePixelRatioF();
        const auto icon = [&](const char* name) {
            painter->drawPixmap(
                QPointF(x, row.top() + (row.height() - kIconSize) / 2),
                theme_.pixmap(QLatin1String(name), Colour::TextFaint, kIconSize, ratio));
            x += kIconSize + 4;
        };
        if (is_folder) {
            icon(tree_->isExpanded(index) ? "chevron-down" : "chevron-right");
        } else {
            x += kIconSize + 4;
        }
        icon(is_folder ? "folder" : "file");
        const QString tokens =
            shortCountText(index.data(RepositoryModel::TokensRole).toULongLong());
        painter->setFont(theme_.font(Text::Caption));
        painter->setPen(theme_.colour(Colour::TextMuted));
        const qreal tokens_width = QFontMetricsF(painter->font()).horizontalAdvance(tokens);
        painter->drawText(row.adjusted(0, 0, -8, 0), Qt::AlignRight | Qt::AlignVCenter, tokens);
        painter->setFont(theme_.font(Text::Ui));
        painter->setPen(theme_.colour(Colour::Text));
        const QRectF text(x + 2, row.top(), row.right() - 16 - tokens_width - x, row.height());
        painter->drawText(text, Qt::AlignLeft | Qt::AlignVCenter,
                          QFontMetricsF(painter->font())
                              .elidedText(index.data().toString(), Qt::ElideMiddle, text.width()));
        painter->restore();
    }

  private:
    void paintBackground(QPainter& painter,
                         const QStyleOptionViewItem& option,
                         const QRectF& row) const {
        const bool is_selected = option.state.testFlag(QStyle::State_Selected);
        const bool is_hovered = option.state.testFlag(QStyle::State_MouseOver);
        const QRectF box = row.adjusted(0.5, 0.5, -0.5, -0.5);
        const int radius = theme_.sizes().radius_small;
        if (is_selected || is_hovered) {
            painter.setPen(Qt::NoPen);
            painter.setBrush(
                theme_.colour(is_selected ? Colour::SurfacePressed : Colour::SurfaceHover));
            painter.drawRoundedRect(box, radius, radius);
        }
        if (option.state.testFlag(QStyle::State_HasFocus)) {
            painter.setBrush(Qt::NoBrush);
            painter.setPen(theme_.colour(Colour::Accent));
            painter.drawRoundedRect(box, radius, radius);
        }
    }

    const Theme& theme_;
    QTreeView* tree_;
};

/// A tree without the style's own branches and selection: the delegate draws whole rows.
class FileTree : public QTreeView {
  public:
    using QTreeView::QTreeView;

  protected:
    void drawBranches(QPainter* /*painter*/,
                      const QRect& /*rect*/,
                      const QModelIndex& /*index*/) const override {}

    void drawRow(QPainter* painter,
                 const QStyleOptionViewItem& option,
                 const QModelIndex& index) const override {
        QStyleOptionViewItem item = option;
        item.rect = visualRect(index);
        item.state.setFlag(QStyle::State_Selected, selectionModel()->isSelected(index));
        item.state.setFlag(QStyle::State_HasFocus, hasFocus() && currentIndex() == index);
        item.state.setFlag(QStyle::State_MouseOver,
                           viewport()->underMouse() &&
                               indexAt(viewport()->mapFromGlobal(QCursor::pos())) == index);
        itemDelegate()->paint(painter, item, index);
    }
};

/// Path above, reason below.
class SkippedDelegate : public QStyledItemDelegate {
  public:
    SkippedDelegate(const Theme& theme, QObject* parent)
        : QStyledItemDelegate(parent), theme_(theme) {}

    [[nodiscard]] QSize sizeHint(const QStyleOptionViewItem& /*option*/,
                                 const QModelIndex& /*index*/) const override {
        return {80, kSkippedRowHeight};
    }

    void paint(QPainter* painter,
               const QStyleOptionViewItem& option,
               const QModelIndex& index) const override {
        painter->save();
        const QRectF row = QRectF(option.rect).adjusted(6, 3, -6, -3);
        if (option.state.testFlag(QStyle::State_MouseOver) ||
            option.state.testFlag(QStyle::State_HasFocus)) {
            painter->setRenderHint(QPainter::Antialiasing);
            painter->setPen(Qt::NoPen);
            painter->setBrush(theme_.colour(Colour::SurfaceHover));
            painter->drawRoundedRect(option.rect, theme_.sizes().radius_small,
                                     theme_.sizes().radius_small);
        }
        const auto line = [&](Text style, Colour colour, const QString& text, Qt::Alignment where,
                              Qt::TextElideMode mode) {
            painter->setFont(theme_.font(style));
            painter->setPen(theme_.colour(colour));
            painter->drawText(row, static_cast<int>(Qt::AlignLeft | where),
                              QFontMetricsF(painter->font()).elidedText(text, mode, row.width()));
        };
        line(Text::Ui, Colour::Text, index.data().toString(), Qt::AlignTop, Qt::ElideMiddle);
        line(Text::Caption, Colour::TextMuted,
             index.data(RepositorySkippedModel::ReasonRole).toString(), Qt::AlignBottom,
             Qt::ElideRight);
        painter->restore();
    }

  private:
    const Theme& theme_;
};

}  // namespace

RepositoryPanel::RepositoryPanel(const Theme& theme,
                                 RepositoryService& repositories,
                                 QWidget* parent)
    : QWidget(parent), theme_(theme), repositories_(repositories) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(10, 8, 10, 8);
    column->setSpacing(4);
    auto* head = new QHBoxLayout;
    head->setSpacing(6);
    column->addLayout(head);
    title_ = new QLabel(this);
    title_->setFont(theme.font(Text::SmallStrong));
    title_->setTextFormat(Qt::PlainText);
    title_->setMinimumWidth(40);
    head->addSpacing(6);
    head->addWidget(title_, 1);
    total_ = new QLabel(this);
    total_->setFont(theme.font(Text::Caption));
    total_->setProperty("tone", QStringLiteral("muted"));
    head->addWidget(total_);
    reload_ = new QToolButton(this);
    reload_->setToolTip(tr("Read the folder again"));
    reload_->setAccessibleName(tr("Read the folder again"));
    head->addWidget(reload_);
    pages_ = new QStackedWidget(this);
    column->addWidget(pages_, 1);
    pages_->addWidget(tree_page_ = makeTreePage());
    pages_->addWidget(message_page_ = makeMessagePage());
    pages_->addWidget(skipped_page_ = makeSkippedPage());

    connect(reload_, &QToolButton::clicked, this,
            [this] { repositories_.attach(repositories_.path()); });
    connect(&repositories, &RepositoryService::stateChanged, this, &RepositoryPanel::refresh);
    connect(&repositories, &RepositoryService::progressChanged, this,
            &RepositoryPanel::refreshProgress);
    connect(&theme, &Theme::changed, this, &RepositoryPanel::updateIcons);
    updateIcons();
    refresh();
}

QWidget* RepositoryPanel::makeTreePage() {
    auto* page = new QWidget(this);
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(2);
    tree_ = new FileTree(page);
    tree_->setModel(&tree_model_);
    tree_->setItemDelegate(new TreeDelegate(theme_, tree_));
    tree_->setHeaderHidden(true);
    tree_->setUniformRowHeights(true);
    tree_->setIndentation(14);
    tree_->setRootIsDecorated(false);
    tree_->setMouseTracking(true);
    tree_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    tree_->setExpandsOnDoubleClick(false);
    tree_->setEditTriggers(QAbstractItemView::NoEditTriggers);
    tree_->setAccessibleName(tr("Files of the folder with their tokens"));
    column->addWidget(tree_, 1);
    skipped_link_ = new QPushButton(page);
    skipped_link_->setProperty("kind", QStringLiteral("link"));
    skipped_link_->setFont(theme_.font(Text::Small));
    column->addWidget(skipped_link_, 0, Qt::AlignLeft);
    connect(skipped_link_, &QPushButton::clicked, this, [this] {
        pages_->setCurrentWidget(skipped_page_);
        skipped_->setFocus();
    });
    const auto open = [this](const QModelIndex& index) {
        if (index.data(RepositoryModel::IsFolderRole).toBool()) {
            tree_->setExpanded(index, !tree_->isExpanded(index));
        } else if (index.isValid()) {
            Q_EMIT fileRequested(index.data(RepositoryModel::PathRole).toString());
        }
    };
    connect(tree_, &QTreeView::clicked, this, open);
    connect(tree_, &QTreeView::activated, this, [this, open](const QModelIndex& index) {
        // A click has been answered already where the desktop activates by one.
        if (tree_->style()->styleHint(QStyle::SH_ItemView_ActivateItemOnSingleClick, nullptr,
                                      tree_) == 0) {
            open(index);
        }
    });
    return page;
}

QWidget* RepositoryPanel::makeMessagePage() {
    auto* page = new QWidget(this);
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(6, 8, 6, 8);
    column->setSpacing(8);
    message_ = new QLabel(page);
    message_->setFont(theme_.font(Text::Small));
    message_->setProperty("tone", QStringLiteral("muted"));
    message_->setWordWrap(true);
    message_->setTextFormat(Qt::PlainText);
    column->addWidget(message_);
    progress_ = new QProgressBar(page);
    progress_->setTextVisible(false);
    progress_->setAccessibleName(tr("Reading the folder"));
    column->addWidget(progress_);
    message_button_ = new QPushButton(page);
    column->addWidget(message_button_, 0, Qt::AlignLeft);
    column->addStretch(1);
    connect(message_button_, &QPushButton::clicked, this, [this] {
        switch (repositories_.state()) {
            case RepositoryService::State::Reading:
            case RepositoryService::State::WaitingForModel:
                repositories_.cancel();
                break;
            case RepositoryService::State::Failed:
                repositories_.attach(repositories_.path());
                break;
            case RepositoryService::State::None:
            case RepositoryService::State::Ready:
                Q_EMIT openRequested();
                break;
        }
    });
    return page;
}

QWidget* RepositoryPanel::makeSkippedPage() {
    auto* page = new QWidget(this);
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(4);
    auto* head = new QHBoxLayout;
    column->addLayout(head);
    skipped_title_ = new QLabel(page);
    skipped_title_->setFont(theme_.font(Text::SmallStrong));
    head->addSpacing(6);
    head->addWidget(skipped_title_, 1);
    skipped_close_ = new QToolButton(page);
    skipped_close_->setToolTip(tr("Back to the files"));
    skipped_close_->setAccessibleName(tr("Back to the files"));
    head->addWidget(skipped_close_);
    skipped_ = new QListView(page);
    skipped_->setModel(&skipped_model_);
    skipped_->setItemDelegate(new SkippedDelegate(theme_, skipped_));
    skipped_->setUniformItemSizes(true);
    skipped_->setMouseTracking(true);
    skipped_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    skipped_->setAccessibleName(tr("Files that are not read"));
    column->addWidget(skipped_, 1);
    connect(skipped_close_, &QToolButton::clicked, this,
            [this] { pages_->setCurrentWidget(tree_page_); });
    return page;
}

void RepositoryPanel::updateIcons() {
    reload_->setIcon(theme_.icon(QStringLiteral("retry")));
    skipped_close_->setIcon(theme_.icon(QStringLiteral("close")));
    tree_->viewport()->update();
}

void RepositoryPanel::showMessage(const QString& text, const QString& button) {
    message_->setText(text);
    message_button_->setText(button);
    progress_->setVisible(repositories_.state() == RepositoryService::State::Reading);
    pages_->setCurrentWidget(message_page_);
}

void RepositoryPanel::refresh() {
    using State = RepositoryService::State;
    const State state = repositories_.state();
    const bool has_folder = state != State::None;
    title_->setText(has_folder ? repositories_.name() : tr("No folder"));
    title_->setToolTip(repositories_.path());
    reload_->setVisible(state == State::Ready || state == State::Failed);
    total_->clear();
    if (state != State::Ready) {
        tree_model_.setTree(nullptr);
        skipped_model_.setReport(nullptr);
    }
    switch (state) {
        case State::None:
            showMessage(tr("Attach a folder of source files to ask questions about it."),
                        tr("Open folder\u2026"));
            break;
        case State::WaitingForModel:
            showMessage(tr("The folder is read once a model is loaded: its tokens are counted with "
                           "the model's own vocabulary."),
                        tr("Detach"));
            break;
        case State::Reading:
            refreshProgress();
            break;
        case State::Failed:
            showMessage(sentence(repositories_.error().message), tr("Try again"));
            break;
        case State::Ready: {
            const auto& repository = *repositories_.folder().repository;
            tree_model_.setTree(repository.tree());
            const auto report = repository.report();
            skipped_model_.setReport(report);
            total_->setText(tr("%1 tokens").arg(shortCountText(report->n_tokens)));
            total_->setToolTip(tr("%1 files, %2 tokens")
                                   .arg(countText(report->n_files), countText(report->n_tokens)));
            const size_t n_skipped = report->skipped.size();
            skipped_link_->setVisible(n_skipped > 0);
            skipped_link_->setText(n_skipped == 1
                                       ? tr("1 file not read")
                                       : tr("%1 files not read").arg(countText(n_skipped)));
            skipped_title_->setText(skipped_link_->text());
            pages_->setCurrentWidget(tree_page_);
            break;
        }
    }
}

void RepositoryPanel::refreshProgress() {
    if (repositories_.state() != RepositoryService::State::Reading) {
        return;
    }
    const tools::IngestProgress& now = repositories_.progress();
    if (now.n_files_total == 0) {
        progress_->setRange(0, 0);
        showMessage(tr("Looking for files\u2026"), tr("Cancel"));
    } else {
        progress_->setRange(0, 1000);
        progress_->setValue(static_cast<int>(now.n_files_done * 1000 / now.n_files_total));
        showMessage(tr("Reading %1 of %2 files, %3 tokens")
                        .arg(countText(now.n_files_done), countText(now.n_files_total),
                             shortCountText(now.n_tokens)),
                    tr("Cancel"));
    }
}

void RepositoryPanel::reveal(const QString& path) {
    const QModelIndex index = tree_model_.indexOfPath(path);
    if (index.isValid() && pages_->currentWidget() == tree_page_) {
        for (QModelIndex above = index.parent(); above.isValid(); above = above.parent()) {
            tree_->expand(above);
        }
        tree_->setCurrentIndex(index);
        tree_->scrollTo(index);
    }
}

}  // namespace belvedere::app
