// SPDX-License-Identifier: Apache-2.0
#include "inference/inspect.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>

#include "inference/cache/kv_cache.h"
#include "inference/format/safetensors.h"
#include "inference/model/checkpoint_tokenizer.h"
#include "inference/model/model.h"
#include "inference/model/placeholders.h"
#include "inference/pass_recorder.h"
#include "inference/prompt_media.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/kernels.h"

namespace belvedere::inference {
namespace {

constexpr size_t kDefaultChunk = 512;

/// Of a model, or of a tokenizer.json by itself and the tokenizer_config.json beside it.
Result<VocabularyData> vocabularyOf(const std::string& path) {
    if (std::filesystem::path(path).extension() != ".json") {
        return BV_TRY(openModel(path))->vocabulary();
    }
    const std::filesystem::path file(path);
    return vocabularyFromTokenizerJson(file, file.parent_path() / "tokenizer_config.json");
}

Result<void> checkIds(const LogitsRequest& request, const ModelInfo& info) {
    if (request.ids.empty()) {
        return fail(ErrorCode::InvalidArgument, "there are no ids");
    }
    if (request.ids.size() > info.context_tokens) {
        return fail(ErrorCode::InvalidArgument, "{} ids do not fit the window of {}",
                    request.ids.size(), info.context_tokens);
    }
    for (const TokenId id : request.ids) {
        if (id < 0 || static_cast<size_t>(id) >= info.vocab_size) {
            return fail(ErrorCode::InvalidArgument, "id {} is outside the vocabulary of {}", id,
                        info.vocab_size);
        }
    }
    return {};
}

/// Logits of the rows of the last pass, appended to out.
Result<void> appendLogits(Decoder& decoder, size_t n_tokens, std::vector<float>& out) {
    const size_t most = std::min(Decoder::kMaxLogitRows, decoder.maxTokens());
    for (size_t row = 0; row < n_tokens; row += most) {
        const std::span<float> logits = BV_TRY(decoder.logits(row, std::min(most, n_tokens - row)));
        out.insert(out.end(), logits.begin(), logits.end());
    }
    return {};
}

/// Embeddings of the images and clips of a prompt, and where they stand in it.
struct EncodedMedia {
    std::vector<MediaSpan> spans;
    std::map<const Media*, std::vector<float>> embeddings;
    std::vector<OutputTensor> outputs;  ///< tower_images, projected_images, and of video
};

/// Runs the tower over those of one kind, in their order.
Result<void> encodeKind(Model& model,
                        const LogitsRequest& request,
                        MediaKind kind,
                        const char* noun,
                        EncodedMedia& encoded,
                        const std::stop_token& stop) {
    const VisionConfig& config = model.tower()->config();
    std::vector<float> rows;
    std::vector<float> embeddings;
    for (const std::shared_ptr<const Media>& media : request.media) {
        if (media->kind != kind) {
            continue;
        }
        TowerOutput output = BV_TRY(model.tower()->encode(media->frames, TowerRows::Keep, stop));
        rows.insert(rows.end(), output.rows.begin(), output.rows.end());
        embeddings.insert(embeddings.end(), output.embeddings.begin(), output.embeddings.end());
        encoded.embeddings[media.get()] = std::move(output.embeddings);
    }
    if (!embeddings.empty()) {
        const std::vector<size_t> in_tower = {rows.size() / config.dim, config.dim};
        const std::vector<size_t> projected = {embeddings.size() / config.out_dim, config.out_dim};
        encoded.outputs.push_back({fmt::format("tower_{}", noun), in_tower, std::move(rows)});
        encoded.outputs.push_back(
            {fmt::format("projected_{}", noun), projected, std::move(embeddings)});
    }
    return {};
}

Result<EncodedMedia> encodeMedia(Model& model,
                                 const LogitsRequest& request,
                                 const std::stop_token& stop) {
    EncodedMedia encoded;
    if (request.media.empty()) {
        return encoded;
    }
    if (model.tower() == nullptr) {
        return fail(ErrorCode::InvalidArgument,
                    "{}: the model reads text only: no vision tower in it or beside it (--mmproj "
                    "FILE)",
                    request.load.model_path);
    }
    // A checkpoint without a tokenizer will do: its config names the ids.
    const Result<std::unique_ptr<Tokenizer>> tokenizer = loadTokenizer(request.load.model_path);
    const PlaceholderIds ids =
        BV_TRY(placeholderIds(model.source(), tokenizer.has_value() ? tokenizer->get() : nullptr));
    encoded.spans = BV_TRY(findMedia(request.ids, request.media, ids));
    BV_TRY(encodeKind(model, request, MediaKind::Image, "images", encoded, stop));
    BV_TRY(encodeKind(model, request, MediaKind::Video, "video", encoded, stop));
    return encoded;
}

Result<Logits> runLogits(Model& model, const LogitsRequest& request, const std::stop_token& stop) {
    EncodedMedia media = BV_TRY(encodeMedia(model, request, stop));
    const std::vector<TokenId> ids = cacheIds(request.ids, media.spans, model.towerKey());
    Logits logits;
    PassRecorder recorder(model.config(), ids.size());
    logits.n_tokens = ids.size();
    logits.vocab_size = model.info().vocab_size;
    logits.values.reserve(logits.n_tokens * logits.vocab_size);
    KvCache cache(model.backend(), SIZE_MAX);
    const SequenceId sequence = cache.open();
    BV_TRY(cache.begin(sequence, ids));
    const size_t chunk = model.decoder().maxTokens();
    for (size_t begin = 0; begin < ids.size(); begin += chunk) {
        const std::span<const TokenId> tokens =
            std::span(ids).subspan(begin, std::min(chunk, ids.size() - begin));
        const std::vector<GivenRows> given = givenRows(
            media.spans, begin, tokens.size(), model.config().dim,
            [&](const Media& one) { return std::span<const float>(media.embeddings.at(&one)); });
        const std::span<const PageId> pages = BV_TRY(cache.prepare(sequence, tokens.size()));
        BV_TRY(model.decoder().forward(tokens, begin, pages, stop,
                                       request.observe ? &recorder : nullptr, given));
        cache.commit(sequence, tokens);
        BV_TRY(appendLogits(model.decoder(), tokens.size(), logits.values));
    }
    if (request.observe) {
        logits.observed = recorder.take();
    }
    std::move(media.outputs.begin(), media.outputs.end(), std::back_inserter(logits.observed));
    return logits;
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> loadTokenizer(const std::string& path) {
    Result<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::create(BV_TRY(vocabularyOf(path)));
    if (!tokenizer.has_value()) {
        return failWithContext(std::move(tokenizer).error(), path);
    }
    return tokenizer;
}

Result<std::string> readChatTemplate(const std::string& path) {
    const std::optional<TemplateText> text = BV_TRY(BV_TRY(openModel(path))->chatTemplate());
    if (!text) {
        return fail(ErrorCode::NotFound, "{}: the model carries no chat template", path);
    }
    return text->text;
}

Result<ModelInfo> inspectModel(const std::string& path) {
    const std::unique_ptr<ModelSource> source = BV_TRY(openModel(path));
    const ModelConfig config = BV_TRY(source->config({}));
    BV_TRY(checkTensors(*source, AdapterSet(), config));
    ModelInfo info = describeSource(*source);
    const std::optional<VisionSource> vision =
        BV_TRY(findVision(*source, config, "", info.notices));
    info.vision = vision ? visionText(*vision, *source) : std::string();
    info.context_tokens = config.context_tokens;
    addConfigFacts(config, {EngineConfig().cache_type, EngineConfig().index_cache_type}, info);
    addAttentionNotices(config, config.msaLayers(), info.notices);
    info.memory = BV_TRY(measureMemory(*source, AdapterSet(), config, vision ? &*vision : nullptr,
                                       ModelOptions(), config.context_tokens));
    info.memory.cache = info.memory.cacheBytes(config.context_tokens);
    return info;
}

Result<Logits> computeLogits(const LogitsRequest& request, std::stop_token stop) {
    ModelOptions options;
    options.compute = request.compute;
    options.attention = request.attention;
    options.n_threads = request.n_threads;
    options.max_pass_tokens = request.chunk > 0 ? request.chunk : kDefaultChunk;
    options.kernels = request.kernels;
    const std::unique_ptr<Model> model = BV_TRY(Model::load(request.load, options, nullptr, stop));
    BV_TRY(checkIds(request, model->info()));
    model->backend().setBusy(true);
    Result<Logits> logits = runLogits(*model, request, stop);
    model->backend().setBusy(false);
    return logits;
}

Result<void> writeLogits(const std::string& path, Logits logits) {
    std::vector<OutputTensor> tensors = std::move(logits.observed);
    tensors.insert(
        tensors.begin(),
        OutputTensor{"logits", {logits.n_tokens, logits.vocab_size}, std::move(logits.values)});
    return writeSafetensorsFile(path, tensors);
}

SupportedFormats supportedFormats() {
    SupportedFormats formats;
    for (const FamilyTraits& family : families()) {
        formats.architectures.emplace_back(family.architecture);
    }
    for (const kernels::WeightTypeInfo& type : kernels::kWeightTypes) {
        formats.weight_types.emplace_back(type.name);
    }
    formats.tokenizers = {
        "byte-level BPE (smollm, gpt-2, qwen2, llama-bpe, minimax-m2, minimax-m3)",
        "SentencePiece-style BPE (llama)", "tokenizer.json"};
    return formats;
}

namespace {

/// The devices found, for people. They are not used yet: the CUDA backend is to come.
std::string gpuText() {
    const Result<std::vector<kernels::CudaDevice>> devices = kernels::cudaDevices();
    if (!devices) {
        return "none: " + devices.error().message;
    }
    std::string text;
    for (const kernels::CudaDevice& device : *devices) {
        text += fmt::format("{}{}, {:.1f} GiB, compute capability {}.{} (found, not used yet)",
                            text.empty() ? "" : "; ", device.name,
                            static_cast<double>(device.memory_bytes) / (1U << 30),
                            device.compute_major, device.compute_minor);
    }
    return text.empty() ? "none" : text;
}

}  // namespace

Result<ComputeInfo> computeInfo() {
    const kernels::Isa isa = BV_TRY(kernels::chosenIsa());
    const kernels::CpuInfo cpu = kernels::cpuInfo();
    ComputeInfo info;
    info.cpu = cpu.brand;
    info.cpu_features = cpu.features;
    info.instruction_set =
        fmt::format("{}: {}", kernels::isaName(isa), kernels::active().description);
    info.n_cores = cpu.n_cores;
    info.gpu = gpuText();
    return info;
}

}  // namespace belvedere::inference
