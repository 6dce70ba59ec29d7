// SPDX-License-Identifier: Apache-2.0
#include "inference/model/model.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include <unistd.h>

#include "inference/backend/cpu_backend.h"
#include "inference/model/model_digest.h"

namespace belvedere::inference {
namespace {

/// Of the machine's memory, what weights and cache together may take.
constexpr double kUsableMemory = 0.9;
/// Tokens that a model's own window keeps before experts leave memory for it.
constexpr size_t kLeastWindow = 8192;

uint64_t machineBytes() {
    return static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
           static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

double gib(uint64_t bytes) {
    return static_cast<double>(bytes) / static_cast<double>(uint64_t{1} << 30);
}

/// "Q4_1 (210), F32 (61), Q8_0 (1)": most frequent first.
std::string weightTypes(const ModelSource& source) {
    std::map<std::string, size_t> counts;
    for (const ModelTensor& tensor : source.tensors()) {
        ++counts[tensor.type->name];
    }
    std::vector<std::pair<std::string, size_t>> order(counts.begin(), counts.end());
    std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
        return std::pair(b.second, a.first) < std::pair(a.second, b.first);
    });
    std::string text;
    for (const auto& [name, count] : order) {
        text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", name, count);
    }
    return text;
}

/// "3-29", "1, 4-6".
std::string rangesText(const std::vector<size_t>& layers) {
    std::string text;
    for (size_t i = 0; i < layers.size();) {
        size_t last = i;
        while (last + 1 < layers.size() && layers[last + 1] == layers[last] + 1) {
            ++last;
        }
        text += fmt::format("{}{}", text.empty() ? "" : ", ", layers[i]);
        if (last > i) {
            text += fmt::format("-{}", layers[last]);
        }
        i = last + 1;
    }
    return text;
}

/// Numbers and scales of MXFP8 stand apart in the file, so no kernel reads it in place.
void addRepackNotice(const ModelSource& source, ModelInfo& info) {
    const auto tensors = source.tensors();
    const bool has_mxfp8 =
        std::any_of(tensors.begin(), tensors.end(), [](const ModelTensor& tensor) {
            return tensor.type->id == static_cast<uint32_t>(kernels::WeightType::MXFP8);
        });
    if (has_mxfp8) {
        info.notices.push_back(
            fmt::format("MXFP8 weights were joined with their scales: {:.1f} GiB in memory beside "
                        "the mapped {:.1f} GiB",
                        gib(info.resident_bytes), gib(info.file_bytes)));
    }
}

/// An adapter in GGUF changes the rows of q and k in the order of GGUF.
Result<void> checkAdapterRows(const LoadRequest& request, const ModelConfig& config) {
    if (!request.adapters.empty() && config.rope.pairing != config.family->rope) {
        return fail(ErrorCode::InvalidArgument,
                    "{}: made for the GGUF of the model: in {} the rows of q and k stand in "
                    "another order",
                    request.adapters[0].path, request.model_path);
    }
    return {};
}

bool isExact(const ModelOptions& options) {
    return options.compute == Compute::Exact;
}

CacheTypes cacheTypes(const ModelOptions& options) {
    return isExact(options) ? CacheTypes{kernels::CacheType::F32, kernels::CacheType::F32}
                            : CacheTypes{options.cache_type, options.index_cache_type};
}

const kernels::KernelTable& kernelsOf(const ModelOptions& options) {
    return options.kernels != nullptr ? *options.kernels : kernels::active();
}

/// Tokens of the longest pass.
size_t passTokens(const ModelOptions& options, size_t context_tokens) {
    return std::max<size_t>(1, std::min(options.max_pass_tokens, context_tokens));
}

enum class Memory { Held, Measured };

Result<std::unique_ptr<CpuBackend>> makeBackend(const ModelSource& source,
                                                const AdapterSet& adapters,
                                                const ModelConfig& config,
                                                const VisionSource* vision,
                                                const ModelOptions& options,
                                                size_t context_tokens,
                                                Memory memory) {
    const std::vector<float> divisors = BV_TRY(ropeDivisors(source, adapters, config));
    BackendShape shape = Decoder::backendShape(config, divisors, cacheTypes(options),
                                               context_tokens, passTokens(options, context_tokens));
    shape.expert_budget_bytes = options.expert_budget_bytes;
    if (vision != nullptr) {
        shape.step_width = std::max(shape.step_width, vision->config.dim);
    }
    shape.is_measured = memory == Memory::Measured;
    const size_t n_threads =
        options.n_threads > 0 ? options.n_threads : std::max<size_t>(1, kernels::cpuInfo().n_cores);
    return CpuBackend::create(shape, isExact(options) ? Precision::Exact : Precision::Fast,
                              kernelsOf(options), n_threads);
}

Result<std::unique_ptr<VisionTower>> makeTower(const VisionSource& vision,
                                               const ModelSource& text,
                                               Backend& backend,
                                               size_t pass_tokens) {
    VisionWeights weights = BV_TRY(loadVisionWeights(vision.in(text), vision.config, backend));
    return std::make_unique<VisionTower>(vision.config, std::move(weights), backend, pass_tokens);
}

uint64_t usableBytes(const ModelOptions& options) {
    const uint64_t machine = options.machine_bytes > 0 ? options.machine_bytes : machineBytes();
    return static_cast<uint64_t>(kUsableMemory * static_cast<double>(machine));
}

/// The share of memory for experts, as asked for or where not all fit beside everything else and a
/// window: the rest stays in the file. 0: no limit. `need`: without the cache; becomes what is held
/// then.
uint64_t limitExperts(const ModelConfig& config,
                      const ModelOptions& options,
                      MemoryNeed& need,
                      std::vector<std::string>& notices) {
    const size_t window = options.context_tokens > 0
                              ? options.context_tokens
                              : std::min(config.context_tokens, kLeastWindow);
    const uint64_t others = need.total() - need.experts + need.cacheBytes(window);
    const uint64_t usable = usableBytes(options);
    const uint64_t room = usable > others ? usable - others : 0;
    const uint64_t budget = options.expert_budget_bytes > 0 ? options.expert_budget_bytes : room;
    if (budget == 0 || need.experts <= budget) {
        return 0;
    }
    notices.push_back(fmt::format(
        "{:.2f} of {:.2f} GiB of experts are held in memory; the others are read from the file "
        "when they are chosen, which is slow",
        gib(budget), gib(need.experts)));
    need.weights -= need.experts - budget;
    need.experts = budget;
    return budget;
}

/// The window: what was asked for, else the model's own; never more than the memory of this machine
/// can cache. `need`: without the cache.
Result<size_t> chooseContext(const std::string& path,
                             const ModelConfig& config,
                             const MemoryNeed& need,
                             const ModelOptions& options,
                             std::vector<std::string>& notices) {
    const size_t asked = options.context_tokens;
    const size_t wanted = asked > 0 ? asked : config.context_tokens;
    const uint64_t usable = usableBytes(options);
    const uint64_t for_cache = usable - std::min(usable, need.total());
    const size_t n_fitting = for_cache / need.page_bytes * kernels::kPageTokens;
    if (wanted > n_fitting && (asked > 0 || n_fitting == 0)) {
        std::string choices = "choose a model with smaller weights";
        if (n_fitting > 0) {
            choices = fmt::format("choose a window of at most {} tokens", n_fitting);
            const kernels::CacheType type = cacheTypes(options).kv;
            if (type != kernels::CacheType::Q8_0 && !isExact(options)) {
                choices += fmt::format(
                    ", or a cache of q8_0 (--cache-type), which takes {:.0f} % of {}",
                    100.0 *
                        static_cast<double>(
                            kernels::cacheRowBytes(kernels::CacheType::Q8_0, config.head_dim)) /
                        static_cast<double>(kernels::cacheRowBytes(type, config.head_dim)),
                    kernels::cacheTypeName(type));
            }
        }
        return fail(ErrorCode::OutOfMemory,
                    "{}: a window of {} tokens needs {:.2f} GiB of cache beside {:.2f} GiB of "
                    "weights, {:.2f} GiB of weights in the file and {:.2f} GiB of working memory; "
                    "of the {:.2f} GiB of this machine {:.2f} may be used: {}",
                    path, wanted,
                    static_cast<double>(wanted) / kernels::kPageTokens * gib(need.page_bytes),
                    gib(need.weights), gib(need.mapped), gib(need.scratch + need.images),
                    gib(usable) / kUsableMemory, gib(usable), choices);
    }
    if (asked > config.context_tokens) {
        notices.push_back(
            fmt::format("the window of {} tokens is longer than the {} the model was made for",
                        asked, config.context_tokens));
    }
    if (wanted > n_fitting) {
        notices.push_back(fmt::format(
            "the window is {} tokens: the memory of this machine cannot cache the {} of the model",
            n_fitting, wanted));
        return n_fitting;
    }
    return wanted;
}

/// "f16, index keys bf16".
std::string cacheTypesText(const ModelConfig& config, const CacheTypes& types) {
    std::string text = kernels::cacheTypeName(types.kv);
    if (config.hasMsa()) {
        text += fmt::format(", index keys {}", kernels::cacheTypeName(types.index));
    }
    return text;
}

}  // namespace

