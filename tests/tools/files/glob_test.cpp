// SPDX-License-Identifier: Apache-2.0
#include "tools/files/glob.h"

#include <gtest/gtest.h>

namespace belvedere::tools {
namespace {

bool matches(const std::string& pattern, std::string_view path) {
    return Glob::parse(pattern)->matches(path);
}

TEST(Glob, WithoutASlashItMatchesTheName) {
    EXPECT_TRUE(matches("*.cpp", "a.cpp"));
    EXPECT_TRUE(matches("*.cpp", "deep/er/a.cpp"));
    EXPECT_FALSE(matches("*.cpp", "a.cpp.o"));
    EXPECT_FALSE(matches("*.cpp", "a_cpp"));
    EXPECT_TRUE(matches("a?.[ch]", "ab.h"));
    EXPECT_FALSE(matches("a?.[!ch]", "ab.h"));
}

TEST(Glob, WithASlashItMatchesTheWholePath) {
    EXPECT_TRUE(matches("src/*.h", "src/a.h"));
    EXPECT_FALSE(matches("src/*.h", "src/deep/a.h"));
    EXPECT_TRUE(matches("src/**/*.h", "src/a.h"));
    EXPECT_TRUE(matches("src/**/*.h", "src/deep/er/a.h"));
    EXPECT_TRUE(matches("**/*.h", "a.h"));
    EXPECT_TRUE(matches("./src/**", "src/deep/a.h"));
    EXPECT_FALSE(matches("rc/**", "src/a.h"));
}

TEST(Glob, Alternatives) {
    EXPECT_TRUE(matches("*.{h,cpp}", "a.cpp"));
    EXPECT_FALSE(matches("*.{h,cpp}", "a.cc"));
    EXPECT_EQ(Glob::parse("*.{h,cpp").error().code, ErrorCode::InvalidArgument);
}

TEST(Glob, OtherCharactersStandForThemselves) {
    EXPECT_TRUE(matches("a+(b).ä$", "a+(b).ä$"));
    EXPECT_FALSE(matches("a+b", "aab"));
    EXPECT_TRUE(matches("[]-]x", "]x"));
    EXPECT_TRUE(matches("[", "["));
    EXPECT_TRUE(matches("a,b}", "a,b}"));
}

}  // namespace
}  // namespace belvedere::tools
