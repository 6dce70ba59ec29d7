// SPDX-License-Identifier: Apache-2.0
#include "app/views/main_window.h"

#include <QApplication>
#include <QClipboard>
#include <QCloseEvent>
#include <QDesktopServices>
#include <QDir>
#include <QDragEnterEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QMenu>
#include <QMessageBox>
#include <QMimeData>
#include <QVBoxLayout>
#include <algorithm>

#include "app/bridge/error_text.h"
#include "app/bridge/text.h"
#include "app/views/composer.h"
#include "app/views/context_meter.h"
#include "app/views/empty_page.h"
#include "app/views/first_run_page.h"
#include "app/views/model_picker.h"
#include "app/views/notice_area.h"
#include "app/views/permission_card.h"
#include "app/views/repository_panel.h"
#include "app/views/repository_picker.h"
#include "app/views/session_panel.h"
#include "app/views/source_view.h"
#include "app/views/transcript_view.h"
#include "kernels/base/log.h"

namespace belvedere::app {

namespace {

constexpr int kSmallestWidth = 640;
constexpr int kSmallestHeight = 420;
constexpr QSize kFirstSize(1180, 760);
constexpr int kRoomForThree = 1000;  // narrower: the sidebar makes room for the source

const QString kGeometry = QStringLiteral("window/geometry");
const QString kSplitter = QStringLiteral("window/splitter");
const QString kSidebarSplitter = QStringLiteral("window/sidebar");
const QString kSidebarVisible = QStringLiteral("window/sidebar_visible");

/// The folder that is dragged; empty: none.
QString folderOf(const QMimeData* data) {
    for (const QUrl& url : data->urls()) {
        if (url.isLocalFile() && QFileInfo(url.toLocalFile()).isDir()) {
            return url.toLocalFile();
        }
    }
    return {};
}

}  // namespace

MainWindow::MainWindow(const WindowParts& parts) : parts_(parts) {
    setObjectName(QStringLiteral("mainWindow"));
    setMinimumSize(kSmallestWidth, kSmallestHeight);
    setAcceptDrops(true);
    auto* centre = new QWidget(this);
    auto* column = new QVBoxLayout(centre);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    splitter_ = new QSplitter(Qt::Horizontal, centre);
    splitter_->setHandleWidth(1);
    splitter_->setChildrenCollapsible(false);
    splitter_->addWidget(sidebar_ = makeSidebar());
    splitter_->addWidget(makeConversation());
    source_view_ = new SourceView(parts_.theme, parts_.repositories, splitter_);
    splitter_->addWidget(source_view_);
    source_view_->hide();
    splitter_->setStretchFactor(0, 0);
    splitter_->setStretchFactor(1, 1);
    splitter_->setStretchFactor(2, 0);
    column->addWidget(splitter_, 1);
    meter_ = new ContextMeter(parts_.theme, centre);
    column->addWidget(meter_);
    setCentralWidget(centre);

    makeActions();
    connectViews();
    connectServices();
    connect(&parts_.theme, &Theme::changed, this, &MainWindow::updateIcons);
    updateIcons();
    restoreGeometryOf();
    onRepositoryState();
    onModelState();
    refreshTitle();
    composer_->setFocus();
}

MainWindow::~MainWindow() = default;

QWidget* MainWindow::makeSidebar() {
    auto* sidebar = new QWidget(this);
    sidebar->setObjectName(QStringLiteral("sidebar"));
    sidebar->setAttribute(Qt::WA_StyledBackground);
    sidebar->setMinimumWidth(190);
    auto* column = new QVBoxLayout(sidebar);
    column->setContentsMargins(0, 0, 1, 0);
    column->setSpacing(0);
    sidebar_splitter_ = new QSplitter(Qt::Vertical, sidebar);
    sidebar_splitter_->setHandleWidth(1);
    sidebar_splitter_->setChildrenCollapsible(false);
    sessions_ = new SessionPanel(parts_.theme, sidebar_splitter_);
    repository_panel_ = new RepositoryPanel(parts_.theme, parts_.repositories, sidebar_splitter_);
    sessions_->setMinimumHeight(110);
    repository_panel_->setMinimumHeight(120);
    sidebar_splitter_->addWidget(sessions_);
    sidebar_splitter_->addWidget(repository_panel_);
    sidebar_splitter_->setStretchFactor(0, 1);
    sidebar_splitter_->setStretchFactor(1, 1);
    column->addWidget(sidebar_splitter_);
    return sidebar;
}

QWidget* MainWindow::makeConversation() {
    auto* conversation = new QWidget(this);
    conversation->setObjectName(QStringLiteral("conversation"));
    conversation->setAttribute(Qt::WA_StyledBackground);
    conversation->setMinimumWidth(340);
    auto* column = new QVBoxLayout(conversation);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(makeHeader(conversation));
    notices_ = new NoticeArea(parts_.theme, conversation);
    column->addWidget(notices_);
    pages_ = new QStackedWidget(conversation);
    transcript_view_ = new TranscriptView(parts_.theme, pages_);
    empty_page_ = new EmptyPage(parts_.theme, pages_);
    first_run_page_ = new FirstRunPage(parts_.theme, parts_.models, pages_);
    pages_->addWidget(transcript_view_);
    pages_->addWidget(empty_page_);
    pages_->addWidget(first_run_page_);
    column->addWidget(pages_, 1);
    permission_card_ = new PermissionCard(parts_.theme, conversation);
    column->addWidget(permission_card_);
    composer_ = new Composer(parts_.theme, conversation);
    column->addWidget(composer_);
    toast_ = new Toast(parts_.theme, pages_);
    return conversation;
}

QWidget* MainWindow::makeHeader(QWidget* parent) {
    auto* header = new QWidget(parent);
    header->setObjectName(QStringLiteral("header"));
    header->setAttribute(Qt::WA_StyledBackground);
    header->setFixedHeight(parts_.theme.sizes().header);
    auto* row = new QHBoxLayout(header);
    row->setContentsMargins(10, 0, 10, 0);
    row->setSpacing(6);
    sidebar_button_ = new QToolButton(header);
    sidebar_button_->setToolTip(tr("Show or hide sessions and files (Ctrl+B)"));
    sidebar_button_->setAccessibleName(tr("Show or hide sessions and files"));
    repository_picker_ =
        new RepositoryPicker(parts_.theme, parts_.repositories, parts_.settings, header);
    model_picker_ = new ModelPicker(parts_.theme, parts_.models, parts_.settings, header);
    menu_button_ = new QToolButton(header);
    menu_button_->setToolTip(tr("Menu"));
    menu_button_->setAccessibleName(tr("Menu"));
    menu_button_->setPopupMode(QToolButton::InstantPopup);
    row->addWidget(sidebar_button_);
    row->addWidget(repository_picker_);
    row->addStretch(1);
    row->addWidget(model_picker_);
    row->addWidget(menu_button_);
    return header;
}

void MainWindow::makeActions() {
    const auto shortcut = [this](const QKeySequence& keys, auto function) {
        auto* action = new QAction(this);
        action->setShortcut(keys);
        connect(action, &QAction::triggered, this, function);
        addAction(action);
    };
    shortcut(QKeySequence::New, [this] {
        if (controller_ != nullptr) {
            controller_->newSession();
            composer_->setFocus();
        }
    });
    shortcut(QKeySequence::Open, [this] { chooseFolder(); });
    shortcut(Qt::CTRL | Qt::SHIFT | Qt::Key_O, [this] { chooseModel(); });
    shortcut(QKeySequence::Find, [this] {
        setSidebarVisible(true);
        sessions_->focusSearch();
    });
    shortcut(Qt::CTRL | Qt::Key_L, [this] { composer_->setFocus(); });
    shortcut(Qt::CTRL | Qt::Key_B, [this] { setSidebarVisible(!sidebar_->isVisible()); });
    shortcut(Qt::CTRL | Qt::Key_Comma, [this] { showSettings(); });
    shortcut(QKeySequence::Close, [this] { closeSource(); });
    shortcut(Qt::CTRL | Qt::Key_Q, [this] { close(); });
    shortcut(Qt::Key_Escape, [this] {
        if (controller_ != nullptr && controller_->transcript()->isRunning()) {
            controller_->stop();
        } else if (source_view_->isVisible()) {
            closeSource();
        }
    });
    menu_button_->setMenu(makeMenu());
}

QMenu* MainWindow::makeMenu() {
    auto* menu = new QMenu(menu_button_);
    menu->addAction(tr("New session\tCtrl+N"), this, [this] {
        if (controller_ != nullptr) {
            controller_->newSession();
        }
    });
    menu->addAction(tr("Open folder\u2026\tCtrl+O"), this, &MainWindow::chooseFolder);
    menu->addAction(tr("Open model file\u2026\tCtrl+Shift+O"), this, &MainWindow::chooseModel);
    menu->addSeparator();
    menu->addAction(tr("Settings\u2026\tCtrl+,"), this, &MainWindow::showSettings);
    menu->addAction(tr("Copy log"), this, &MainWindow::copyLog);
    menu->addAction(tr("About Belvedere"), this, &MainWindow::showAbout);
    menu->addSeparator();
    menu->addAction(tr("Quit\tCtrl+Q"), this, &MainWindow::close);
    return menu;
}

void MainWindow::connectViews() {
    connect(sidebar_button_, &QToolButton::clicked, this,
            [this] { setSidebarVisible(!sidebar_->isVisible()); });
    connect(sessions_, &SessionPanel::newRequested, this, [this] {
        if (controller_ != nullptr) {
            controller_->newSession();
            composer_->setFocus();
        }
    });
    connect(repository_panel_, &RepositoryPanel::openRequested, this, &MainWindow::chooseFolder);
    connect(repository_panel_, &RepositoryPanel::fileRequested, this,
            [this](const QString& path) { openSource(path, 0, 0); });
    connect(repository_picker_, &RepositoryPicker::openRequested, this, &MainWindow::chooseFolder);
    connect(repository_picker_, &RepositoryPicker::folderRequested, this,
            &MainWindow::attachFolder);
    connect(model_picker_, &ModelPicker::openRequested, this, &MainWindow::chooseModel);
    connect(model_picker_, &ModelPicker::aboutRequested, this, &MainWindow::showAboutModel);
    connect(model_picker_, &ModelPicker::recentRequested, &parts_.models, &ModelService::load);
    connect(model_picker_, &ModelPicker::defaultRequested, this, [this] {
        const auto& model = parts_.models.defaultModel();
        if (model && model->is_installed) {
            parts_.models.loadDefault();
        } else {
            has_chosen_setup_ = true;
            refreshPage();
        }
    });
    connect(first_run_page_, &FirstRunPage::openModelRequested, this, &MainWindow::chooseModel);
    connect(empty_page_, &EmptyPage::buttonClicked, this, [this] {
        if (parts_.models.loaded()) {
            chooseFolder();
        } else {
            has_chosen_setup_ = true;
            refreshPage();
        }
    });
    connect(empty_page_, &EmptyPage::exampleChosen, this,
            [this](const QString& question) { composer_->setText(question); });
    connect(composer_, &Composer::send, this, [this](const QString& text, agent::TurnMode mode) {
        controller_->send(text, mode);
        refreshPage();
    });
    connect(composer_, &Composer::stop, this, [this] { controller_->stop(); });
    connect(permission_card_, &PermissionCard::answered, this,
            [this](const std::string& call_id, agent::PermissionAnswer answer) {
                controller_->answer(call_id, answer);
            });
    connect(transcript_view_, &TranscriptView::citationActivated, this, &MainWindow::openSource);
    connect(transcript_view_, &TranscriptView::linkActivated, this, &MainWindow::openLink);
    connect(transcript_view_, &TranscriptView::retryRequested, this, &MainWindow::retry);
    connect(source_view_, &SourceView::closeRequested, this, &MainWindow::closeSource);
    connect(source_view_, &SourceView::openOutsideRequested, this, &MainWindow::openOutside);
}

void MainWindow::connectServices() {
    connect(&parts_.models, &ModelService::stateChanged, this, &MainWindow::onModelState);
    connect(&parts_.models, &ModelService::loadedChanged, this, &MainWindow::onModelState);
    connect(&parts_.models, &ModelService::defaultChanged, this, &MainWindow::refreshPage);
    connect(&parts_.models, &ModelService::progressChanged, this, &MainWindow::refreshPage);
    connect(&parts_.repositories, &RepositoryService::stateChanged, this,
            &MainWindow::onRepositoryState);
}

void MainWindow::setController(AgentController& controller) {
    controller_ = &controller;
    store_failed_ = false;
    notices_->remove(QStringLiteral("store"));
    sessions_->setModel(controller.sessions());
    connect(sessions_, &SessionPanel::openRequested, &controller, &AgentController::openSession);
    connect(sessions_, &SessionPanel::renameRequested, &controller,
            &AgentController::renameSession);
    connect(sessions_, &SessionPanel::searchChanged, &controller, &AgentController::search);
    connect(sessions_, &SessionPanel::deleteRequested, this, &MainWindow::deleteSession);
    connect(&controller, &AgentController::transcriptChanged, this,
            &MainWindow::onTranscriptChanged);
    connect(&controller, &AgentController::titleChanged, this, &MainWindow::refreshTitle);
    connect(&controller, &AgentController::sessionOpened, this, [this](const QString& id) {
        sessions_->setCurrent(id);
        refreshTitle();
    });
    connect(&controller, &AgentController::storeFailed, this,
            [this](const Error& error, const QString& what) {
                showError(QStringLiteral("store-call"), error, what);
            });
    connect(&controller, &AgentController::attentionNeeded, this,
            [this](const QString& id, const QString& title) {
                toast_->post(
                    tr("\u201c%1\u201d waits for your answer").arg(title.left(40)), tr("Open"),
                    [this, id] { controller_->openSession(id); }, nullptr);
            });
    onTranscriptChanged();
    onRepositoryState();
}

void MainWindow::showStoreError(const Error& error) {
    store_failed_ = true;
    const ErrorText words = errorText(error, tr("Sessions cannot be used"));
    NoticeCard card;
    card.title = words.title;
    card.detail = words.detail;
    card.advice = words.advice;
    card.action = tr("Try again");
    card.on_action = [this] { Q_EMIT storeRetryRequested(); };
    notices_->post(QStringLiteral("store"), card);
    refreshPage();
}

void MainWindow::showError(const QString& key, const Error& error, const QString& what) {
    notices_->post(key, errorText(error, what));
}

void MainWindow::showWarning(const QString& key, const QString& title, const QString& detail) {
    NoticeCard card;
    card.title = title;
    card.detail = detail;
    card.tone = NoticeTone::Warning;
    notices_->post(key, card);
}

void MainWindow::onTranscriptChanged() {
    TranscriptModel* transcript = controller_->transcript();
    transcript_view_->setTranscript(transcript);
    permission_card_->setTranscript(transcript);
    meter_->setTranscript(transcript);
    connect(transcript, &TranscriptModel::runningChanged, this, &MainWindow::refreshComposer,
            Qt::UniqueConnection);
    connect(transcript, &TranscriptModel::rowsInserted, this, &MainWindow::refreshPage,
            Qt::UniqueConnection);
    connect(transcript, &TranscriptModel::activityChanged, this, &MainWindow::refreshComposer,
            Qt::UniqueConnection);
    refreshPage();
}

void MainWindow::onModelState() {
    ModelService& models = parts_.models;
    if (models.state() == ModelService::State::Failed && models.loaded()) {
        // Without a model the page of the first run says it.
        showError(QStringLiteral("model"), models.error(),
                  tr("The model could not be loaded; the one before stays in use"));
    } else {
        notices_->remove(QStringLiteral("model"));
    }
    if (models.state() == ModelService::State::Ready) {
        has_chosen_setup_ = false;
    }
    refreshPage();
}

void MainWindow::onRepositoryState() {
    const RepositoryService& repositories = parts_.repositories;
    if (repositories.state() == RepositoryService::State::Failed) {
        showError(QStringLiteral("folder"), repositories.error(),
                  tr("The folder %1 could not be read").arg(repositories.path()));
    } else {
        notices_->remove(QStringLiteral("folder"));
    }
    QString idle;
    if (repositories.state() == RepositoryService::State::Ready) {
        const auto report = repositories.folder().repository->report();
        idle =
            tr("%1 files, %2 tokens in %3")
                .arg(countText(report->n_files), countText(report->n_tokens), repositories.name());
    }
    meter_->setIdleText(idle);
    if (repositories.state() != RepositoryService::State::Ready) {
        closeSource();
    }
    refreshPage();
    refreshTitle();
}

void MainWindow::refreshPage() {
    const ModelService& models = parts_.models;
    const bool has_rows = controller_ != nullptr && controller_->transcript()->rowCount() > 0;
    const auto& standard = models.defaultModel();
    const bool lacks_model =
        !models.loaded() &&
        (models.state() == ModelService::State::Failed ||
         models.state() == ModelService::State::Fetching ||
         (models.state() == ModelService::State::None && standard && !standard->is_installed));
    const QWidget* page_before = pages_->currentWidget();
    if (has_chosen_setup_ || (lacks_model && !has_rows)) {
        pages_->setCurrentWidget(first_run_page_);
    } else if (has_rows) {
        pages_->setCurrentWidget(transcript_view_);
    } else {
        pages_->setCurrentWidget(empty_page_);
    }
    EmptyPage::Words words;
    const RepositoryService& repositories = parts_.repositories;
    if (!models.loaded()) {
        words.title = models.isBusy() ? tr("Loading the model") : tr("Belvedere");
        words.text = models.isBusy() ? sentence(utf8(models.activity())) : QString();
        if (models.state() == ModelService::State::None && standard) {
            words.text = tr("No model is loaded.");
            words.button = tr("Choose a model");
        }
    } else if (repositories.state() == RepositoryService::State::Reading) {
        words.title = tr("Reading %1").arg(repositories.name());
        words.text = tr("Questions can be asked as soon as all files are counted.");
    } else if (repositories.state() == RepositoryService::State::Ready) {
        words.title = tr("Ask about %1").arg(repositories.name());
        words.text =
            tr("Answers cite the lines they come from. A question that names a symbol is answered "
               "best.");
        words.has_examples = true;
    } else {
        words.title = tr("What should it be about?");
        words.text =
            tr("Open a folder of source files, or drag one here. Without a folder you simply talk "
               "to the model.");
        words.button = tr("Open folder\u2026");
    }
    empty_page_->setWords(words);
    if (has_rows && lacks_model && !has_chosen_setup_ &&
        !notices_->has(QStringLiteral("no-model"))) {
        NoticeCard card;
        card.title = tr("No model is loaded");
        card.detail = tr("This session can be read. To go on, choose a model.");
        card.tone = NoticeTone::Warning;
        card.action = tr("Choose a model");
        card.on_action = [this] {
            has_chosen_setup_ = true;
            refreshPage();
        };
        notices_->post(QStringLiteral("no-model"), card);
    } else if (!lacks_model || !has_rows) {
        notices_->remove(QStringLiteral("no-model"));
    }
    const bool moves_focus = pages_->currentWidget() != page_before && isFocusOfPages();
    refreshComposer();
    if (moves_focus) {
        QWidget* next = pages_->currentWidget() == first_run_page_
                            ? static_cast<QWidget*>(first_run_page_)
                            : composer_;
        next->setFocus();
    }
}

bool MainWindow::isFocusOfPages() const {
    const QWidget* focus = focusWidget();
    return focus == nullptr || composer_->isAncestorOf(focus) || pages_->isAncestorOf(focus);
}

void MainWindow::refreshComposer() {
    const bool is_running = controller_ != nullptr && controller_->transcript()->isRunning();
    QString why;
    if (store_failed_) {
        why = tr("Sessions cannot be saved");
    } else if (controller_ == nullptr) {
        why = tr("Opening the sessions\u2026");
    } else if (!parts_.models.loaded()) {
        why = parts_.models.isBusy() ? tr("The model is being loaded") : tr("No model is loaded");
    } else if (parts_.repositories.state() == RepositoryService::State::Reading) {
        why = tr("The folder is being read");
    }
    composer_->setRunning(is_running);
    composer_->setBlocked(why);
    composer_->setVisible(pages_->currentWidget() != first_run_page_);
}

void MainWindow::refreshTitle() {
    const QString folder = parts_.repositories.name();
    QString title =
        controller_ != nullptr ? controller_->sessionTitle().simplified().left(80) : QString();
    if (!folder.isEmpty()) {
        title += title.isEmpty() ? folder : QStringLiteral(" \u2013 ") + folder;
    }
    setWindowTitle(title.isEmpty() ? tr("Belvedere") : tr("%1 \u2013 Belvedere").arg(title));
}

void MainWindow::updateIcons() {
    const Theme& theme = parts_.theme;
    sidebar_button_->setIcon(theme.icon(QStringLiteral("sidebar")));
    menu_button_->setIcon(theme.icon(QStringLiteral("more")));
    setWindowIcon(QIcon(theme.pixmap(QStringLiteral("belvedere"), Colour::Text, 64, 1)));
}

void MainWindow::setSidebarVisible(bool is_visible) {
    sidebar_hidden_for_source_ = false;
    sidebar_->setVisible(is_visible);
}

void MainWindow::openSource(const QString& path, size_t first_line, size_t last_line) {
    if (!source_view_->isVisible()) {
        if (width() < kRoomForThree && sidebar_->isVisible()) {
            sidebar_->hide();
            sidebar_hidden_for_source_ = true;
        }
        source_view_->show();
        const int total = splitter_->width();
        const int sidebar = sidebar_->isVisible() ? sidebar_->width() : 0;
        const int source = std::min(parts_.theme.sizes().source, (total - sidebar) / 2);
        splitter_->setSizes({sidebar, total - sidebar - source, source});
    }
    source_view_->openRange(path, first_line, last_line);
    repository_panel_->reveal(path);
}

void MainWindow::closeSource() {
    source_view_->hide();
    if (std::exchange(sidebar_hidden_for_source_, false)) {
        sidebar_->show();
    }
}

void MainWindow::openLink(const QString& address) {
    const QUrl url(address);
    // What a model writes must not start programs.
    if (url.scheme() == QStringLiteral("http") || url.scheme() == QStringLiteral("https")) {
        QDesktopServices::openUrl(url);
    } else {
        toast_->post(tr("Only web addresses are opened: %1").arg(address.left(60)), {}, nullptr,
                     nullptr);
    }
}

void MainWindow::openOutside(const QString& path) {
    const QString folder = QFileInfo(parts_.repositories.path()).canonicalFilePath();
    const QFileInfo file(QDir(folder).filePath(path));
    const QString real = file.canonicalFilePath();
    if (folder.isEmpty() || !real.startsWith(folder + QLatin1Char('/'))) {
        toast_->post(tr("%1 is not in the folder any more").arg(path), {}, nullptr, nullptr);
        return;
    }
    // What the system might run instead of showing is shown in its folder.
    const bool may_run =
        QFileInfo(real).isExecutable() || QFileInfo(real).suffix() == QStringLiteral("desktop");
    const QString shown = may_run ? QFileInfo(real).absolutePath() : real;
    if (!QDesktopServices::openUrl(QUrl::fromLocalFile(shown))) {
        toast_->post(tr("The system has no program for %1").arg(QFileInfo(real).fileName()), {},
                     nullptr, nullptr);
    }
}

void MainWindow::retry() {
    const TranscriptModel* transcript = controller_->transcript();
    for (int row = transcript->rowCount() - 1; row >= 0; --row) {
        if (transcript->item(row).kind == TranscriptItem::Kind::User) {
            controller_->send(transcript->item(row).text, composer_->mode());
            refreshPage();
            return;
        }
    }
}

void MainWindow::attachFolder(const QString& path) {
    const QString canonical = QFileInfo(path).canonicalFilePath();
    // One that does not exist is told by the service, under the name it was given.
    parts_.repositories.attach(canonical.isEmpty() ? path : canonical);
}

void MainWindow::chooseFolder() {
    auto* dialog = new QFileDialog(this, tr("Open folder"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(QFileDialog::Directory);
    dialog->setOption(QFileDialog::ShowDirsOnly);
    const QString now = parts_.repositories.path();
    dialog->setDirectory(now.isEmpty() ? QDir::homePath() : QFileInfo(now).absolutePath());
    connect(dialog, &QFileDialog::fileSelected, this, &MainWindow::attachFolder);
    dialog->open();
}

void MainWindow::chooseModel() {
    auto* dialog = new QFileDialog(this, tr("Open model file"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(QFileDialog::ExistingFile);
    dialog->setNameFilters(
        {tr("Models (*.gguf *.safetensors *.safetensors.index.json)"), tr("All files (*)")});
    const auto& loaded = parts_.models.loaded();
    dialog->setDirectory(loaded ? QFileInfo(qstring(loaded->info.path)).absolutePath()
                                : QDir::homePath());
    connect(dialog, &QFileDialog::fileSelected, this,
            [this](const QString& path) { parts_.models.load({utf8(path), {}}); });
    dialog->open();
}

void MainWindow::showSettings() {
    auto* dialog = new SettingsDialog(
        parts_.theme, parts_.settings.preferences(parts_.theme.scheme()), defaults_, this);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    connect(dialog, &QDialog::accepted, this,
            [this, dialog] { Q_EMIT preferencesChanged(dialog->preferences()); });
    dialog->open();
}

void MainWindow::showAboutModel() {
    const auto& loaded = parts_.models.loaded();
    if (!loaded) {
        return;
    }
    QString text = modelFacts(loaded->info);
    const auto& standard = parts_.models.defaultModel();
    if (standard && standard->path == qstring(loaded->info.path)) {
        text += QLatin1Char('\n') + standard->limits.join(QLatin1Char('\n'));
    }
    auto* box = new QMessageBox(QMessageBox::NoIcon, tr("About this model"), parts_.models.name(),
                                QMessageBox::Close, this);
    box->setAttribute(Qt::WA_DeleteOnClose);
    box->setInformativeText(text);
    box->setTextInteractionFlags(Qt::TextSelectableByMouse);
    box->open();
}

void MainWindow::showAbout() {
    auto* box = new QMessageBox(QMessageBox::NoIcon, tr("About Belvedere"), tr("Belvedere"),
                                QMessageBox::Close, this);
    box->setAttribute(Qt::WA_DeleteOnClose);
    box->setIconPixmap(
        parts_.theme.pixmap(QStringLiteral("belvedere"), Colour::Text, 48, devicePixelRatioF()));
    box->setInformativeText(
        tr("Answers about source code, with its own inference engine. Apache License 2.0. "
           "Fonts: Inter and JetBrains Mono, SIL Open Font License 1.1."));
    box->open();
}

void MainWindow::copyLog() {
    QStringList lines;
    for (const std::string& line : recentLogLines()) {
        lines += qstring(line);
    }
    QApplication::clipboard()->setText(lines.join(QLatin1Char('\n')));
    toast_->post(tr("The log is on the clipboard"), {}, nullptr, nullptr);
}

void MainWindow::deleteSession(const QString& id) {
    // No question before, but a way back: the session is deleted for good when the message has
    // gone.
    const agent::SessionSummary* session = controller_->sessions()->find(id);
    const QString title = session == nullptr ? QString() : qstring(session->title).simplified();
    controller_->deleteSession(id);
    toast_->post(
        tr("Deleted \u201c%1\u201d").arg(title.left(40)), tr("Undo"),
        [this] { controller_->undoDelete(); },
        [this] {
            if (controller_ != nullptr) {
                controller_->commitDeletes();
            }
        });
}

void MainWindow::restoreGeometryOf() {
    const DesktopSettings& settings = parts_.settings;
    if (!restoreGeometry(settings.value(kGeometry).toByteArray())) {
        resize(kFirstSize);
    }
    if (!splitter_->restoreState(settings.value(kSplitter).toByteArray())) {
        splitter_->setSizes({parts_.theme.sizes().sidebar, kFirstSize.width(), 0});
    }
    sidebar_splitter_->restoreState(settings.value(kSidebarSplitter).toByteArray());
    sidebar_->setVisible(settings.value(kSidebarVisible, true).toBool());
    source_view_->hide();
}

void MainWindow::saveGeometryOf() {
    closeSource();
    DesktopSettings& settings = parts_.settings;
    settings.setValue(kGeometry, saveGeometry());
    settings.setValue(kSplitter, splitter_->saveState());
    settings.setValue(kSidebarSplitter, sidebar_splitter_->saveState());
    settings.setValue(kSidebarVisible, sidebar_->isVisible());
}

void MainWindow::closeEvent(QCloseEvent* event) {
    saveGeometryOf();
    toast_->dismiss();
    event->accept();
}

void MainWindow::paintEvent(QPaintEvent* event) {
    QMainWindow::paintEvent(event);
    QMetaObject::invokeMethod(this, &MainWindow::painted,
                              Qt::QueuedConnection);  // after its children
}

void MainWindow::resizeEvent(QResizeEvent* event) {
    QMainWindow::resizeEvent(event);
    if (width() < kRoomForThree && source_view_->isVisible() && sidebar_->isVisible()) {
        sidebar_->hide();
        sidebar_hidden_for_source_ = true;
    }
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
    if (!folderOf(event->mimeData()).isEmpty()) {
        event->acceptProposedAction();
    }
}

void MainWindow::dropEvent(QDropEvent* event) {
    const QString folder = folderOf(event->mimeData());
    if (!folder.isEmpty()) {
        attachFolder(folder);
        event->acceptProposedAction();
    }
}

}  // namespace belvedere::app
