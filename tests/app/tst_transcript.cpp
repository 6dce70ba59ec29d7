// SPDX-License-Identifier: Apache-2.0
// The transcript: rows from events, and the view over them: only what is in sight is laid out, the
// end is followed until the user scrolls away, text is selected over rows, citations are links.

#include <QAbstractItemModelTester>
#include <QAccessible>
#include <QApplication>
#include <QClipboard>
#include <QScrollBar>
#include <QSignalSpy>
#include <QTest>

#include "app/models/transcript_model.h"
#include "app/models/transcript_text.h"
#include "app/views/accessible.h"
#include "app/views/transcript_view.h"

namespace belvedere::app {

namespace {

using agent::Event;
using Kind = TranscriptItem::Kind;

Event made(agent::EventPayload payload, agent::TurnId turn = 1) {
    return {turn, std::move(payload)};
}

std::vector<Event> turnOf(agent::TurnId turn, const std::string& answer) {
    return {made(agent::TurnStarted{"s", "question " + std::to_string(turn)}, turn),
            made(agent::TextDelta{answer}, turn),
            made(agent::TurnFinished{agent::TurnEnd::Done, {}}, turn)};
}

int rowOf(const TranscriptModel& model, Kind kind) {
    for (int row = 0; row < model.rowCount(); ++row) {
        if (model.item(row).kind == kind) {
            return row;
        }
    }
    return -1;
}

}  // namespace

class TestTranscript : public QObject {
    Q_OBJECT

  private Q_SLOTS:

    void initTestCase() {
        auto theme = Theme::load();
        QVERIFY(theme.has_value());
        theme_ = std::move(*theme);
    }

    void joinsTextAndEndsOnce() {
        TranscriptModel model;
        const QAbstractItemModelTester tester(&model);
        model.apply({made(agent::TurnStarted{"s", "hello"}), made(agent::TextDelta{"a"})});
        QVERIFY(model.isRunning());
        const int answer = rowOf(model, Kind::Answer);
        QVERIFY(model.item(answer).is_streaming);
        model.apply({made(agent::TextDelta{"b"})});
        QCOMPARE(transcriptText(model.item(answer)), QStringLiteral("ab"));
        model.apply({made(agent::TurnFinished{agent::TurnEnd::Cancelled, {}})});
        QVERIFY(!model.isRunning());
        QVERIFY(!model.item(answer).is_streaming);
        QCOMPARE(model.item(model.rowCount() - 1).kind, Kind::End);
    }

    void dropsEventsOfAnotherTurn() {
        TranscriptModel model;
        model.apply({made(agent::TurnStarted{"s", "x"}, 5), made(agent::TextDelta{"old"}, 4)});
        QCOMPARE(rowOf(model, Kind::Answer), -1);
    }

    void callsWaitingForAnAnswerEndWithTheTurn() {
        TranscriptModel model;
        agent::PermissionQuestion question;
        question.call_id = "c1";
        question.tool = "run_command";
        question.title = "Run `ls`";
        model.apply(
            {made(agent::TurnStarted{"s", "x"}), made(agent::PermissionRequested{question})});
        QCOMPARE(model.questions().size(), size_t{1});
        model.apply({made(agent::TurnFinished{agent::TurnEnd::Cancelled, {}})});
        QVERIFY(model.questions().empty());
        for (int row = 0; row < model.rowCount(); ++row) {
            QVERIFY(model.item(row).call_state != CallState::Running ||
                    model.item(row).kind != Kind::ToolCall);
            QVERIFY(model.item(row).call_state != CallState::Waiting);
        }
    }

    void errorsSayWhatToDo() {
        TranscriptModel model;
        model.apply({made(agent::TurnStarted{"s", "x"}),
                     made(agent::TurnFinished{agent::TurnEnd::Failed,
                                              {ErrorCode::OutOfMemory, "needs 3 GiB"}})});
        const int row = rowOf(model, Kind::Error);
        QVERIFY(row >= 0);
        QVERIFY(model.item(row).text.contains(QStringLiteral("3 GiB")));
        QVERIFY(!model.item(row).advice.isEmpty());
    }

