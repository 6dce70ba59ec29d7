// SPDX-License-Identifier: Apache-2.0
// The window in the states that matter, each checked and kept as a picture for a person's eye:
// first run, streaming, permission, source, dark; and the main job with the default model where
// that is installed. Run at 100 % and at 200 %.

#include <QDir>
#include <QLabel>
#include <QTest>

#include "app/views/code_view.h"
#include "app/views/composer.h"
#include "app/views/first_run_page.h"
#include "app/views/permission_card.h"
#include "app/views/source_view.h"
#include "app/views/transcript_view.h"
#include "tests/support/desktop.h"

namespace belvedere::testing {

namespace {

constexpr QSize kWindow(1180, 760);

const char* kAnswer =
    "`kPageTokens` is defined in [src/pages.h:1-7]:\n\n"
    "```cpp\n/// Tokens in one page of the cache.\ninline constexpr int kPageTokens = 128;\n```\n\n"
    "It is used in two places:\n\n"
    "- `pagesFor` rounds up to whole pages [src/pages.cpp:1-5]\n"
    "- the **cache** allocates pages of that size [src/cache.cpp:10-20]\n\n"
    "| Constant | Value | Unit |\n|:--|--:|:--|\n| `kPageTokens` | 128 | tokens |\n";

std::vector<std::string> inPieces(const std::string& text, size_t size) {
    std::vector<std::string> pieces;
    for (size_t at = 0; at < text.size(); at += size) {
        pieces.push_back(text.substr(at, size));
    }
    return pieces;
}

void keep(QWidget& window, const char* name) {
    QDir().mkpath(QStringLiteral(BV_PICTURES));
    const bool is_large = window.devicePixelRatioF() > 1.5;
    const QString file =
        QStringLiteral(BV_PICTURES "/%1%2.png")
            .arg(QString::fromLatin1(name), is_large ? QStringLiteral("_200_percent") : QString());
    QCoreApplication::processEvents();
    QVERIFY(window.grab().save(file));
}

void ask(Desktop& desktop, const QString& question) {
    auto* edit = desktop.find<app::ComposerEdit>();
    edit->setPlainText(question);
    QTest::keyClick(edit, Qt::Key_Return);
}

bool isDone(Desktop& desktop) {
    app::TranscriptModel* transcript = desktop.application().controller()->transcript();
    return transcript->rowCount() > 1 && !transcript->isRunning();
}

QString answerOf(Desktop& desktop) {
    const app::TranscriptModel* transcript = desktop.application().controller()->transcript();
    for (int row = 0; row < transcript->rowCount(); ++row) {
        if (transcript->item(row).kind == app::TranscriptItem::Kind::Answer) {
            return transcript->data(transcript->index(row), Qt::DisplayRole).toString();
        }
    }
    return {};
}

}  // namespace

class TestPictures : public QObject {
    Q_OBJECT

  private Q_SLOTS:

    void initTestCase() {
        prepareApplication();
        QCOMPARE(QGuiApplication::platformName(), QStringLiteral("xcb"));
    }

    void firstRun() {
        DesktopSetup setup;
        setup.has_model = setup.has_folder = false;
        Desktop desktop(setup);
        QVERIFY(start(desktop));
        QVERIFY(waitUntil([&] { return desktop.find<app::FirstRunPage>()->isVisible(); }));
        keep(desktop.window(), "first_run");
    }

    void streamingThenSource() { askAndOpen(false); }

    void dark() { askAndOpen(true); }

