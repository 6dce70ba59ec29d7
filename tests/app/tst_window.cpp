// SPDX-License-Identifier: Apache-2.0
// The whole window over a scripted model: a question with its citation opened, the session found
// again, permission answered, stopping, a folder that vanishes, a store that cannot be used.

#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QTest>

#include "app/bridge/text.h"
#include "app/views/code_view.h"
#include "app/views/composer.h"
#include "app/views/first_run_page.h"
#include "app/views/permission_card.h"
#include "app/views/source_view.h"
#include "app/views/transcript_view.h"
#include "tests/support/desktop.h"

namespace belvedere::testing {

namespace {

using Kind = app::TranscriptItem::Kind;

QString textOf(app::TranscriptModel& model) {
    QStringList rows;
    for (int row = 0; row < model.rowCount(); ++row) {
        rows += model.data(model.index(row), Qt::DisplayRole).toString();
    }
    return rows.join(QLatin1Char('\n'));
}

}  // namespace

class TestWindow : public QObject {
    Q_OBJECT

  private Q_SLOTS:

    void initTestCase() { prepareApplication(); }

    void aQuestionIsAnsweredKeptAndItsCitationOpens() {
        Desktop desktop({});
        QVERIFY(desktop.start());
        FakeReply reply;
        reply.chunks = {"`kPageTokens` is ", "`128` [src/", "pages.h:1-7]."};
        desktop.model().add(reply);
        ask(desktop, QStringLiteral("Where is kPageTokens defined?"));
        app::TranscriptModel* transcript = desktop.application().controller()->transcript();
        QVERIFY(waitUntil([&] { return transcript->rowCount() > 2 && !transcript->isRunning(); }));
        QVERIFY(textOf(*transcript).contains(QStringLiteral("[src/pages.h:1-7]")));
        QVERIFY(
            textOf(*transcript).contains(QStringLiteral("files")));  // what stood in the context
        Q_EMIT desktop.find<app::TranscriptView>()->citationActivated(QStringLiteral("src/pages.h"),
                                                                      1, 7);
        auto* source = desktop.find<app::SourceView>();
        QVERIFY(waitUntil([&] { return source->code().firstMarkedLine() == 1; }));
        QVERIFY(source->isVisible());
        QVERIFY(source->code().toPlainText().contains(QStringLiteral("kPageTokens = 128")));
        const QString session = desktop.application().controller()->sessionId();
        QVERIFY(!session.isEmpty());

        desktop.close();
        QVERIFY(desktop.start());
        transcript = nullptr;
        QVERIFY(waitUntil([&] {
            transcript = desktop.application().controller()->transcript();
            return transcript->rowCount() > 2;
        }));
        QCOMPARE(desktop.application().controller()->sessionId(), session);
        QVERIFY(textOf(*transcript).contains(QStringLiteral("[src/pages.h:1-7]")));
    }

    void nothingRunsBeforePermissionIsGiven() {
        Desktop desktop({});
        QVERIFY(desktop.start());
        work(desktop, QStringLiteral("touch made_by_test"));
        auto* card = desktop.find<app::PermissionCard>();
        QVERIFY(waitUntil([&] { return card->isVisible(); }));
        const QString file = desktop.folder() + QStringLiteral("/made_by_test");
        QVERIFY(!QFile::exists(file));
        press(card, QStringLiteral("Allow once"));
        app::TranscriptModel* transcript = desktop.application().controller()->transcript();
        QVERIFY(waitUntil([&] { return !transcript->isRunning(); }));
        QVERIFY(QFile::exists(file));
        QVERIFY(!card->isVisible());
    }

    void aDenialIsTold() {
        Desktop desktop({});
        QVERIFY(desktop.start());
        work(desktop, QStringLiteral("touch made_by_test"));
        auto* card = desktop.find<app::PermissionCard>();
        QVERIFY(waitUntil([&] { return card->isVisible(); }));
        press(card, QStringLiteral("Deny"));
        app::TranscriptModel* transcript = desktop.application().controller()->transcript();
        QVERIFY(waitUntil([&] { return !transcript->isRunning(); }));
        QVERIFY(!QFile::exists(desktop.folder() + QStringLiteral("/made_by_test")));
        QVERIFY(textOf(*transcript).contains(QStringLiteral("denied")));
    }

