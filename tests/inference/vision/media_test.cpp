// SPDX-License-Identifier: Apache-2.0
// Images and clips on their way into a prompt: frames of files and folders, placeholders, what the
// caches know an image by, and an engine that never encodes the same one twice.

#include "inference/vision/media.h"

#include <fstream>

#include <gtest/gtest.h>
#include <opencv2/videoio.hpp>

#include "inference/chat/fallback.h"
#include "inference/inspect.h"
#include "inference/prompt_builder.h"
#include "inference/prompt_media.h"
#include "inference/vision/embedding_cache.h"
#include "tests/inference/engine_fixture.h"
#include "tests/support/reference_dir.h"
#include "tests/support/temp_dir.h"

namespace belvedere::testing {
namespace {

using MediaPointer = std::shared_ptr<const Media>;

std::string file(const std::string& name) {
    return (dataPath("inference/m3-vl-tiny") / name).string();
}

/// Of one colour, `tint` in red.
RgbImage plain(ImageSize size, uint8_t tint) {
    RgbImage image{size, std::vector<uint8_t>(size.width * size.height * 3, 100)};
    for (size_t i = 0; i < image.rgb.size(); i += 3) {
        image.rgb[i] = tint;
    }
    return image;
}

MediaPointer still(uint8_t tint, ImageSize size = {56, 56}) {
    return std::make_shared<const Media>(*makeStill(plain(size, tint), "test"));
}

MediaPointer clip(size_t n_frames, bool is_timed) {
    ClipBuilder builder("clip");
    for (size_t i = 0; i < n_frames; ++i) {
        EXPECT_TRUE(builder.add(plain({56, 56}, static_cast<uint8_t>(i))).has_value());
        if (is_timed) {
            builder.addTime(static_cast<double>(i) * 1.25);
        }
    }
    return std::make_shared<const Media>(*builder.take());
}

TEST(Media, IsKnownByWhatItShows) {
    EXPECT_EQ(still(7)->hash, still(7)->hash);
    EXPECT_NE(still(7)->hash, still(8)->hash);
    EXPECT_NE(still(7)->hash, still(7, {56, 84})->hash);
    ClipBuilder one("a");
    ASSERT_TRUE(one.add(plain({56, 56}, 7)).has_value());
    EXPECT_NE(one.take()->hash, still(7)->hash) << "a clip of one frame is no still";
    // What the resizing makes equal is equal.
    EXPECT_EQ(still(7, {70, 70})->hash, still(7, {56, 56})->hash);
}

TEST(Media, KnowsItsCostBeforeAnythingIsComputed) {
    EXPECT_EQ(still(1, {640, 480})->tokenCount(), 391U);
    EXPECT_EQ(clip(5, false)->tokenCount(), 3U * 4U) << "an odd number of frames: the last twice";
}

TEST(ClipBuilder, RefusesFramesOfAnotherSizeAndClipsThatAreTooLongWithTheNumbers) {
    ClipBuilder builder("clip");
    ASSERT_TRUE(builder.add(plain({56, 56}, 1)).has_value());
    const auto other = builder.add(plain({56, 84}, 1));
    ASSERT_FALSE(other.has_value());
    EXPECT_NE(other.error().message.find("frame 1 has 56 x 84 pixels"), std::string::npos)
        << other.error().message;
    EXPECT_FALSE(ClipBuilder("none").take().has_value());

    const RgbImage small = plain({28, 28}, 1);
    ClipBuilder longest("long");
    for (size_t i = 0; i < kMaxClipFrames; ++i) {
        ASSERT_TRUE(longest.add(small).has_value());
    }
    const auto beyond = longest.add(small);
    ASSERT_FALSE(beyond.has_value());
    EXPECT_EQ(beyond.error().code, ErrorCode::InvalidArgument);
    EXPECT_NE(beyond.error().message.find("768"), std::string::npos) << beyond.error().message;
}

class VideoFileTest : public ::testing::Test {
  protected:
    /// Frames whose red grows by two; nullopt where this OpenCV cannot write videos.
    std::optional<std::string> write(int n_frames, double rate) {
        const std::string path = (dir_.path() / "video.avi").string();
        cv::VideoWriter writer(path, cv::CAP_OPENCV_MJPEG,
                               cv::VideoWriter::fourcc('M', 'J', 'P', 'G'), rate, {84, 56});
        for (int i = 0; i < n_frames && writer.isOpened(); ++i) {
            writer.write(cv::Mat(56, 84, CV_8UC3, cv::Scalar(0, 0, 2 * i)));
        }
        return writer.isOpened() ? std::optional(path) : std::nullopt;
    }

