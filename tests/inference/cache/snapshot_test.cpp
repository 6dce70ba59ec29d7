// SPDX-License-Identifier: Apache-2.0
// A sequence that was put into a file goes on in another process bit for bit as it would have here;
// of the file only what a pass attends to is read. msa.md 7, test 9.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "inference/cache/kv_cache.h"
#include "inference/model/model.h"
#include "tests/inference/engine_fixture.h"
#include "tests/support/reference_dir.h"

namespace belvedere::testing {
namespace {

namespace fs = std::filesystem;

std::string m3Tiny() {
    return dataPath("inference/m3-tiny/model-BF16.gguf").string();
}

std::string readBytes(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// A model with a cache, of which both processes have one.
class Decoding {
  public:
    Decoding(const std::string& path, Compute compute) {
        ModelOptions options;
        options.compute = compute;
        options.n_threads = 2;
        auto model = Model::load({path, {}}, options, nullptr, {});
        EXPECT_TRUE(model.has_value()) << model.error().message;
        model_ = std::move(*model);
        cache_ = std::make_unique<KvCache>(model_->backend(), SIZE_MAX);
    }

    [[nodiscard]] SnapshotKey key() {
        return {model_->digest(), "model", model_->backend().pageShape(),
                model_->info().context_tokens, model_->info().vocab_size};
    }

    /// Logits of the last token of each pass of n_pass tokens.
    std::vector<float> feed(SequenceId sequence, std::span<const TokenId> ids, size_t n_pass) {
        std::vector<float> logits;
        const auto n_cached = cache_->begin(sequence, ids);
        EXPECT_TRUE(n_cached.has_value());
        for (size_t begin = *n_cached; begin < ids.size();) {
            const auto tokens = ids.subspan(begin, std::min(n_pass, ids.size() - begin));
            const auto pages = cache_->prepare(sequence, tokens.size());
            EXPECT_TRUE(pages.has_value());
            const PassRun run = {tokens.size(), begin, *pages, banned};
            EXPECT_TRUE(model_->decoder().forward(tokens, std::span(&run, 1), {}).has_value());
            const auto last = model_->decoder().logits(tokens.size() - 1, 1);
            if (!last.has_value()) {
                failure = last.error();
                break;
            }
            cache_->commit(sequence, tokens);
            logits.insert(logits.end(), last->begin(), last->end());
            begin += tokens.size();
        }
        cache_->end(sequence);
        return logits;
    }

    void save(SequenceId sequence, const std::string& path) {
        const SnapshotContent content = *cache_->hold(sequence);
        EXPECT_TRUE(writeSnapshot(path, key(), content, model_->backend(), {}).has_value());
        cache_->end(sequence);
    }

    std::shared_ptr<SnapshotFile> openFile(const std::string& path) {
        auto file = SnapshotFile::open(path, key());
        EXPECT_TRUE(file.has_value()) << file.error().message;
        return std::move(*file);
    }

    [[nodiscard]] KvCache& cache() { return *cache_; }

    [[nodiscard]] Model& model() { return *model_; }

    std::vector<uint8_t> banned;  ///< of every block, or empty
    std::optional<Error> failure;

  private:
    std::unique_ptr<Model> model_;
    std::unique_ptr<KvCache> cache_;
};

constexpr size_t kSaved = 300;
constexpr size_t kWhole = 330;

/// What follows the saved tokens, one by one: here, or in a process that starts with the file.
std::vector<float> continueFrom(Decoding& decoding, SequenceId sequence) {
    return decoding.feed(sequence, prompt(kWhole), 1);
}

class SnapshotProcess : public ::testing::TestWithParam<std::tuple<bool, Compute>> {
  protected:
    [[nodiscard]] std::string modelPath() const {
        return std::get<0>(GetParam())
                   ? m3Tiny()
                   : dir_.write("tiny.gguf", tinyModel({.n_layers = 3})).string();
    }

    TempDir dir_;
};

/// The second process: called by the test below.
TEST(SnapshotChild, DISABLED_Continues) {
    const char* model = std::getenv("BV_TEST_MODEL");
    const char* folder = std::getenv("BV_TEST_FOLDER");
    const char* is_exact = std::getenv("BV_TEST_EXACT");
    ASSERT_TRUE(model != nullptr && folder != nullptr && is_exact != nullptr);
    Decoding decoding(model, *is_exact == '1' ? Compute::Exact : Compute::Fast);
    const auto file = decoding.openFile(std::string(folder) + "/s.snapshot");
    const std::vector<float> logits = continueFrom(decoding, decoding.cache().adopt(file));
    std::ofstream(std::string(folder) + "/logits", std::ios::binary)
        .write(reinterpret_cast<const char*>(logits.data()),
               static_cast<std::streamsize>(logits.size() * sizeof(float)));
}

TEST_P(SnapshotProcess, GoesOnBitForBitInAnotherProcess) {
    const std::string model = modelPath();
    const Compute compute = std::get<1>(GetParam());
    std::vector<float> expected;
    {
        Decoding decoding(model, compute);
        const SequenceId sequence = decoding.cache().open();
        decoding.feed(sequence, prompt(kSaved), 128);
        decoding.save(sequence, (dir_.path() / "s.snapshot").string());
        expected = continueFrom(decoding, sequence);
    }
    ::setenv("BV_TEST_MODEL", model.c_str(), 1);
    ::setenv("BV_TEST_FOLDER", dir_.path().c_str(), 1);
    ::setenv("BV_TEST_EXACT", compute == Compute::Exact ? "1" : "0", 1);
    const std::string program = fs::read_symlink("/proc/self/exe").string();
    const std::string command = "'" + program +
                                "' --gtest_filter=SnapshotChild.DISABLED_Continues "
                                "--gtest_also_run_disabled_tests >'" +
                                (dir_.path() / "output").string() + "' 2>&1";
    ASSERT_EQ(std::system(command.c_str()), 0) << readBytes(dir_.path() / "output");
    const std::string found = readBytes(dir_.path() / "logits");
    ASSERT_EQ(found.size(), expected.size() * sizeof(float));
    EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size()), 0);
}

INSTANTIATE_TEST_SUITE_P(Models,
                         SnapshotProcess,
                         ::testing::Combine(::testing::Values(false, true),
                                            ::testing::Values(Compute::Exact, Compute::Fast)),
                         [](const auto& one) {
                             return std::string(std::get<0>(one.param) ? "Msa" : "Dense") +
                                    (std::get<1>(one.param) == Compute::Exact ? "Exact" : "Fast");
                         });

class Snapshot : public EngineTest {
  protected:
    static std::unique_ptr<Engine> loadM3(EngineConfig config = {}) {
        config.n_threads = 2;
        auto engine = Engine::load({m3Tiny(), {}}, config, nullptr, {});
        EXPECT_TRUE(engine.has_value()) << engine.error().message;
        return std::move(*engine);
    }

