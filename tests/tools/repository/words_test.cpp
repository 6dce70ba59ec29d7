// SPDX-License-Identifier: Apache-2.0
#include "tools/repository/words.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tools/repository/definitions.h"
#include "tools/repository/ranking.h"

namespace belvedere::tools {
namespace {

using Strings = std::vector<std::string>;

std::string words(std::string_view text) {
    std::string all;
    appendWords(text, all);
    return all;
}

/// "name:weight" of what a line defines; weights in tenths.
std::string defined(const char* path, std::string_view line, std::string_view next = "") {
    std::vector<Definition> definitions;
    findDefinitions(languageOf(path), line, next, definitions);
    std::string all;
    for (const Definition& definition : definitions) {
        all += (all.empty() ? "" : " ") + std::string(definition.name) + ":" +
               std::to_string(static_cast<int>(definition.weight * 10 + 0.5F));
    }
    return all;
}

TEST(Words, FindsAnIdentifierWholeAsItIsListed) {
    for (const char* name : {"kPageSize", "_private_name", "HTTPServer2", "caches", "x86_64"}) {
        EXPECT_NE(words(name).find(wholeWord(name) + " "), std::string::npos) << name;
        EXPECT_FALSE(wholeWord(name).empty()) << name;
    }
    EXPECT_EQ(wholeWord("the"), "");
    EXPECT_EQ(wholeWord("___"), "");
    EXPECT_EQ(wholeWord(std::string(60, 'a') + "_" + std::string(60, 'b')), "");
}

TEST(Words, SplitsIdentifiersAtCaseUnderscoreAndDigits) {
    EXPECT_EQ(splitIdentifier("kMaxFileBytes"), (Strings{"k", "max", "file", "bytes"}));
    EXPECT_EQ(splitIdentifier("HTTPServer2"), (Strings{"http", "server", "2"}));
    EXPECT_EQ(splitIdentifier("__snake_case__x86_64"), (Strings{"snake", "case", "x", "86", "64"}));
    EXPECT_EQ(splitIdentifier("utf8Decoder"), (Strings{"utf", "8", "decoder"}));
    EXPECT_EQ(splitIdentifier("___"), Strings{});
}

TEST(Words, StemsFormsOfAWordAlike) {
    EXPECT_EQ(stem("caches"), stem("caching"));
    EXPECT_EQ(stem("cached"), stem("cache"));
    EXPECT_EQ(stem("running"), stem("runs"));
    EXPECT_EQ(stem("sizes"), stem("size"));
    EXPECT_EQ(stem("class"), "class");
    EXPECT_EQ(stem("status"), "status");
    EXPECT_EQ(stem("x86"), "x86");
}

TEST(Words, KeepsWholeIdentifiersBesideTheirParts) {
    EXPECT_EQ(words("kPageSize"), "pag siz kpagesize ");
    EXPECT_EQ(words("where is the page size set?"), "pag siz set ");
    EXPECT_EQ(words("a.b->c(); // gr\xC3\xBC\xC3\x9F"), "gr\xC3\xBC\xC3\x9F ");
    EXPECT_EQ(words(std::string(5000, 'q')), "");
}

TEST(Definitions, FindsCAndCppForms) {
    EXPECT_EQ(defined("a.cpp", "#define BV_TRY(x) x"), "BV_TRY:10");
    EXPECT_EQ(defined("a.cpp", "#include <x>"), "");
    EXPECT_EQ(defined("a.cpp", "class PYBIND11_EXPORT Box final : public Base {"), "Box:10");
    EXPECT_EQ(defined("a.cpp", "struct [[nodiscard]] Point {"), "Point:10");
    EXPECT_EQ(defined("a.cpp", "class Box;"), "Box:1");
    EXPECT_EQ(defined("a.cpp", "enum class Kind { A, B };"), "Kind:10");
    EXPECT_EQ(defined("a.cpp", "template <class T> class Result : public Base<T> {"), "Result:10");
    EXPECT_EQ(defined("a.cpp", "using Json = nlohmann::json;"), "Json:9");
    EXPECT_EQ(defined("a.cpp", "static const int kPageSize = 128;"), "kPageSize:9");
    EXPECT_EQ(defined("a.cpp", "inline constexpr std::array<int, 3> kSizes = {1, 2, 3};"),
              "kSizes:9");
    EXPECT_EQ(defined("a.cpp", "    size_t n_tokens = 0;"), "n_tokens:6");
    EXPECT_EQ(defined("a.cpp", "int pageCount(int n_tokens) {"), "pageCount:10");
    EXPECT_EQ(defined("a.cpp", "int pageCount(int n_tokens);"), "pageCount:8");
    EXPECT_EQ(defined("a.cpp", "std::vector<std::pair<int, int>> Box<T>::sizes(int a,"), "sizes:8");
    EXPECT_EQ(defined("a.cpp", "Box::Box(int a) : a_(a) {}"), "Box:10");
    EXPECT_EQ(defined("a.c", "struct point *make_point(int x)", "{"), "make_point:10");
    EXPECT_EQ(defined("a.cpp", "    Binary,"), "Binary:7");
    EXPECT_EQ(defined("a.cpp", "    Binary = 3,"), "Binary:7");
}

TEST(Definitions, DoesNotTakeUsesForDefinitions) {
    for (const char* line :
         {"    return pageCount(3);", "    pageCount(3);", "    x = pageCount(3);",
          "    if (pageCount(3)) {", "    box.open(3);", "    } else if (a) {",
          "// int old(int x);", "    delete box;", "    a[i] = 3;", "    f(class_name, 3);"}) {
        EXPECT_EQ(defined("a.cpp", line), "") << line;
    }
}

TEST(Definitions, FindsFormsOfOtherLanguages) {
    EXPECT_EQ(defined("a.py", "    async def fetch(self, url):"), "fetch:10");
    EXPECT_EQ(defined("a.py", "class Session(Base):"), "Session:10");
    EXPECT_EQ(defined("a.py", "DEFAULT_RETRIES = 0"), "DEFAULT_RETRIES:9");
    EXPECT_EQ(defined("a.py", "    timeout: float = 3.0"), "timeout:6");
    EXPECT_EQ(defined("a.py", "        local = 3"), "");
    EXPECT_EQ(defined("a.js", "export default async function load(a) {"), "load:10");
    EXPECT_EQ(defined("a.ts", "export const kSize = 3;"), "kSize:9");
    EXPECT_EQ(defined("a.rs", "pub(crate) fn open(path: &Path) -> Result<()> {"), "open:10");
    EXPECT_EQ(defined("a.rs", "pub struct Page {"), "Page:10");
    EXPECT_EQ(defined("a.go", "func (s *Server) Start(port int) error {"), "Start:10");
    EXPECT_EQ(defined("A.java", "    public static int size(String path) {"), "size:10");
    EXPECT_EQ(defined("notes.md", "class Box {"), "");
}

std::string sureNames(std::string_view text) {
    std::string all;
    for (const Question::Name& name : readQuestion(text).names) {
        all += name.is_sure ? name.name + " " : "";
    }
    return all;
}

TEST(ReadQuestion, TellsNamesFromWords) {
    EXPECT_EQ(sureNames("Where is kPageSize defined?"), "kPageSize ");
    EXPECT_EQ(sureNames("Where is open defined?"), "open ");
    EXPECT_EQ(sureNames("What arguments does function get take?"), "get ");
    EXPECT_EQ(sureNames("What is the value of `limit`?"), "limit ");
    EXPECT_EQ(sureNames("What is the value of DEFAULT_RETRIES?"), "DEFAULT_RETRIES ");
    EXPECT_EQ(sureNames("How do I load a cache from disk?"), "");
    EXPECT_TRUE(readQuestion("What does this project do?").is_overview);
    EXPECT_FALSE(readQuestion("Where in the project is kPageSize?").is_overview);
    EXPECT_EQ(readQuestion("Where are the pages of the page cache?").words,
              (Strings{"cach", "pag"}));
}

}  // namespace
}  // namespace belvedere::tools