    TempDir dir_;
};

TEST_F(VideoFileTest, TakesOneFrameASecondAndKnowsWhenItWas) {
    const auto path = write(95, 30);
    if (!path) {
        GTEST_SKIP() << "this OpenCV writes no video";
    }
    const auto media = readClip(*path);
    ASSERT_TRUE(media.has_value()) << media.error().message;
    ASSERT_EQ(media->frames.size(), 4U);  // 0, 30, 60, 90
    EXPECT_EQ(media->original, (ImageSize{84, 56}));
    for (size_t i = 0; i < 4; ++i) {
        EXPECT_NEAR(media->frames[i].rgb[0], 60.0 * static_cast<double>(i), 6.0) << "frame " << i;
    }
    EXPECT_EQ(media->pair_seconds, (std::vector{0.0, 2.0}));
    EXPECT_EQ(readClip(*path, 2.0)->frames.size(), 7U);
    EXPECT_EQ(readClip(*path, 1000.0)->frames.size(), 95U);
}

TEST_F(VideoFileTest, RefusesWhatIsNoVideo) {
    const std::string text = dir_.write("notes.avi", "no video").string();
    EXPECT_EQ(readClip(text).error().code, ErrorCode::Unsupported);
    EXPECT_EQ(readClip((dir_.path() / "absent.avi").string()).error().code, ErrorCode::NotFound);
    EXPECT_EQ(readClip("rtsp://localhost/stream").error().code, ErrorCode::NotFound);
    EXPECT_EQ(readClip(dir_.path().string()).error().code, ErrorCode::InvalidArgument)
        << "a folder without images";
    EXPECT_EQ(readClip(text, 0.0).error().code, ErrorCode::InvalidArgument);
    // A frame that is no image.
    dir_.write("frames.png", "no image");
    EXPECT_EQ(readClip(dir_.path().string()).error().code, ErrorCode::Unsupported);
}

TEST(EmbeddingCacheTest, KeepsWhatWasUsedLastWithinItsBudget) {
    const auto rows = [](float value) {
        return std::make_shared<const std::vector<float>>(100, value);
    };
    EmbeddingCache cache(2 * 400);
    const MediaHash a = still(1)->hash;
    const MediaHash b = still(2)->hash;
    const MediaHash c = still(3)->hash;
    EXPECT_EQ(cache.find(a), nullptr);
    cache.add(a, rows(1));
    cache.add(b, rows(2));
    ASSERT_NE(cache.find(a), nullptr);
    cache.add(c, rows(3));
    EXPECT_EQ(cache.find(b), nullptr) << "unused longest";
    EXPECT_EQ(cache.find(a)->front(), 1.0F);
    EXPECT_EQ(cache.find(c)->front(), 3.0F);
    cache.add(b, std::make_shared<const std::vector<float>>(1000));
    EXPECT_EQ(cache.find(b), nullptr) << "larger than the budget";
    const EmbeddingCache::Use use = cache.use();
    EXPECT_EQ(use.bytes, 800U);
    EXPECT_EQ(use.n_entries, 2U);
    EXPECT_EQ(use.n_added, 4U);
    EXPECT_EQ(use.n_found, 3U);
}

class PlaceholderTest : public ::testing::Test {
  protected:
    void SetUp() override {
        tokenizer_ = *loadTokenizer(file("model-BF16.gguf"));
        image_ = *tokenizer_->find("]<]image[>[");
    }

