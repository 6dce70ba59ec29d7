// SPDX-License-Identifier: Apache-2.0
// Templates of published models against texts that Jinja2 rendered. They are other people's files:
// read in place.

#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "inference/chat/render_command.h"
#include "tests/support/reference_dir.h"

namespace belvedere::inference {
namespace {

using Json = nlohmann::ordered_json;

[[nodiscard]] std::string readFile(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

TEST(ReferenceTemplates, RenderEveryCaseByteForByte) {
    const auto reference = testing::referenceDir();
    if (!reference.has_value()) {
        GTEST_SKIP() << testing::kNoReference;
    }
    const std::filesystem::path folder = *reference / "templates";
    const Json vectors = Json::parse(readFile(folder / "vectors.json"));
    int n_texts = 0;
    int n_errors = 0;
    for (const auto& [name, cases] : vectors["rendered"].items()) {
        const std::string source = readFile(folder / (name + ".jinja"));
        ASSERT_FALSE(source.empty()) << name;
        for (const auto& [case_name, expected] : cases.items()) {
            Json input = vectors["cases"][case_name];
            for (const char* shared : {"now", "bos_token", "eos_token"}) {
                input[shared] = vectors[shared];
            }
            const Result<std::string> rendered = renderFromJson(source, input.dump());
            if (expected.contains("error")) {
                EXPECT_FALSE(rendered.has_value())
                    << name << " " << case_name << " should fail: " << expected["error"];
                ++n_errors;
                continue;
            }
            if (!rendered.has_value()) {
                ADD_FAILURE() << name << " " << case_name << ": " << rendered.error().message;
                continue;
            }
            EXPECT_EQ(*rendered, expected["text"].get<std::string>()) << name << " " << case_name;
            ++n_texts;
        }
    }
    EXPECT_EQ(n_texts, 275);
    EXPECT_EQ(n_errors, 25);
}

}  // namespace
}  // namespace belvedere::inference