void addAttentionNotices(const ModelConfig& config,
                         const std::vector<size_t>& indexed,
                         std::vector<std::string>& notices) {
    if (config.hasMsa()) {
        notices.push_back(fmt::format(
            "layers {} attend sparsely (MSA): each token to the {} best blocks of {} tokens",
            rangesText(indexed), config.msa.top_k, config.msa.block_tokens));
    } else if (!indexed.empty()) {
        notices.push_back(
            fmt::format("layers {} carry an MSA index, but attention runs dense, as was asked for",
                        rangesText(indexed)));
    } else if (config.family->architecture == "minimax-m3") {
        notices.emplace_back(
            "the file has no MSA index tensors: attention runs dense, which this model was not "
            "trained for; a file made with a newer converter has them");
    }
}

uint64_t cacheBytesPerToken(const ModelConfig& config, const CacheTypes& types) {
    uint64_t bytes = uint64_t{config.n_layers} * 2 * config.n_kv_heads *
                     kernels::cacheRowBytes(types.kv, config.head_dim);
    for (const LayerConfig& layer : config.layers) {
        if (layer.attention == AttentionKind::Msa) {
            bytes += kernels::cacheRowBytes(types.index, config.msa.head_dim);
        }
    }
    return bytes;
}

void addConfigFacts(const ModelConfig& config, const CacheTypes& types, ModelInfo& info) {
    info.trained_context_tokens = config.context_tokens;
    info.vocab_size = config.vocab_size;
    info.n_layers = config.n_layers;
    info.block_tokens = config.hasMsa() ? config.msa.block_tokens : 0;
    info.cache_bytes_per_token = cacheBytesPerToken(config, types);
    info.cache_types = cacheTypesText(config, types);
}