    void laysOutOnlyWhatIsInSight() {
        TranscriptModel model;
        std::vector<Event> events;
        for (agent::TurnId turn = 1; turn <= 3000; ++turn) {
            for (Event& added : turnOf(turn, "answer " + std::string(400, 'a'))) {
                events.push_back(std::move(added));
            }
        }
        model.apply(events);
        TranscriptView view(*theme_, nullptr);
        view.resize(700, 500);
        view.setTranscript(&model);
        view.show();
        QVERIFY(QTest::qWaitForWindowExposed(&view));
        QTRY_COMPARE(view.verticalScrollBar()->value(), view.verticalScrollBar()->maximum());
        QVERIFY(view.verticalScrollBar()->maximum() > 100'000);
        // The last row stands inside the viewport.
        QVERIFY(view.rowRect(model.rowCount() - 1).top() < view.viewport()->height());
        QVERIFY(view.rowRect(0).bottom() < 0);
    }

    void followsTheEndUntilTheUserScrollsAway() {
        TranscriptModel model;
        TranscriptView view(*theme_, nullptr);
        view.resize(600, 300);
        view.setTranscript(&model);
        view.show();
        QVERIFY(QTest::qWaitForWindowExposed(&view));
        model.apply({made(agent::TurnStarted{"s", "x"})});
        QScrollBar* bar = view.verticalScrollBar();
        for (int i = 0; i < 40; ++i) {
            model.apply({made(agent::TextDelta{"paragraph\n\n"})});
            QCoreApplication::processEvents();
            QCOMPARE(bar->value(), bar->maximum());
        }
        bar->setValue(bar->maximum() / 2);
        const int value = bar->value();
        QVERIFY(!view.isFollowing());
        for (int i = 0; i < 20; ++i) {
            model.apply({made(agent::TextDelta{"more\n\n"})});
            QCoreApplication::processEvents();
        }
        QCOMPARE(bar->value(), value);
        view.jumpToEnd();
        QCOMPARE(bar->value(), bar->maximum());
    }

    void keepsItsPlaceWhenRowsAboveTurnOutHigher() {
        TranscriptModel model;
        std::vector<Event> events;
        for (agent::TurnId turn = 1; turn <= 60; ++turn) {
            for (Event& added : turnOf(turn, "```\none\ntwo\nthree\n```\n\n# h\n\n" +
                                                 std::string(turn * 7 % 500, 'x'))) {
                events.push_back(std::move(added));
            }
        }
        model.apply(events);
        TranscriptView view(*theme_, nullptr);
        view.resize(600, 400);
        view.setTranscript(&model);
        view.show();
        QVERIFY(QTest::qWaitForWindowExposed(&view));
        QScrollBar* bar = view.verticalScrollBar();
        // Going up in small steps, nothing jumps: a row that was in sight moves by the step.
        for (int i = 0; i < 60; ++i) {
            int row = 0;
            while (row < model.rowCount() - 1 && view.rowRect(row).bottom() < 100) {
                ++row;
            }
            const int before = view.rowRect(row).top();
            bar->setValue(bar->value() - 40);
            const int moved = view.rowRect(row).top() - before;
            QVERIFY2(moved >= 0 && moved <= 41, qPrintable(QString::number(moved)));
        }
    }

    void whatIsExpandedGrowsDownwards() {
        TranscriptModel model;
        auto context = agent::ContextChanged();
        for (size_t i = 0; i < 40; ++i) {
            auto piece = std::make_shared<agent::SourcePiece>();
            piece->path = "src/a.cpp";
            piece->first_line = 32 * i + 1;
            piece->last_line = 32 * i + 32;
            context.pieces.push_back(piece);
        }
        model.apply({made(agent::TurnStarted{"s", "x"}), made(context),
                     made(agent::TextDelta{"an answer"}), made(agent::TurnFinished{})});
        TranscriptView view(*theme_, nullptr);
        show(view, model);
        const int row = rowOf(model, Kind::Context);
        const QRect before = view.actionRect(row, 0);
        QTest::mouseClick(view.viewport(), Qt::LeftButton, {}, before.center());
        QTRY_VERIFY(view.verticalScrollBar()->maximum() > 0);
        QCOMPARE(view.actionRect(row, 0).top(), before.top());
        QVERIFY(!view.isFollowing());
        QTest::mouseClick(view.viewport(), Qt::LeftButton, {}, before.center());
        QTRY_COMPARE(view.verticalScrollBar()->maximum(), 0);
        QVERIFY(view.isFollowing());
    }

    void selectsAndCopiesOverRows() {
        TranscriptModel model;
        model.apply(turnOf(1, "first paragraph\n\nsecond `code`"));
        TranscriptView view(*theme_, nullptr);
        view.resize(600, 500);
        view.setTranscript(&model);
        view.show();
        QVERIFY(QTest::qWaitForWindowExposed(&view));
        view.selectAll();
        const QString text = view.selectedText();
        QVERIFY(text.contains(QStringLiteral("question 1")));
        QVERIFY(text.contains(QStringLiteral("second code")));
        QTest::keySequence(&view, QKeySequence::Copy);
        QCOMPARE(QApplication::clipboard()->text(), text);
        // A drag over the question only.
        const QRect row = view.rowRect(0);
        QTest::mousePress(view.viewport(), Qt::LeftButton, {}, row.topLeft() + QPoint(2, 2));
        QTest::mouseMove(view.viewport(), row.bottomRight() - QPoint(2, 20));
        QTest::mouseRelease(view.viewport(), Qt::LeftButton, {}, row.bottomRight() - QPoint(2, 20));
        QCOMPARE(view.selectedText(), QStringLiteral("question 1"));
    }

    void citationsAreOpenedByMouseAndKeyboard() {
        TranscriptModel model;
        model.apply({made(agent::TurnStarted{"s", "x"}),
                     made(agent::TextDelta{"[src/a.cpp:3-14] is where it is"}),
                     made(agent::CitationsChecked{{{"src/a.cpp", 3, 14, 0, 16, true}}}),
                     made(agent::TurnFinished{})});
        TranscriptView view(*theme_, nullptr);
        view.resize(600, 400);
        view.setTranscript(&model);
        view.show();
        QVERIFY(QTest::qWaitForWindowExposed(&view));
        QSignalSpy opened(&view, &TranscriptView::citationActivated);
        const QRect row = view.rowRect(rowOf(model, Kind::Answer));
        QTest::mouseClick(view.viewport(), Qt::LeftButton, {}, row.topLeft() + QPoint(20, 10));
        QCOMPARE(opened.count(), 1);
        QCOMPARE(opened[0][0].toString(), QStringLiteral("src/a.cpp"));
        QCOMPARE(opened[0][2].toULongLong(), 14ULL);
        QTest::keyClick(&view, Qt::Key_Tab);
        QTest::keyClick(&view, Qt::Key_Return);
        QCOMPARE(opened.count(), 2);
    }

    void citationsInTablesAreReachedByKeyboard() {
        TranscriptModel model;
        model.apply({made(agent::TurnStarted{"s", "x"}),
                     made(agent::TextDelta{"| a | b |\n|--|--|\n| one | [src/a.cpp:3-14] |\n"}),
                     made(agent::CitationsChecked{{{"src/a.cpp", 3, 14, 0, 16, true}}}),
                     made(agent::TurnFinished{})});
        TranscriptView view(*theme_, nullptr);
        show(view, model);
        QSignalSpy opened(&view, &TranscriptView::citationActivated);
        QTest::keyClick(&view, Qt::Key_Tab);
        QTest::keyClick(&view, Qt::Key_Return);
        QCOMPARE(opened.count(), 1);
        const int row = rowOf(model, Kind::Answer);
        QVERIFY(view.rowRect(row).contains(view.actionRect(row, 0)));
    }

    void screenReadersFindRowsAndWhatCanBePressed() {
        installAccessibility();
        TranscriptModel model;
        model.apply({made(agent::TurnStarted{"s", "where is it"}),
                     made(agent::TextDelta{"in [src/a.cpp:3-14]\n\n```\ncode\n```\n"}),
                     made(agent::CitationsChecked{{{"src/a.cpp", 3, 14, 3, 19, true}}}),
                     made(agent::TurnFinished{})});
        TranscriptView view(*theme_, nullptr);
        show(view, model);
        QAccessibleInterface* list = QAccessible::queryAccessibleInterface(&view);
        QVERIFY(list != nullptr);
        QCOMPARE(list->role(), QAccessible::List);
        QCOMPARE(list->childCount(), model.rowCount());
        QCOMPARE(list->child(0)->text(QAccessible::Name), QStringLiteral("You: where is it"));
        const int row = rowOf(model, Kind::Answer);
        QAccessibleInterface* answer = list->child(row);
        QCOMPARE(answer->role(), QAccessible::ListItem);
        QCOMPARE(answer->parent(), list);
        QCOMPARE(list->indexOfChild(answer), row);
        QVERIFY(answer->text(QAccessible::Name).contains(QStringLiteral("[src/a.cpp:3-14]")));
        QCOMPARE(answer->childCount(), 2);
        QSignalSpy opened(&view, &TranscriptView::citationActivated);
        int n_links = 0;
        for (int i = 0; i < answer->childCount(); ++i) {
            QAccessibleInterface* child = answer->child(i);
            const QPoint centre = child->rect().center();
            QVERIFY(!child->text(QAccessible::Name).isEmpty());
            QCOMPARE(list->childAt(centre.x(), centre.y()), answer);
            n_links += child->role() == QAccessible::Link ? 1 : 0;
            child->actionInterface()->doAction(QAccessibleActionInterface::pressAction());
        }
        QCOMPARE(n_links, 1);
        QCOMPARE(opened.count(), 1);
        QCOMPARE(QApplication::clipboard()->text(), QStringLiteral("code"));
        TranscriptModel other;
        other.apply({made(agent::TurnStarted{"s", "hello"})});
        view.setTranscript(&other);
        QCOMPARE(list->childCount(), other.rowCount());
        QCOMPARE(list->child(0)->text(QAccessible::Name), QStringLiteral("You: hello"));
    }

  private:
    static void show(TranscriptView& view, TranscriptModel& model) {
        view.resize(600, 400);
        view.setTranscript(&model);
        view.show();
        QVERIFY(QTest::qWaitForWindowExposed(&view));
    }

    std::unique_ptr<Theme> theme_;
};

}  // namespace belvedere::app

QTEST_MAIN(belvedere::app::TestTranscript)
#include "tst_transcript.moc"
