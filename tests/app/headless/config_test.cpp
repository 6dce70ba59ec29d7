// SPDX-License-Identifier: Apache-2.0
#include "app/config.h"

#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace belvedere::app {
namespace {

TEST(Config, IsTheDefaultsWithoutAFile) {
    const testing::TempDir dir;
    const Result<Config> config = readConfig(dir.path() / "config.json");
    ASSERT_TRUE(config.has_value());
    EXPECT_EQ(config->agent.source_budget_tokens, 8192U);
    EXPECT_TRUE(config->warnings.empty());
}

TEST(Config, ReadsEverySection) {
    const Result<Config> config = parseConfig(R"({
        "version": 1,  // comments are allowed
        "model": {"path": "/m.gguf", "adapters": [{"path": "/a.gguf", "scale": 0.5}]},
        "engine": {"threads": 3, "context_tokens": 4096, "cache_type": "bf16", "index_cache_type": "q8_0", "speculative": false,
                   "cache_budget_mb": 512, "expert_budget_mb": 300},
        "agent": {"max_rounds": 7, "temperature": 0.25, "top_k": 40,
                  "permissions": [{"verdict": "deny", "tool": "write_file", "pattern": "*.lock"}]},
        "tools": {"screen": false},
        "repository": {"max_file_kb": 64},
        "appearance": "dark"
    })",
                                              "config.json");
    ASSERT_TRUE(config.has_value()) << config.error().message;
    EXPECT_EQ(config->model, "/m.gguf");
    ASSERT_EQ(config->adapters.size(), 1U);
    EXPECT_FLOAT_EQ(config->adapters[0].scale, 0.5F);
    EXPECT_EQ(config->engine.n_threads, 3U);
    EXPECT_EQ(config->engine.context_tokens, 4096U);
    EXPECT_EQ(config->engine.cache_type, kernels::CacheType::BF16);
    EXPECT_EQ(config->engine.index_cache_type, kernels::CacheType::Q8_0);
    EXPECT_FALSE(config->engine.drafts);
    EXPECT_EQ(config->engine.cache_budget_bytes, size_t{512} << 20);
    EXPECT_EQ(config->engine.expert_budget_bytes, size_t{300} << 20);
    EXPECT_EQ(config->agent.max_rounds, 7U);
    EXPECT_FLOAT_EQ(config->agent.generation.temperature, 0.25F);
    EXPECT_EQ(config->agent.generation.top_k, 40U);
    ASSERT_EQ(config->agent.permissions.rules.size(), 1U);
    EXPECT_EQ(config->agent.permissions.rules[0].verdict, agent::Verdict::Deny);
    EXPECT_FALSE(config->tools.screen);
    EXPECT_EQ(config->repository.max_file_bytes, 64U << 10);
    EXPECT_EQ(config->appearance, Appearance::Dark);
}

TEST(Config, WarnsOfUnknownKeysWithTheirPath) {
    const Result<Config> config = parseConfig(R"({"engine": {"thread": 3}, "agnet": {}})", "c");
    ASSERT_TRUE(config.has_value());
    EXPECT_EQ(config->warnings,
              (std::vector<std::string>{"c: engine.thread: unknown key", "c: agnet: unknown key"}));
}

TEST(Config, ReportsEveryProblemAtOnce) {
    const Result<Config> config = parseConfig(R"({
        "version": 2,
        "engine": {"threads": "many", "cache_type": "q4"},
        "agent": {"temperature": -1, "permissions": [{"tool": "x"}]},
        "appearance": 3
    })",
                                              "c");
    ASSERT_FALSE(config.has_value());
    EXPECT_EQ(config.error().code, ErrorCode::InvalidArgument);
    for (const char* key : {"version", "engine.threads", "engine.cache_type", "agent.temperature",
                            "agent.permissions[0]", "appearance"}) {
        EXPECT_NE(config.error().message.find(key), std::string::npos) << key;
    }
}

TEST(Config, RefusesTextThatIsNoObject) {
    for (const char* text : {"", "[", "[]", "3", "{\"a\": }"}) {
        EXPECT_FALSE(parseConfig(text, "c").has_value()) << text;
    }
}

}  // namespace
}  // namespace belvedere::app
