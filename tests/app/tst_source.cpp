// SPDX-License-Identifier: Apache-2.0
// Source text made ready for showing, and the view of it: lines, colours, the cursor, selecting.

#include <QAccessible>
#include <QClipboard>
#include <QGuiApplication>
#include <QScrollBar>
#include <QTest>

#include "app/theme/source_document.h"
#include "app/views/accessible.h"
#include "app/views/code_view.h"
#include "tests/support/desktop.h"

namespace belvedere::app {

namespace {

std::shared_ptr<const SourceDocument> documentOf(const std::string& text,
                                                 Language language = Language::C) {
    return std::make_shared<const SourceDocument>(text, language);
}

}  // namespace

class TestSource : public QObject {
    Q_OBJECT

  private Q_SLOTS:

    void initTestCase() {
        testing::prepareApplication();
        auto theme = Theme::load();
        QVERIFY2(theme.has_value(), theme ? "" : theme.error().message.c_str());
        theme_ = std::move(*theme);
    }

    void linesAreThoseThatCitationsCount() {
        QCOMPARE(documentOf("")->numLines(), 1);
        QCOMPARE(documentOf("a")->numLines(), 1);
        const auto document = documentOf("one\r\n\ntwo\tthree\n");
        QCOMPARE(document->numLines(), 4);
        QCOMPARE(document->line(0).toString(), QStringLiteral("one"));
        QCOMPARE(document->line(1).toString(), QString());
        QCOMPARE(document->line(2).toString(), QStringLiteral("two\tthree"));
        QCOMPARE(document->numColumns(), 3 + 4 + 5);
    }

    void everyPositionIsInItsLine() {
        const auto document = documentOf("ab\n\ncd");
        const std::vector<int> lines = {0, 0, 0, 1, 2, 2, 2};
        for (qsizetype position = 0; position <= document->text().size(); ++position) {
            QCOMPARE(document->lineAt(position), lines[static_cast<size_t>(position)]);
        }
    }

    void aLineIsColouredByWhatStandsBeforeIt() {
        const auto document = documentOf("/* a\nint b\n*/ int c");
        const auto colours = [&](int line) { return document->spans(line); };
        QCOMPARE(colours(1).size(), size_t{1});
        QCOMPARE(colours(1)[0].colour, Colour::Comment);
        QCOMPARE(colours(2).back().colour, Colour::Keyword);
    }

    void bytesThatAreNoUtf8AreReplacedAndTold() {
        QVERIFY(documentOf("caf\xE9 au lait")->hasReplacements());
        QVERIFY(!documentOf("caf\xC3\xA9")->hasReplacements());
    }

