// SPDX-License-Identifier: Apache-2.0
// The composer: what Enter does, with and without an input method; what blocks sending; images.

#include <QApplication>
#include <QClipboard>
#include <QInputMethodEvent>
#include <QMimeData>
#include <QSignalSpy>
#include <QTest>

#include "app/views/composer.h"

namespace belvedere::app {

class TestComposer : public QObject {
    Q_OBJECT

  private Q_SLOTS:

    void initTestCase() {
        auto theme = Theme::load();
        QVERIFY(theme.has_value());
        theme_ = std::move(*theme);
    }

    void init() {
        composer_ = std::make_unique<Composer>(*theme_, nullptr);
        composer_->resize(600, 200);
        composer_->show();
        QVERIFY(QTest::qWaitForWindowExposed(composer_.get()));
        edit_ = composer_->findChild<ComposerEdit*>();
        edit_->setFocus();
    }

    void enterSendsAndShiftEnterBreaksTheLine() {
        QSignalSpy sent(composer_.get(), &Composer::send);
        QTest::keyClicks(edit_, QStringLiteral("one"));
        QTest::keyClick(edit_, Qt::Key_Return, Qt::ShiftModifier);
        QTest::keyClicks(edit_, QStringLiteral("two"));
        QCOMPARE(sent.count(), 0);
        QTest::keyClick(edit_, Qt::Key_Return);
        QCOMPARE(sent.count(), 1);
        QCOMPARE(sent[0][0].toString(), QStringLiteral("one\ntwo"));
        QVERIFY(composer_->text().isEmpty());
        QTest::keyClick(edit_, Qt::Key_Return);
        QCOMPARE(sent.count(), 1);  // nothing to send
    }

    void enterBelongsToTheInputMethodWhileItComposes() {
        QSignalSpy sent(composer_.get(), &Composer::send);
        QInputMethodEvent composing(QStringLiteral("にほん"), {});
        QApplication::sendEvent(edit_, &composing);
        QTest::keyClick(edit_, Qt::Key_Return);
        QCOMPARE(sent.count(), 0);
        QInputMethodEvent commit;
        commit.setCommitString(QStringLiteral("日本"));
        QApplication::sendEvent(edit_, &commit);
        edit_->setPlainText(QStringLiteral("日本"));
        QTest::keyClick(edit_, Qt::Key_Return);
        QCOMPARE(sent.count(), 1);
        QCOMPARE(sent[0][0].toString(), QStringLiteral("日本"));
    }

    void keepsTheTextWhileSendingIsBlocked() {
        QSignalSpy sent(composer_.get(), &Composer::send);
        composer_->setBlocked(QStringLiteral("No model is loaded"));
        QTest::keyClicks(edit_, QStringLiteral("text"));
        QTest::keyClick(edit_, Qt::Key_Return);
        QCOMPARE(sent.count(), 0);
        QCOMPARE(composer_->text(), QStringLiteral("text"));
        composer_->setBlocked({});
        QTest::keyClick(edit_, Qt::Key_Return);
        QCOMPARE(sent.count(), 1);
    }

    void escapeStopsOnlyWhileATurnRuns() {
        QSignalSpy stopped(composer_.get(), &Composer::stop);
        QTest::keyClick(edit_, Qt::Key_Escape);
        QCOMPARE(stopped.count(), 0);
        composer_->setRunning(true);
        QTest::keyClick(edit_, Qt::Key_Escape);
        QCOMPARE(stopped.count(), 1);
    }

    void growsWithItsLinesUpToALimit() {
        const int one = edit_->height();
        edit_->setPlainText(QStringLiteral("a\nb\nc"));
        QTRY_VERIFY(edit_->height() > one);
        const int three = edit_->height();
        edit_->setPlainText(QString(QStringLiteral("a\n")).repeated(100));
        QTRY_VERIFY(edit_->height() > three);
        QVERIFY(edit_->height() < 400);
    }

    void saysThatImagesAreNotSupported() {
        auto* image = new QMimeData;
        image->setImageData(QImage(4, 4, QImage::Format_RGB32));
        QApplication::clipboard()->setMimeData(image);
        edit_->paste();
        QVERIFY(isImageRefused());
        QVERIFY(composer_->text().isEmpty());
    }

    void refusesFilesOfImagesAndTakesThePathsOfOthers() {
        const auto paste = [this](const QString& file) {
            auto* files = new QMimeData;
            files->setUrls({QUrl::fromLocalFile(file)});
            QApplication::clipboard()->setMimeData(files);
            edit_->paste();
        };
        paste(QStringLiteral("/tmp/photo.png"));
        QVERIFY(isImageRefused());
        QVERIFY(composer_->text().isEmpty());
        paste(QStringLiteral("/tmp/notes.txt"));
        QVERIFY(!isImageRefused());
        QVERIFY(composer_->text().contains(QStringLiteral("/tmp/notes.txt")));
    }

    void saysWhatTheChosenModeIsFor() {
        const QString asks = edit_->placeholderText();
        for (auto* button : composer_->findChildren<QToolButton*>()) {
            if (button->text() == QStringLiteral("Work")) {
                button->click();
            }
        }
        QCOMPARE(composer_->mode(), agent::TurnMode::Work);
        QVERIFY(edit_->placeholderText() != asks);
    }

  private:
    [[nodiscard]] bool isImageRefused() const {
        const auto labels = composer_->findChildren<QLabel*>();
        return std::any_of(labels.begin(), labels.end(), [](const QLabel* label) {
            return label->text().contains(QStringLiteral("Images are not supported"));
        });
    }

    std::unique_ptr<Theme> theme_;
    std::unique_ptr<Composer> composer_;
    ComposerEdit* edit_ = nullptr;
};

}  // namespace belvedere::app

QTEST_MAIN(belvedere::app::TestComposer)
#include "tst_composer.moc"