    std::unique_ptr<Tokenizer> tokenizer_;
    TokenId image_ = 0;
};

TEST_F(PlaceholderTest, AStillBecomesItsTokensBetweenTheMarkers) {
    Prompt prompt;
    prompt.ids = {1, image_, 2, image_, 3};
    prompt.ranges = {{0, 1, 10}, {2, 3, 11}, {4, 5, 12}};
    const std::vector<MediaPointer> media = {still(1), still(2, {56, 84})};
    ASSERT_TRUE(expandMedia(*tokenizer_, {image_, std::nullopt, 7, 8}, media, prompt).has_value());
    const TokenId i = image_;
    EXPECT_EQ(prompt.ids,
              (std::vector<TokenId>{1, 7, i, i, i, i, 8, 2, 7, i, i, i, i, i, i, 8, 3}));
    ASSERT_EQ(prompt.media.size(), 2U);
    EXPECT_EQ(prompt.media[0].token_begin, 2U);
    EXPECT_EQ(prompt.media[1].token_begin, 9U);
    EXPECT_EQ(prompt.media[1].n_tokens, 6U);
    EXPECT_EQ(prompt.media[1].media, media[1]);
    EXPECT_EQ(prompt.ranges[1].token_begin, 7U);
    EXPECT_EQ(prompt.ranges[2].token_end, 17U);
    EXPECT_TRUE(checkMedia(prompt.media, prompt.ids.size()).has_value());
}

TEST_F(PlaceholderTest, AClipBecomesItsPairsWithTheirTimes) {
    const TokenId video = 5;
    Prompt prompt;
    prompt.ids = {1, video, 2};
    const std::vector<MediaPointer> media = {clip(3, true)};
    ASSERT_TRUE(expandMedia(*tokenizer_, {image_, video, 7, 8}, media, prompt).has_value());
    std::vector<TokenId> expected = {1};
    for (const char* time : {"]<]0.0 seconds[>[", "]<]2.5 seconds[>["}) {
        const auto text = tokenizer_->encode(time, SpecialTokens::Plain);
        expected.insert(expected.end(), text.begin(), text.end());
        expected.insert(expected.end(), {7, video, video, video, video, 8});
    }
    expected.push_back(2);
    EXPECT_EQ(prompt.ids, expected);
    ASSERT_EQ(prompt.media.size(), 2U);
    EXPECT_EQ(prompt.media[1].first_row, 4U);
}

TEST_F(PlaceholderTest, OtherNumbersOfPlacesAndImagesAreAnError) {
    Prompt prompt;
    prompt.ids = {1, image_, 2};
    const std::vector<MediaPointer> media = {still(1), still(2)};
    const auto expanded = expandMedia(*tokenizer_, {image_, {}, 7, 8}, media, prompt);
    ASSERT_FALSE(expanded.has_value());
    EXPECT_EQ(expanded.error().code, ErrorCode::InvalidArgument);
    EXPECT_EQ(expandMedia(*tokenizer_, {}, media, prompt).error().code, ErrorCode::Unsupported);
}

TEST_F(PlaceholderTest, TheTemplateOfTheModelPlacesImagesAndTextCannot) {
    const auto reference = referenceDir();
    if (!reference) {
        GTEST_SKIP() << kNoReference;
    }
    const std::string source = [&] {
        std::ifstream in(*reference / "templates/MiniMax-M3.jinja");
        return std::string(std::istreambuf_iterator<char>(in), {});
    }();
    const auto chat_template = ChatTemplate::compile(source);
    ASSERT_TRUE(chat_template.has_value()) << chat_template.error().message;
    PromptRequest request;
    ChatMessage message;
    message.role = "user";
    message.content = {{ChatPartKind::Image, "", -1},
                       {ChatPartKind::Text, "is ]<]image[>[ a token?", 3}};
    request.chat.messages.push_back(message);
    Prompt prompt = *buildPrompt(*chat_template, *tokenizer_, request);
    EXPECT_EQ(std::count(prompt.ids.begin(), prompt.ids.end(), image_), 1);
    const size_t n_before = prompt.ids.size();
    const std::vector<MediaPointer> media = {still(1)};
    ASSERT_TRUE(expandMedia(*tokenizer_, {image_, {}, 7, 8}, media, prompt).has_value());
    EXPECT_EQ(prompt.ids.size(), n_before + 5);
}

class ImageEngine : public ::testing::Test {
  protected:
    void SetUp() override {
        EngineConfig config;
        config.n_threads = 2;
        config.prefill_chunk = 8;
        auto engine = Engine::load({file("model-BF16.gguf"), {}}, config, nullptr, {});
        ASSERT_TRUE(engine.has_value()) << engine.error().message;
        engine_ = std::move(*engine);
    }

    /// 20 tokens of text, an image of 4, 10 of text.
    GenerationStats run(const MediaPointer& media,
                        std::vector<TokenId>* answer = nullptr,
                        size_t n_before = 20) {
        GenerateRequest request;
        request.sequence = engine_->openSequence();
        request.prompt = prompt(n_before + 14);
        request.media = {{n_before, 4, 0, media}};
        std::fill_n(request.prompt.begin() + static_cast<std::ptrdiff_t>(n_before), 4, 318);
        request.max_tokens = 12;
        request.ignore_end_of_turn = true;
        n_cached_before_ = engine_->cachedPrefix(request.sequence, request.prompt, request.media);
        Collector collector;
        const auto stats = engine_->generate(request, collector, {});
        EXPECT_TRUE(stats.has_value()) << stats.error().message;
        if (answer != nullptr) {
            *answer = collector.ids;
        }
        return stats.value_or(GenerationStats());
    }