Result<MemoryNeed> measureMemory(const ModelSource& source,
                                 const AdapterSet& adapters,
                                 const ModelConfig& config,
                                 const VisionSource* vision,
                                 const ModelOptions& options,
                                 size_t context_tokens) {
    const std::unique_ptr<CpuBackend> backend = BV_TRY(
        makeBackend(source, adapters, config, vision, options, context_tokens, Memory::Measured));
    ModelWeights weights = BV_TRY(loadWeights(source, adapters, config, *backend, nullptr, {}));
    const size_t pass_tokens = passTokens(options, context_tokens);
    const std::unique_ptr<Decoder> decoder =
        BV_TRY(Decoder::create(config, std::move(weights), *backend, pass_tokens));
    std::unique_ptr<VisionTower> tower;
    if (vision != nullptr) {
        tower = BV_TRY(makeTower(*vision, source, *backend, pass_tokens));
    }
    MemoryNeed need;
    need.weights = backend->residentBytes();
    need.experts = backend->expertBytes();
    need.mapped = backend->mappedBytes();
    need.scratch = backend->scratchBytes();
    if (vision != nullptr) {
        need.images = BV_TRY(tower->reserve(VisionTower::usualRows(vision->config)));
    }
    need.page_bytes = backend->pageBytes();
    return need;
}

std::string visionText(const VisionSource& vision, const ModelSource& text) {
    const std::filesystem::path path(vision.in(text).name());
    return fmt::format("{}: {} layers", path.filename().string(), vision.config.n_layers);
}

