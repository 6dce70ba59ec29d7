// SPDX-License-Identifier: Apache-2.0
#include "inference/tokenizer/tokenizer_json.h"

#include <functional>
#include <random>

#include <nlohmann/json.hpp>

#include "tests/inference/tokenizer/test_vocabularies.h"

namespace belvedere::inference {
namespace {

using Json = nlohmann::json;

Result<std::unique_ptr<Tokenizer>> load(std::string_view json, std::string_view config = {}) {
    return Tokenizer::create(BV_TRY(fromTokenizerJson(json, config)));
}

struct Fault {
    std::string name;
    std::function<void(Json&)> spoil;
};

TEST(TokenizerJson, UnknownComponentsAndHostileValuesAreNamed) {
    const Fault faults[] = {
        {"model: missing", [](Json& j) { j.erase("model"); }},
        {"model.type: 'WordPiece'", [](Json& j) { j["model"]["type"] = "WordPiece"; }},
        {"model.byte_fallback", [](Json& j) { j["model"]["byte_fallback"] = true; }},
        {"model.dropout", [](Json& j) { j["model"]["dropout"] = 0.1; }},
        {"model.end_of_word_suffix", [](Json& j) { j["model"]["end_of_word_suffix"] = "</w>"; }},
        {"model.ignore_merges", [](Json& j) { j["model"]["ignore_merges"] = 1; }},
        {"model.vocab: not an object", [](Json& j) { j["model"]["vocab"] = Json::array(); }},
        {"model.vocab['!']", [](Json& j) { j["model"]["vocab"]["!"] = -1; }},
        {"model.vocab['!']", [](Json& j) { j["model"]["vocab"]["!"] = 1.5; }},
        {"id 4294967296 is above", [](Json& j) { j["model"]["vocab"]["!"] = 4294967296; }},
        {"id 7 belongs to another token", [](Json& j) { j["model"]["vocab"]["!"] = 7; }},
        {"model.merges: not a list", [](Json& j) { j["model"]["merges"] = "a b"; }},
        {"model.merges[2]", [](Json& j) { j["model"]["merges"][2] = Json::array({"a"}); }},
        {"merges[2]", [](Json& j) { j["model"]["merges"][2] = Json::array({"", "a"}); }},
        {"merges[2]: its result is not a token", [](Json& j) { j["model"]["merges"][2] = "q Z"; }},
        {"added_tokens: not a list", [](Json& j) { j["added_tokens"] = 1; }},
        {"added_tokens[0]: no id", [](Json& j) { j["added_tokens"][0].erase("id"); }},
        {"added_tokens[0].single_word",
         [](Json& j) { j["added_tokens"][0]["single_word"] = true; }},
        {"added_tokens[0].lstrip", [](Json& j) { j["added_tokens"][0]["lstrip"] = "yes"; }},
        {"added_tokens[1]: id 1500 belongs", [](Json& j) { j["added_tokens"][1]["id"] = 1500; }},
        {"the same text as token",
         [](Json& j) { j["added_tokens"][1]["content"] = "<|im_start|>"; }},
        {"normalizer: 'Lowercase'", [](Json& j) { j["normalizer"] = {{"type", "Lowercase"}}; }},
        {"normalizer.normalizers[0]: 'NFKC'",
         [](Json& j) {
             j["normalizer"] = {{"type", "Sequence"},
                                {"normalizers", Json::array({{{"type", "NFKC"}}})}};
         }},
        {"pre_tokenizer: 'Metaspace'",
         [](Json& j) { j["pre_tokenizer"] = {{"type", "Metaspace"}}; }},
        {"pre_tokenizer: ''", [](Json& j) { j["pre_tokenizer"] = nullptr; }},
        {"no ByteLevel step", [](Json& j) { j["pre_tokenizer"]["pretokenizers"].erase(1); }},
        {"no split pattern", [](Json& j) { j["pre_tokenizer"]["pretokenizers"].erase(0); }},
        {"pretokenizers[0].pattern: unknown split pattern '\\w+'",
         [](Json& j) { j["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "\\w+"; }},
        {"pretokenizers[0].behavior: 'MergedWithNext'",
         [](Json& j) { j["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "MergedWithNext"; }},
        {"pretokenizers[1].add_prefix_space",
         [](Json& j) { j["pre_tokenizer"]["pretokenizers"][1]["add_prefix_space"] = true; }},
        {"a second split pattern",
         [](Json& j) { j["pre_tokenizer"]["pretokenizers"][1]["use_regex"] = true; }},
        {"decoder: 'WordPiece'", [](Json& j) { j["decoder"] = {{"type", "WordPiece"}}; }},
        {"post_processor: 'Bert'", [](Json& j) { j["post_processor"] = {{"type", "Bert"}}; }},
    };
    const Json good = Json::parse(tokenizerJson("qwen2"));
    for (const Fault& fault : faults) {
        Json json = good;
        fault.spoil(json);
        const auto tokenizer = load(json.dump());
        ASSERT_FALSE(tokenizer) << fault.name;
        EXPECT_NE(tokenizer.error().message.find(fault.name), std::string::npos)
            << tokenizer.error().message;
    }
    for (const char* text : {"", "[]", "null", "{", "{\"model\":", "\xFF", "{}"}) {
        EXPECT_FALSE(fromTokenizerJson(text)) << text;
    }
    EXPECT_FALSE(fromTokenizerJson(std::string(1 << 20, '[')));
}

TEST(TokenizerJson, DamagedFilesAreRefusedOrLoad) {
    const std::string good = tokenizerJson("smollm");
    std::mt19937 random(11);
    size_t n_refused = 0;
    for (int round = 0; round < 60; ++round) {
        std::string bad = good;
        if (round % 3 == 0) {
            bad.resize(random() % bad.size());
        } else {
            // Damage the head, where the components are, and the tail, where the vocabulary and the
            // merges are.
            const size_t n_head = 2500;
            const size_t at = round % 3 == 1 ? random() % n_head : random() % bad.size();
            bad[at] = static_cast<char>(random() % 256);
        }
        const auto tokenizer = load(bad);
        n_refused += tokenizer ? 0U : 1U;
        if (!tokenizer) {
            EXPECT_FALSE(tokenizer.error().message.empty());
        }
    }
    EXPECT_GT(n_refused, 30U);
}

TEST(TokenizerJson, OlderFormsOfTheSameThingGiveTheSameIds) {
    Json json = Json::parse(tokenizerJson("smollm"));
    for (Json& merge : json["model"]["merges"]) {
        merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
    }
    json["model"].erase("type");
    json["pre_tokenizer"]["pretokenizers"] = {{{"type", "Digits"}, {"individual_digits", true}},
                                              {{"type", "ByteLevel"}, {"add_prefix_space", false}}};
    const auto older = load(json.dump());
    ASSERT_TRUE(older) << older.error().message;
    const auto newer = namedTokenizer("smollm");
    const std::string text = "it's 2026: x  = 12\n\treturn";
    EXPECT_EQ((*older)->encode(text, SpecialTokens::Plain),
              newer->encode(text, SpecialTokens::Plain));
}

TEST(TokenizerJson, SpecialTokensComeFromTheConfigAndTheTemplate) {
    Json json = Json::parse(tokenizerJson("qwen2"));
    const auto configured = load(json.dump(),
                                 R"({"eos_token": {"content": "<|im_end|>"}, "bos_token": null,
                                     "pad_token": "<|endoftext|>", "add_bos_token": true})");
    ASSERT_TRUE(configured) << configured.error().message;
    EXPECT_EQ((*configured)->eos(), (*configured)->find("<|im_end|>"));
    EXPECT_EQ((*configured)->pad(), (*configured)->find("<|endoftext|>"));
    EXPECT_FALSE((*configured)->addBos());  // there is none to add
    json["post_processor"] = {
        {"type", "TemplateProcessing"},
        {"single", Json::array({{{"SpecialToken", {{"id", "<|im_start|>"}, {"type_id", 0}}}},
                                {{"Sequence", {}}}})}};
    const auto templated = load(json.dump());
    ASSERT_TRUE(templated) << templated.error().message;
    EXPECT_TRUE((*templated)->addBos());
    EXPECT_EQ((*templated)->bos(), (*templated)->find("<|im_start|>"));
    EXPECT_FALSE(fromTokenizerJson(json.dump(), R"({"eos_token": "no such token"})"));
    EXPECT_FALSE(fromTokenizerJson(json.dump(), "[]"));
}

}  // namespace
}  // namespace belvedere::inference
