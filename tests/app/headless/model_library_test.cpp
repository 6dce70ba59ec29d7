// SPDX-License-Identifier: Apache-2.0
#include "app/headless/model_library.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "app/headless/paths.h"
#include "app/headless/sha256.h"
#include "tests/support/temp_dir.h"

namespace belvedere::app {
namespace {

// printf 'abc' | sha256sum: the example of FIPS 180-4.
constexpr const char* kAbcHash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

std::string manifestWith(const std::string& parts) {
    return R"({"version": 1, "name": "n", "summary": "s", "limits": [], "parts": [)" + parts + "]}";
}

std::string shippedPart(const std::string& file, const std::string& hash) {
    return R"({"role": "base", "file": ")" + file + R"(", "bytes": 3, "sha256": ")" + hash +
           R"(", "licence": "l", "origin": "o"})";
}

TEST(Sha256, MatchesThePublishedExample) {
    const testing::TempDir dir;
    const Result<std::string> hash = sha256OfFile(dir.write("abc", "abc"), nullptr, {});
    ASSERT_TRUE(hash.has_value());
    EXPECT_EQ(*hash, kAbcHash);
}

TEST(ModelLibrary, DescribesTheModelThatShips) {
    const testing::TempDir dir;
    const Result<ModelLibrary> library = ModelLibrary::open(resourceDir(), dir.path());
    ASSERT_TRUE(library.has_value()) << library.error().message;
    ASSERT_EQ(library->manifest().parts.size(), 2U);
    EXPECT_FALSE(library->isInstalled());
    EXPECT_EQ(library->bytesToFetch(), 92'871'040U);
    // The adapter ships: it must be there and whole.
    const ModelPart& adapter = library->manifest().parts[1];
    const Result<std::string> hash = sha256OfFile(library->pathOf(adapter), nullptr, {});
    ASSERT_TRUE(hash.has_value()) << hash.error().message;
    EXPECT_EQ(*hash, adapter.sha256);
}

TEST(ModelLibrary, NamesTheKeyThatIsWrong) {
    const testing::TempDir dir;
    for (const auto& [text, key] : std::vector<std::pair<std::string, std::string>>{
             {"{", "name"},
             {R"({"name": 3})", "name"},
             {manifestWith(shippedPart("../outside", kAbcHash)), "parts[0].file"},
             {manifestWith(R"({"role": "base"})"), "parts[0].file"},
         }) {
        dir.write("models/default.json", text);
        const Result<ModelLibrary> library = ModelLibrary::open(dir.path(), dir.path());
        ASSERT_FALSE(library.has_value()) << text;
        EXPECT_NE(library.error().message.find(key), std::string::npos) << library.error().message;
    }
}

TEST(ModelLibrary, VerifyFindsAFileThatIsNotWhatTheManifestSays) {
    const testing::TempDir dir;
    dir.write("models/default.json", manifestWith(shippedPart("m.gguf", kAbcHash)));
    dir.write("models/m.gguf", "abc");
    const Result<ModelLibrary> library = ModelLibrary::open(dir.path(), dir.path());
    ASSERT_TRUE(library.has_value());
    EXPECT_TRUE(library->isInstalled());
    EXPECT_TRUE(library->verify(nullptr, {}).has_value());

    dir.write("models/m.gguf", "abd");  // as long, not the same
    const Result<void> verified = library->verify(nullptr, {});
    ASSERT_FALSE(verified.has_value());
    EXPECT_EQ(verified.error().code, ErrorCode::Corrupt);
    EXPECT_NE(verified.error().message.find("m.gguf"), std::string::npos);

    dir.write("models/m.gguf", "ab");  // cut: a shipped part cannot be fetched
    EXPECT_FALSE(library->isInstalled());
    EXPECT_EQ(library->fetch(nullptr, {}).error().code, ErrorCode::NotFound);
}

}  // namespace
}  // namespace belvedere::app
