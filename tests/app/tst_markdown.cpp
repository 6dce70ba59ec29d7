// SPDX-License-Identifier: Apache-2.0
// Markdown to blocks: the dialect, citations, and that text parsed as it grows gives the same
// blocks as the whole.

#include <QTest>

#include "app/theme/markdown.h"

namespace belvedere::app {

namespace {

using Kind = MarkdownBlock::Kind;

const char* kDocument = R"(# Pages

The size is `128`, see [src/pages.h:1-7] and **not** *here*: <https://example.org>.

- one
- two
  continued
  1. nested

> quoted

```cpp
int a = 1;  // [no:1-2] citation here

int b;
```

| name | value |
|:-----|------:|
| a    | 1     |

Last ~~line~~ with ünïcode 😀 and [link](http://example.org).
)";

}  // namespace

class TestMarkdown : public QObject {
    Q_OBJECT

  private Q_SLOTS:

    void readsTheDialect() {
        const auto blocks = parseMarkdown(kDocument);
        QCOMPARE(blocks[0].kind, Kind::Heading);
        QCOMPARE(blocks[0].text, QStringLiteral("Pages"));
        QCOMPARE(blocks[1].kind, Kind::Paragraph);
        bool has_citation = false;
        for (const TextSpan& span : blocks[1].spans) {
            has_citation |= (span.style & TextSpan::Citation) != 0U &&
                            span.target == QStringLiteral("src/pages.h:1-7");
        }
        QVERIFY(has_citation);
        QCOMPARE(blocks[2].marker, QString(QChar(0x2022)));
        const auto code =
            std::find_if(blocks.begin(), blocks.end(),
                         [](const MarkdownBlock& block) { return block.kind == Kind::Code; });
        QVERIFY(code != blocks.end());
        QCOMPARE(code->language, QStringLiteral("cpp"));
        QCOMPARE(code->text.count(QLatin1Char('\n')), 2);
        QVERIFY(code->spans.empty());
        const auto table =
            std::find_if(blocks.begin(), blocks.end(),
                         [](const MarkdownBlock& block) { return block.kind == Kind::Table; });
        QVERIFY(table != blocks.end());
        QCOMPARE(table->rows.size(), size_t{2});
        QCOMPARE(table->rows[1][1].text, QStringLiteral("1"));
        QCOMPARE(table->rows[1][1].alignment, Qt::AlignRight);
    }

    void growsToTheSameBlocksInAnyChunks() {
        const std::string text = kDocument;
        const auto whole = parseMarkdown(text);
        for (size_t size = 1; size < 40; ++size) {
            MarkdownDocument document;
            size_t n_stable = 0;
            for (size_t at = 0; at < text.size(); at += size) {
                document.append(std::string_view(text).substr(at, size));
                QVERIFY(document.numStable() >= n_stable);
                n_stable = document.numStable();
                QVERIFY(n_stable <= document.blocks().size());
            }
            QVERIFY(document.blocks() == whole);
            QCOMPARE(document.source(), text);
        }
    }

    void htmlIsShownAsText() {
        const auto blocks = parseMarkdown("<script>alert(1)</script>\n\na <b>c</b>");
        QString all;
        for (const MarkdownBlock& block : blocks) {
            all += block.text;
        }
        QVERIFY(all.contains(QStringLiteral("<script>")));
        QVERIFY(all.contains(QStringLiteral("<b>c</b>")));
    }

    void readsCitations() {
        CitationTarget target;
        QVERIFY(parseCitation(u"a/b.cpp:3-14", target));
        QCOMPARE(target.path, QStringLiteral("a/b.cpp"));
        QCOMPARE(target.first_line, size_t{3});
        QCOMPARE(target.last_line, size_t{14});
        QVERIFY(parseCitation(u"a.py:7", target));
        QCOMPARE(target.last_line, size_t{7});
        for (const char16_t* text :
             {u"", u":", u"a:", u"a:b-c", u"a:1-", u":1-2", u"a:99999999999999999999-2"}) {
            QVERIFY2(!parseCitation(text, target), qPrintable(QString::fromUtf16(text)));
        }
    }

    void unclosedAndDeepInputIsNoTrouble() {
        for (const std::string& text :
             {std::string(20'000, '>'), std::string(20'000, '*'), std::string(20'000, '['),
              std::string("```\nnever closed"), std::string("| a |\n|--"), std::string("\0a", 2)}) {
            (void)parseMarkdown(text);
        }
    }
};

}  // namespace belvedere::app

QTEST_GUILESS_MAIN(belvedere::app::TestMarkdown)
#include "tst_markdown.moc"