    void escapeStopsAndWhatWasSaidStays() {
        Desktop desktop({});
        QVERIFY(desktop.start());
        FakeReply reply;
        reply.chunks = {"half an answer"};
        reply.waits = true;
        desktop.model().add(reply);
        ask(desktop, QStringLiteral("question"));
        app::TranscriptModel* transcript = desktop.application().controller()->transcript();
        QVERIFY(waitUntil([&] { return textOf(*transcript).contains(QStringLiteral("half")); }));
        QTest::keyClick(desktop.find<app::ComposerEdit>(), Qt::Key_Escape);
        QVERIFY(waitUntil([&] { return !transcript->isRunning(); }));
        QVERIFY(textOf(*transcript).contains(QStringLiteral("half an answer")));
        QVERIFY(textOf(*transcript).contains(QStringLiteral("Stopped")));
    }

    void withoutAModelThePageOfTheFirstRunIsShown() {
        DesktopSetup setup;
        setup.has_model = false;
        setup.has_folder = false;
        Desktop desktop(setup);
        QVERIFY(desktop.start());
        auto* page = desktop.find<app::FirstRunPage>();
        QVERIFY(waitUntil([&] { return page->isVisible(); }));
        QVERIFY(!desktop.find<app::Composer>()->isVisible());
    }

    void aFileThatVanishedIsToldInItsPlace() {
        Desktop desktop({});
        QVERIFY(desktop.start());
        QVERIFY(QFile::remove(desktop.folder() + QStringLiteral("/src/pages.cpp")));
        desktop.window().openSource(QStringLiteral("src/pages.cpp"), 1, 2);
        auto* source = desktop.find<app::SourceView>();
        QVERIFY(waitUntil([&] { return !source->problem().isEmpty(); }));
        QVERIFY(source->problem().contains(QStringLiteral("pages.cpp")));
    }

    void aFolderThatIsNoneIsToldOnACard() {
        Desktop desktop({});
        QVERIFY(desktop.start());
        desktop.window().attachFolder(QStringLiteral("/nowhere/at/all"));
        QVERIFY(waitUntil([&] {
            return desktop.application().repositories().state() ==
                   app::RepositoryService::State::Failed;
        }));
        const auto labels = desktop.window().findChildren<QLabel*>();
        QVERIFY(std::any_of(labels.begin(), labels.end(), [](const QLabel* label) {
            return label->isVisible() && label->text().contains(QStringLiteral("/nowhere/at/all"));
        }));
    }

    void everyControlHasAName() {
        Desktop desktop({});
        QVERIFY(desktop.start());
        for (const QToolButton* button : desktop.window().findChildren<QToolButton*>()) {
            // The icons inside a line edit belong to it.
            if (button->isVisible() && qobject_cast<QLineEdit*>(button->parent()) == nullptr) {
                QVERIFY2(!button->accessibleName().isEmpty() || !button->text().isEmpty(),
                         qPrintable(button->objectName() + button->toolTip()));
            }
        }
    }

  private:
    static void ask(Desktop& desktop, const QString& question) {
        auto* edit = desktop.find<app::ComposerEdit>();
        edit->setPlainText(question);
        QTest::keyClick(edit, Qt::Key_Return);
    }

    static void work(Desktop& desktop, const QString& command) {
        FakeReply call;
        call.chunks = {"<tool_call>\n{\"name\": \"run_command\", \"arguments\": {\"command\": \"" +
                       app::utf8(command) + "\"}}\n</tool_call>"};
        desktop.model().add(call);
        FakeReply answer;
        answer.chunks = {"I am done."};
        desktop.model().add(answer);
        for (auto* button : desktop.find<app::Composer>()->findChildren<QToolButton*>()) {
            if (button->text() == QStringLiteral("Work")) {
                button->click();
            }
        }
        ask(desktop, QStringLiteral("Do it"));
    }

    static void press(QWidget* card, const QString& text) {
        for (auto* button : card->findChildren<QPushButton*>()) {
            if (button->text() == text) {
                button->click();
                return;
            }
        }
        QFAIL("there is no such button");
    }
};

}  // namespace belvedere::testing

QTEST_MAIN(belvedere::testing::TestWindow)
#include "tst_window.moc"