    std::unique_ptr<Engine> engine_;
    size_t n_cached_before_ = 0;
};

TEST_F(ImageEngine, OtherImagesBehindTheSamePlaceholdersShareNoPrefix) {
    std::vector<TokenId> cold;
    run(still(250), &cold);
    SetUp();  // forgets it
    const GenerationStats first = run(still(10));
    EXPECT_EQ(first.n_cached, 0U);
    std::vector<TokenId> warm;
    const GenerationStats second = run(still(250), &warm);
    EXPECT_EQ(second.n_cached, 20U) << "the text before the image";
    EXPECT_EQ(n_cached_before_, 20U);
    EXPECT_EQ(warm, cold);
    std::vector<TokenId> again;
    const GenerationStats third = run(still(250), &again);
    EXPECT_EQ(third.n_cached, 33U) << "all but the last token";
    EXPECT_EQ(n_cached_before_, 33U);
    EXPECT_EQ(again, cold);
}

TEST_F(ImageEngine, TheSameImageIsEncodedOnce) {
    EXPECT_EQ(run(still(10)).n_encoded, 1U);
    const GenerationStats other_place = run(still(10), nullptr, 30);
    EXPECT_EQ(other_place.n_images, 1U);
    EXPECT_EQ(other_place.n_encoded, 0U);
    const GenerationStats same_place = run(still(10));
    EXPECT_EQ(same_place.n_images, 0U) << "its tokens come from the cache";
    EXPECT_EQ(run(still(11)).n_encoded, 1U);
    const EmbeddingCache::Use use = engine_->embeddingUse();
    EXPECT_EQ(use.n_added, 2U);
    EXPECT_EQ(use.n_found, 1U);
    EXPECT_EQ(use.bytes, 2U * 4 * 96 * sizeof(float));
}

TEST_F(ImageEngine, ASnapshotHoldsImagesByWhatTheyShow) {
    const TempDir dir;
    const std::string path = (dir.path() / "images.snapshot").string();
    std::vector<TokenId> expected;
    run(still(250), &expected);
    const auto saved = engine_->saveSnapshot(engine_->sequences().front().sequence, path, {});
    ASSERT_TRUE(saved.has_value()) << saved.error().message;
    SetUp();  // as another process would begin
    ASSERT_TRUE(engine_->openSnapshot(path, {}).has_value());
    std::vector<TokenId> answer;
    const GenerationStats same = run(still(250), &answer);
    EXPECT_EQ(same.n_cached, 33U);
    EXPECT_EQ(same.n_encoded, 0U) << "the tower is not needed";
    EXPECT_EQ(answer, expected);
    EXPECT_EQ(run(still(10)).n_cached, 20U) << "the text before the image";
}

TEST_F(ImageEngine, RefusesSpansThatDoNotFit) {
    GenerateRequest request;
    request.sequence = engine_->openSequence();
    request.prompt = prompt(10);
    Collector collector;
    for (const MediaSpan& span : {MediaSpan{8, 4, 0, still(1)}, MediaSpan{0, 4, 1, still(1)},
                                  MediaSpan{0, 4, 0, nullptr}}) {
        request.media = {span};
        const auto stats = engine_->generate(request, collector, {});
        ASSERT_FALSE(stats.has_value());
        EXPECT_EQ(stats.error().code, ErrorCode::InvalidArgument);
    }
}

TEST(TextEngine, RefusesImages) {
    auto engine = *Engine::load({dataPath("inference/m3-tiny/model-BF16.gguf").string(), {}}, {},
                                nullptr, {});
    GenerateRequest request;
    request.sequence = engine->openSequence();
    request.prompt = prompt(10);
    request.media = {{0, 4, 0, still(1)}};
    Collector collector;
    const auto stats = engine->generate(request, collector, {});
    ASSERT_FALSE(stats.has_value());
    EXPECT_NE(stats.error().message.find("reads text only"), std::string::npos);
}

}  // namespace
}  // namespace belvedere::testing