    void permission() {
        Desktop desktop({});
        QVERIFY(start(desktop));
        FakeReply call;
        call.chunks = {
            "I will change the size of a page.\n",
            R"(<tool_call>{"name": "read_file", "arguments": {"path": "src/pages.h"}}</tool_call>)"};
        desktop.model().add(call);
        FakeReply edit;
        edit.chunks = {
            R"(<tool_call>{"name": "update_plan", "arguments": {"steps": [
                {"id": "1", "title": "Read the header", "status": "done"},
                {"id": "2", "title": "Change the constant", "status": "in_progress"},
                {"id": "3", "title": "Run the tests", "status": "pending"}]}}</tool_call>)",
            R"(<tool_call>{"name": "edit_file", "arguments": {"path": "src/pages.h",
                "old_text": "int kPageTokens = 128;", "new_text": "int kPageTokens = 256;"}}</tool_call>)"};
        desktop.model().add(edit);
        for (auto* button : desktop.find<app::Composer>()->findChildren<QToolButton*>()) {
            if (button->text() == QStringLiteral("Work")) {
                button->click();
            }
        }
        ask(desktop, QStringLiteral("Make a page 256 tokens"));
        auto* card = desktop.find<app::PermissionCard>();
        QVERIFY(waitUntil([&] { return card->isVisible(); }));
        keep(desktop.window(), "permission");
        QFile file(desktop.folder() + QStringLiteral("/src/pages.h"));
        QVERIFY(file.open(QFile::ReadOnly));
        QVERIFY(file.readAll().contains("128"));  // nothing has happened yet
    }

    /// The main job: the installed default model, a real question, its citation opened.
    void defaultModelAnswers() {
        const QString model = QDir::homePath() + QStringLiteral("/.local/share/belvedere/models");
        if (QDir(model).entryList({QStringLiteral("*.gguf")}).isEmpty()) {
            QSKIP("no default model is installed: belvedere models fetch");
        }
        DesktopSetup setup;
        setup.uses_real_model = true;
        Desktop desktop(setup);
        QVERIFY(start(desktop));
        ask(desktop, QStringLiteral("Where is kPageTokens defined?"));
        QVERIFY(waitUntil([&] { return isDone(desktop); }));
        const QString answer = answerOf(desktop);
        QVERIFY2(answer.contains(QStringLiteral("[src/pages.h:")), qPrintable(answer));
        auto* view = desktop.find<app::TranscriptView>();
        view->setFocus();
        auto* source = desktop.find<app::SourceView>();
        QTest::keyClick(view, Qt::Key_Tab);  // the list of sources
        for (int i = 0; i < 8 && !source->isVisible(); ++i) {
            QTest::keyClick(view, Qt::Key_Tab);
            QTest::keyClick(view, Qt::Key_Return);
        }
        QVERIFY(waitUntil([&] { return source->code().firstMarkedLine() >= 1; }));
        keep(desktop.window(), "default_model");
    }

  private:
    static bool start(Desktop& desktop) {
        const bool is_started = desktop.start();
        desktop.window().resize(kWindow);
        return is_started && QTest::qWaitForWindowExposed(&desktop.window());
    }

    void askAndOpen(bool is_dark) {
        DesktopSetup setup;
        setup.is_dark = is_dark;
        Desktop desktop(setup);
        QVERIFY(start(desktop));
        FakeReply reply;
        reply.chunks = inPieces(kAnswer, 9);
        reply.waits = true;
        desktop.model().add(reply);
        ask(desktop, QStringLiteral("Where is kPageTokens defined, and who uses it?"));
        QVERIFY(waitUntil([&] { return answerOf(desktop).contains(QStringLiteral("tokens |")); }));
        if (!is_dark) {
            keep(desktop.window(), "streaming");
        }
        desktop.model().release();
        QVERIFY(waitUntil([&] { return isDone(desktop); }));
        desktop.window().openSource(QStringLiteral("src/pages.h"), 3, 4);
        auto* source = desktop.find<app::SourceView>();
        QVERIFY(waitUntil([&] { return source->code().firstMarkedLine() == 3; }));
        keep(desktop.window(), is_dark ? "dark" : "source");
    }
};

}  // namespace belvedere::testing

QTEST_MAIN(belvedere::testing::TestPictures)
#include "tst_pictures.moc"