    [[nodiscard]] std::string path(const std::string& name = "s.snapshot") const {
        return (dir_.path() / name).string();
    }

    static void append(std::vector<TokenId>& ids, const std::vector<TokenId>& more) {
        ids.insert(ids.end(), more.begin(), more.end());
    }
};

TEST_F(Snapshot, AConversationGoesOnAsIfNothingHadHappened) {
    const auto first = loadM3();
    const SequenceId sequence = first->openSequence();
    std::vector<TokenId> ids = prompt(270);
    append(ids, run(*first, request(sequence, ids, 30)));
    const auto saved = first->saveSnapshot(sequence, path(), {});
    ASSERT_TRUE(saved.has_value()) << saved.error().message;
    EXPECT_EQ(*saved, fs::file_size(path()));
    EXPECT_EQ(fs::status(path()).permissions() & fs::perms::all,
              fs::perms::owner_read | fs::perms::owner_write);
    append(ids, prompt(20, 90));
    GenerationStats stats;
    const auto expected = run(*first, request(sequence, ids, 40), &stats);

    const auto second = loadM3();
    const auto opened = second->openSnapshot(path(), {});
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    EXPECT_EQ(second->cachedPrefix(*opened, ids), stats.n_cached);
    GenerationStats again;
    EXPECT_EQ(run(*second, request(*opened, ids, 40), &again), expected);
    EXPECT_EQ(again.n_cached, stats.n_cached);
    EXPECT_EQ(again.blocks, stats.blocks);

    // Any other sequence finds it as well, and the file can be opened more than once.
    const auto third = loadM3();
    ASSERT_TRUE(third->openSnapshot(path(), {}).has_value());
    ASSERT_TRUE(third->openSnapshot(path(), {}).has_value());
    EXPECT_EQ(run(*third, request(third->openSequence(), ids, 40)), expected);
}

TEST_F(Snapshot, SavedAgainItIsTheSameFile) {
    const auto first = loadM3();
    const SequenceId sequence = first->openSequence();
    run(*first, request(sequence, prompt(200), 10));
    ASSERT_TRUE(first->saveSnapshot(sequence, path(), {}).has_value());
    const auto second = loadM3();
    const auto opened = second->openSnapshot(path(), {});
    ASSERT_TRUE(opened.has_value());
    ASSERT_TRUE(second->saveSnapshot(*opened, path("again"), {}).has_value());
    EXPECT_TRUE(readBytes(path()) == readBytes(path("again")));
    // Over the file that is open: the old bytes stay where they are mapped.
    ASSERT_TRUE(second->saveSnapshot(*opened, path(), {}).has_value());
    EXPECT_TRUE(readBytes(path()) == readBytes(path("again")));
    EXPECT_EQ(run(*second, request(*opened, prompt(230), 20)),
              run(*first, request(sequence, prompt(230), 20)));
}

TEST_F(Snapshot, ForksAndRollbackCopyOnlyThePageTheyWrite) {
    const auto engine = loadM3();
    const SequenceId sequence = engine->openSequence();
    run(*engine, request(sequence, prompt(300), 1));
    ASSERT_TRUE(engine->saveSnapshot(sequence, path(), {}).has_value());
    const auto other = loadM3();
    const SequenceId opened = *other->openSnapshot(path(), {});
    EXPECT_EQ(other->cacheUse().n_pages, 0U);
    for (const size_t n : {size_t{100}, size_t{128}, size_t{129}, size_t{255}, size_t{299}}) {
        const auto fork = other->fork(opened, n);
        ASSERT_TRUE(fork.has_value());
        std::vector<TokenId> ids = prompt(n);
        append(ids, prompt(9, 80));
        EXPECT_EQ(run(*other, request(*fork, ids, 20)),
                  run(*engine, request(engine->openSequence(), ids, 20)))
            << n;
        other->closeSequence(*fork);
    }
    // Rolled back by itself.
    std::vector<TokenId> ids = prompt(190);
    append(ids, prompt(9, 80));
    EXPECT_EQ(run(*other, request(opened, ids, 20)),
              run(*engine, request(engine->openSequence(), ids, 20)));
}

TEST_F(Snapshot, WhatWasComputedUnderABanStaysUnderIt) {
    const auto engine = loadM3();
    GenerateRequest banned = request(engine->openSequence(), prompt(200), 20);
    banned.ban.blocks = {3, 1};
    banned.ban.begin = 100;
    const auto expected = run(*engine, banned);
    ASSERT_TRUE(engine->saveSnapshot(banned.sequence, path(), {}).has_value());
    const auto other = loadM3();
    GenerateRequest again = banned;
    again.sequence = *other->openSnapshot(path(), {});
    GenerationStats stats;
    EXPECT_EQ(other->cachedPrefix(again.sequence, banned.prompt), 100U) << "without a ban";
    EXPECT_EQ(run(*other, again, &stats), expected);
    EXPECT_EQ(stats.n_cached, 199U);
}

TEST_F(Snapshot, OnlyWhatATokenAttendsToIsRead) {
    Decoding decoding(m3Tiny(), Compute::Fast);
    const SequenceId sequence = decoding.cache().open();
    decoding.feed(sequence, prompt(kSaved), 128);
    decoding.save(sequence, path());

    Decoding other(m3Tiny(), Compute::Fast);
    const auto file = other.openFile(path());
    const SequenceId opened = other.cache().adopt(file);
    const SnapshotKey key = other.key();
    const auto countChecked = [&](PagePart part, bool msa, size_t page) {
        size_t n = 0;
        for (size_t layer = 0; layer < key.shape.n_layers; ++layer) {
            if (key.shape.has(part, layer) && key.shape.has(PagePart::IndexKeys, layer) == msa) {
                n += file->isChecked(part, layer, page) ? 1U : 0U;
            }
        }
        return n;
    };
    for (size_t page = 0; page < file->pageCount(); ++page) {
        EXPECT_EQ(countChecked(PagePart::IndexKeys, true, page), 0U) << "opening reads no page";
        EXPECT_EQ(countChecked(PagePart::KeysAndValues, true, page), 0U);
    }
    // Of pages 0 and 1 no block may be chosen.
    other.banned.assign(64, 0);
    std::fill_n(other.banned.begin(), 16, 1);
    std::vector<TokenId> ids = prompt(kSaved + 1);
    EXPECT_FALSE(other.feed(opened, ids, 1).empty());
    const size_t n_msa = countChecked(PagePart::IndexKeys, true, 2);
    EXPECT_GT(n_msa, 0U);
    for (size_t page = 0; page < 2; ++page) {
        EXPECT_EQ(countChecked(PagePart::IndexKeys, true, page), n_msa) << "every key has a score";
        EXPECT_EQ(countChecked(PagePart::KeysAndValues, false, page), key.shape.n_layers - n_msa);
        EXPECT_EQ(countChecked(PagePart::KeysAndValues, true, page), 0U);
    }
}

TEST_F(Snapshot, DamageThatALaterTokenMeetsEndsThePassAndIsForgotten) {
    Decoding decoding(m3Tiny(), Compute::Fast);
    const SequenceId sequence = decoding.cache().open();
    decoding.feed(sequence, prompt(kSaved), 128);
    decoding.save(sequence, path());
    const SnapshotKey key = decoding.key();
    const SnapshotLayout layout = *SnapshotLayout::of(key.shape, kSaved, 0);
    const size_t layer = key.shape.n_layers - 1;
    ASSERT_TRUE(key.shape.has(PagePart::IndexKeys, layer));
    std::string bytes = readBytes(path());
    bytes[layout.parts_begin[SnapshotLayout::listOf(PagePart::KeysAndValues, layer)] +
          key.shape.partBytes(PagePart::KeysAndValues) + 5] ^= 1;  // page 1
    dir_.write("damaged", bytes);

    Decoding other(m3Tiny(), Compute::Fast);
    const SequenceId opened = other.cache().adopt(other.openFile(path("damaged")));
    other.banned.assign(64, 0);
    std::fill_n(other.banned.begin(), 16, 1);
    const auto ids = prompt(kSaved + 30);
    EXPECT_FALSE(other.feed(opened, std::span(ids).first(kSaved + 5), 1).empty());
    EXPECT_FALSE(other.failure) << "the page is not attended to";
    EXPECT_FALSE(other.cache().forgetDamaged());
    // Only blocks of page 1 are left to choose from.
    std::fill(other.banned.begin(), other.banned.end(), 1);
    std::fill_n(other.banned.begin() + 8, 8, 0);
    other.feed(opened, ids, 1);
    ASSERT_TRUE(other.failure);
    EXPECT_EQ(other.failure->code, ErrorCode::Corrupt);
    EXPECT_NE(other.failure->message.find(
                  fmt::format("damaged: keys and values of layer {} are damaged for tokens 128 to "
                              "255",
                              layer)),
              std::string::npos)
        << other.failure->message;
    EXPECT_TRUE(other.cache().forgetDamaged());
    EXPECT_FALSE(other.cache().forgetDamaged()) << "once";
    EXPECT_EQ(other.cache().cachedPrefix(opened, ids), 128U) << "what was before it is still good";
    other.failure.reset();
    other.banned.clear();
    const auto again = other.feed(opened, ids, 128);
    EXPECT_FALSE(other.failure);
    Decoding fresh(m3Tiny(), Compute::Fast);
    std::vector<float> expected = fresh.feed(fresh.cache().open(), ids, 128);
    ASSERT_GT(expected.size(), again.size()) << "it began behind the first page";
    expected.erase(expected.begin(), expected.end() - static_cast<std::ptrdiff_t>(again.size()));
    EXPECT_EQ(again, expected);
}

/// Does something when the first text arrives.
class Saboteur : public Collector {
  public:
    explicit Saboteur(std::function<void()> deed) : deed_(std::move(deed)) {}