    void aMarkedRangeIsScrolledIntoSight() {
        CodeView view(*theme_, nullptr);
        show(view, manyLines(100'000));
        view.markLines(70'000, 70'010);
        QCOMPARE(view.firstMarkedLine(), size_t{70'000});
        QCOMPARE(view.lastMarkedLine(), size_t{70'010});
        const qsizetype at = view.toPlainText().indexOf(QStringLiteral("line 69999;"));
        QVERIFY(view.viewport()->rect().contains(view.characterRect(at).center().toPoint()));
    }

    void aRangeBeyondTheFileMarksItsEnd() {
        CodeView view(*theme_, nullptr);
        show(view, manyLines(10));
        view.markLines(900, 950);
        QCOMPARE(view.lastMarkedLine(), size_t{11});  // after the last newline
        view.markLines(0, 0);
        QCOMPARE(view.firstMarkedLine(), size_t{0});
    }

    void theMouseSelectsAndCtrlCCopies() {
        CodeView view(*theme_, nullptr);
        show(view, "int alpha;\nint beta;\n");
        const auto at = [&](qsizetype position) {
            return view.characterRect(position).topLeft().toPoint() + QPoint(1, 6);
        };
        QTest::mousePress(view.viewport(), Qt::LeftButton, {}, at(4));
        QTest::mouseMove(view.viewport(), at(14));
        QTest::mouseRelease(view.viewport(), Qt::LeftButton, {}, at(14));
        QCOMPARE(view.selectedText(), QStringLiteral("alpha;\nint"));
        QTest::keySequence(&view, QKeySequence::Copy);
        QCOMPARE(QGuiApplication::clipboard()->text(), QStringLiteral("alpha;\nint"));
        QTest::mouseDClick(view.viewport(), Qt::LeftButton, {}, at(17));
        QCOMPARE(view.selectedText(), QStringLiteral("beta"));
    }

    void theKeyboardMovesAndSelects() {
        CodeView view(*theme_, nullptr);
        show(view, "first\nsecond\nthird");
        QTest::keyClick(&view, Qt::Key_Down);
        QTest::keyClick(&view, Qt::Key_End);
        QCOMPARE(view.cursorPosition(), qsizetype{12});
        QTest::keyClick(&view, Qt::Key_Home, Qt::ShiftModifier);
        QCOMPARE(view.selectedText(), QStringLiteral("second"));
        QTest::keyClick(&view, Qt::Key_End, Qt::ControlModifier);
        QCOMPARE(view.selectedText(), QString());
        QCOMPARE(view.cursorPosition(), view.toPlainText().size());
        QTest::keySequence(&view, QKeySequence::SelectAll);
        QCOMPARE(view.selectedText(), view.toPlainText());
    }

    void theCursorIsScrolledIntoSight() {
        CodeView view(*theme_, nullptr);
        show(view, manyLines(500) + std::string(400, 'x'));
        QTest::keyClick(&view, Qt::Key_End, Qt::ControlModifier);
        QVERIFY(view.viewport()->rect().contains(
            view.characterRect(view.cursorPosition()).center().toPoint()));
        QTest::keyClick(&view, Qt::Key_Home, Qt::ControlModifier);
        QCOMPARE(view.verticalScrollBar()->value(), 0);
        QCOMPARE(view.horizontalScrollBar()->value(), 0);
    }

    void aLineOfAMegabyteIsCutWhereItIsShownAndNotWhereItIsCopied() {
        CodeView view(*theme_, nullptr);
        show(view, std::string(1'000'000, 'x'));
        QVERIFY(view.positionAt({1e9, 5}) < 10'000);
        view.selectAll();
        QCOMPARE(view.selectedText().size(), qsizetype{1'000'000});
    }

    void screenReadersReadTheTextAtTheCursor() {
        installAccessibility();
        CodeView view(*theme_, nullptr);
        show(view, "first\nsecond");
        QAccessibleInterface* source = QAccessible::queryAccessibleInterface(&view);
        QVERIFY(source != nullptr && source->textInterface() != nullptr);
        QVERIFY(source->state().readOnly);
        QAccessibleTextInterface* text = source->textInterface();
        QCOMPARE(text->characterCount(), 12);
        text->setCursorPosition(7);
        QCOMPARE(view.cursorPosition(), qsizetype{7});
        int begin = 0;
        int end = 0;
        QCOMPARE(text->textAtOffset(7, QAccessible::LineBoundary, &begin, &end).trimmed(),
                 QStringLiteral("second"));
        text->setSelection(0, 6, 9);
        QCOMPARE(view.selectedText(), QStringLiteral("sec"));
        QCOMPARE(text->offsetAtPoint(text->characterRect(8).topLeft() + QPoint(1, 6)), 8);
    }

  private:
    static std::string manyLines(int n) {
        std::string text;
        for (int i = 0; i < n; ++i) {
            text += "line " + std::to_string(i) + ";\n";
        }
        return text;
    }

    static void show(CodeView& view, const std::string& text) {
        view.resize(400, 300);
        view.show();
        QVERIFY(QTest::qWaitForWindowExposed(&view));
        view.setSource(documentOf(text));
    }

    std::unique_ptr<Theme> theme_;
};

}  // namespace belvedere::app

QTEST_MAIN(belvedere::app::TestSource)
#include "tst_source.moc"