ModelInfo describeSource(const ModelSource& source) {
    ModelInfo info;
    info.path = source.name();
    info.name = source.title();
    if (info.name.empty()) {
        info.name = std::filesystem::path(source.name()).filename().string();
    }
    info.architecture = source.architecture().value_or(std::string());
    info.weight_types = weightTypes(source);
    info.file_bytes = source.fileBytes();
    for (const ModelTensor& tensor : source.tensors()) {
        info.n_parameters += tensor.elementCount();
    }
    const auto chat_template = source.chatTemplate();
    info.chat_template =
        chat_template.has_value() && *chat_template ? "from the model file" : "built-in ChatML";
    info.notices = source.notices();
    return info;
}

Result<std::unique_ptr<Model>> Model::load(const LoadRequest& request,
                                           const ModelOptions& asked,
                                           const LoadProgress& progress,
                                           const std::stop_token& stop) {
    ModelOptions options = asked;
    const auto report = [&](double fraction, const char* what) {
        if (progress) {
            progress(fraction, what);
        }
    };
    report(0.0, "reading the header");
    auto opened = BV_TRY(openModel(request.model_path));
    std::unique_ptr<Model> model(new Model(std::move(opened)));
    const ModelSource& source = *model->source_;
    for (const AdapterFile& adapter : request.adapters) {
        BV_TRY(model->adapters_.add(adapter.path, adapter.scale, source));
    }
    model->config_ = BV_TRY(source.config(model->adapters_.overrides()));
    BV_TRY(checkAdapterRows(request, model->config_));
    const std::vector<size_t> indexed = model->config_.msaLayers();
    if (options.attention == Attention::Dense) {
        for (LayerConfig& layer : model->config_.layers) {
            layer.attention = AttentionKind::Dense;
        }
    }
    const ModelConfig& config = model->config_;
    BV_TRY(checkTensors(source, model->adapters_, config));

    ModelInfo& info = model->info_;
    info = describeSource(source);
    model->vision_ = BV_TRY(findVision(source, config, request.mmproj_path, info.notices));
    const VisionSource* vision = model->vision_ ? &*model->vision_ : nullptr;
    if (vision != nullptr) {
        info.vision = visionText(*vision, source);
        info.file_bytes += vision->file != nullptr ? vision->file->fileBytes() : 0;
    }
    info.adapters = request.adapters;
    info.n_parameters += model->adapters_.parameterCount();
    addConfigFacts(config, cacheTypes(options), info);
    ModelOptions unlimited = options;
    unlimited.expert_budget_bytes = 0;
    info.memory = BV_TRY(
        measureMemory(source, model->adapters_, config, vision, unlimited,
                      options.context_tokens > 0 ? options.context_tokens : config.context_tokens));
    options.expert_budget_bytes = limitExperts(config, options, info.memory, info.notices);
    info.context_tokens =
        BV_TRY(chooseContext(request.model_path, config, info.memory, options, info.notices));
    info.memory.cache = info.memory.cacheBytes(info.context_tokens);
    addAttentionNotices(config, indexed, info.notices);

    model->compute_ = options.compute;
    model->kernels_ = &kernelsOf(options);
    model->backend_ = BV_TRY(makeBackend(source, model->adapters_, config, vision, options,
                                         info.context_tokens, Memory::Held));
    report(0.05, "reading tensors");
    ModelWeights weights = BV_TRY(loadWeights(
        source, model->adapters_, config, *model->backend_,
        [&](double fraction) { report(0.05 + 0.9 * fraction, "reading tensors"); }, stop));
    model->decoder_ = BV_TRY(Decoder::create(config, std::move(weights), *model->backend_,
                                             passTokens(options, info.context_tokens)));
    if (vision != nullptr) {
        report(0.95, "reading the vision tower");
        model->tower_key_ = towerDigest(vision->in(source)).low;
        model->tower_ = BV_TRY(
            makeTower(*vision, source, *model->backend_, passTokens(options, info.context_tokens)));
    }
    info.resident_bytes = model->backend_->residentBytes();
    addRepackNotice(source, info);
    info.instruction_set = model->backend_->description();
    info.n_threads = model->backend_->threadCount();
    report(1.0, "ready");
    return model;
}

Digest Model::digest() {
    if (!digest_) {
        digest_ = modelDigest(*source_, adapters_, config_, compute_);
    }
    return *digest_;
}

Result<void> Model::checkWhole() const {
    BV_TRY(source_->checkWhole());
    if (vision_ && vision_->file != nullptr) {
        BV_TRY(vision_->file->checkWhole());
    }
    return adapters_.checkWhole();
}

}  // namespace belvedere::inference