    void onText(std::string_view piece, std::span<const TokenId> tokens) override {
        Collector::onText(piece, tokens);
        if (deed_) {
            std::exchange(deed_, nullptr)();
        }
    }

  private:
    std::function<void()> deed_;
};

TEST_F(Snapshot, AFileThatShrinksEndsTheAnswerAndTheNextOneIsComputed) {
    const auto engine = loadM3();
    const SequenceId sequence = engine->openSequence();
    run(*engine, request(sequence, prompt(300), 1));
    ASSERT_TRUE(engine->saveSnapshot(sequence, path(), {}).has_value());
    const GenerateRequest asked = request(engine->openSequence(), prompt(310), 60);
    const auto expected = run(*engine, asked);

    const auto other = loadM3();
    GenerateRequest again = asked;
    again.sequence = *other->openSnapshot(path(), {});
    again.drafts = false;
    Saboteur sink([&] { fs::resize_file(path(), fs::file_size(path()) - 1); });
    const auto outcome = other->generate(again, sink, {});
    ASSERT_FALSE(outcome.has_value());
    EXPECT_EQ(outcome.error().code, ErrorCode::Corrupt);
    EXPECT_NE(outcome.error().message.find("shrank"), std::string::npos) << outcome.error().message;
    EXPECT_NE(outcome.error().message.find("ask again"), std::string::npos);
    EXPECT_EQ(other->cachedPrefix(again.sequence, again.prompt), 0U);
    EXPECT_EQ(run(*other, again), expected);
    EXPECT_EQ(other->cacheUse().n_stored_pages, 0U);
}

TEST_F(Snapshot, DamageThatThePromptMeetsIsComputedAnew) {
    const auto engine = loadM3();
    const SequenceId sequence = engine->openSequence();
    run(*engine, request(sequence, prompt(300), 1));
    ASSERT_TRUE(engine->saveSnapshot(sequence, path(), {}).has_value());
    const GenerateRequest asked = request(engine->openSequence(), prompt(310), 40);
    const auto expected = run(*engine, asked);
    Decoding decoding(m3Tiny(), Compute::Fast);
    const PageShape shape = decoding.key().shape;
    const SnapshotLayout layout = *SnapshotLayout::of(shape, 300, 0);
    const std::string whole = readBytes(path());
    for (size_t list = 0; list < layout.parts_begin.size(); ++list) {
        if (layout.parts_begin[list] == 0) {
            continue;
        }
        for (const size_t page : {size_t{0}, size_t{1}, size_t{2}}) {
            const PagePart part = list % 2 == 1 ? PagePart::IndexKeys : PagePart::KeysAndValues;
            std::string bytes = whole;
            bytes[layout.parts_begin[list] + (page + 1) * shape.partBytes(part) - 1] ^= 0x40;
            dir_.write("damaged", bytes);
            const auto other = loadM3();
            GenerateRequest again = asked;
            again.sequence = *other->openSnapshot(path("damaged"), {});
            Collector collector;
            const auto stats = other->generate(again, collector, {});
            ASSERT_TRUE(stats.has_value()) << stats.error().message;
            EXPECT_EQ(collector.ids, expected) << list << " " << page;
            const bool is_found_at_once = list == 0 || part == PagePart::IndexKeys || page == 2;
            EXPECT_TRUE(!is_found_at_once || stats->n_cached == page * 128) << stats->n_cached;
            // And it is said, once, of which file.
            EXPECT_EQ(collector.notices.size(), stats->n_cached < 300 ? 1U : 0U);
            EXPECT_TRUE(collector.notices.empty() ||
                        collector.notices[0].find(path("damaged")) != std::string::npos);
        }
    }
}

TEST_F(Snapshot, WhatIsOfAnotherModelIsRefusedAndSaysWhatDiffers) {
    const auto engine = load();
    const SequenceId sequence = engine->openSequence();
    run(*engine, request(sequence, prompt(150), 4));
    ASSERT_TRUE(engine->saveSnapshot(sequence, path(), {}).has_value());
    const auto expectRefusal = [&](const Engine& other, const std::string& why) {
        const auto opened = const_cast<Engine&>(other).openSnapshot(path(), {});
        ASSERT_FALSE(opened.has_value()) << why;
        EXPECT_EQ(opened.error().code, ErrorCode::InvalidArgument);
        EXPECT_NE(opened.error().message.find(path()), std::string::npos);
        EXPECT_NE(opened.error().message.find(why), std::string::npos) << opened.error().message;
    };
    expectRefusal(*load({}, {.seed = 9}), "other weights");
    expectRefusal(*load({}, {.n_layers = 3}), "other weights");
    expectRefusal(*load({}, {.quantized = false}), "other weights");
    EngineConfig config;
    config.compute = Compute::Exact;
    expectRefusal(*load(config), "other weights or settings");
    config = {};
    config.cache_type = kernels::CacheType::BF16;
    expectRefusal(*load(config), "its cache is of f16 with index keys of bf16; here it is of bf16");
    config = {};
    config.context_tokens = 128;
    expectRefusal(*load(config), "holds 153 tokens, the window here 128");
    adapters_ = {{dir_.write("a.gguf", tinyAdapter()).string(), 1.0F}};
    expectRefusal(*load(), "other weights");
    adapters_.clear();
    EXPECT_TRUE(load()->openSnapshot(path(), {}).has_value()) << "and the same model is not";
}

TEST_F(Snapshot, AttentionIsPartOfTheKey) {
    const auto engine = loadM3();
    const SequenceId sequence = engine->openSequence();
    run(*engine, request(sequence, prompt(50), 1));
    ASSERT_TRUE(engine->saveSnapshot(sequence, path(), {}).has_value());
    EngineConfig config;
    config.attention = Attention::Dense;
    EXPECT_FALSE(loadM3(config)->openSnapshot(path(), {}).has_value());
}

TEST_F(Snapshot, SavingLeavesNothingBehindWhereItFails) {
    const auto engine = load();
    const SequenceId sequence = engine->openSequence();
    const auto none = engine->saveSnapshot(sequence, path(), {});
    ASSERT_FALSE(none.has_value());
    EXPECT_EQ(none.error().code, ErrorCode::InvalidArgument);
    const auto unknown = engine->saveSnapshot(sequence + 7, path(), {});
    ASSERT_FALSE(unknown.has_value());
    EXPECT_EQ(unknown.error().code, ErrorCode::NotFound);
    run(*engine, request(sequence, prompt(150), 4));
    const auto nowhere = engine->saveSnapshot(sequence, path("no/folder/s"), {});
    ASSERT_FALSE(nowhere.has_value());
    EXPECT_EQ(nowhere.error().code, ErrorCode::Io);
    EXPECT_NE(nowhere.error().message.find(path("no/folder/s")), std::string::npos);
    dir_.write("s.snapshot", "what was there");
    std::stop_source stop;
    stop.request_stop();
    const auto stopped = engine->saveSnapshot(sequence, path(), stop.get_token());
    ASSERT_FALSE(stopped.has_value());
    EXPECT_EQ(stopped.error().code, ErrorCode::Cancelled);
    EXPECT_EQ(readBytes(path()), "what was there");
    const auto n_files = std::distance(fs::directory_iterator(dir_.path()), {});
    EXPECT_EQ(n_files, 2) << "the model, and what was there";
    EXPECT_TRUE(engine->saveSnapshot(sequence, path(), {}).has_value()) << "and then it can";
}

}  // namespace
}  // namespace belvedere::testing
