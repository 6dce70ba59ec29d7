// SPDX-License-Identifier: Apache-2.0
#include "inference/model/model.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include <unistd.h>

#include "inference/backend/cpu_backend.h"

namespace belvedere::inference {
namespace {

/// Of the machine's memory, what weights and cache together may take.
constexpr double kUsableMemory = 0.9;

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

/// How attention runs, where the user could expect otherwise. `indexed`: layers with an index
/// branch.
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

/// The window: what was asked for, else the model's own; never more than the memory of this machine
/// can cache.
Result<size_t> chooseContext(const std::string& path,
                             const ModelConfig& config,
                             uint64_t bytes_per_token,
                             uint64_t weight_bytes,
                             size_t asked,
                             std::vector<std::string>& notices) {
    const size_t wanted = asked > 0 ? asked : config.context_tokens;
    const auto usable = static_cast<uint64_t>(kUsableMemory * static_cast<double>(machineBytes()));
    const uint64_t for_cache = usable > weight_bytes ? usable - weight_bytes : 0;
    const uint64_t n_fitting = for_cache / bytes_per_token;
    if (wanted > n_fitting && (asked > 0 || n_fitting == 0)) {
        return fail(ErrorCode::OutOfMemory,
                    "{}: a window of {} tokens needs {:.1f} GiB of cache ({} bytes a token) beside "
                    "{:.1f} GiB of weights, "
                    "this machine has {:.1f} GiB: choose a window of at most {} tokens",
                    path, wanted, gib(wanted * bytes_per_token), bytes_per_token, gib(weight_bytes),
                    gib(machineBytes()), n_fitting);
    }
    if (asked > config.context_tokens) {
        notices.push_back(
            fmt::format("the window of {} tokens is longer than the {} the model was made for",
                        asked, config.context_tokens));
    }
    if (wanted > n_fitting) {
        const size_t rounded =
            std::max<size_t>(n_fitting / kernels::kPageTokens * kernels::kPageTokens, 1);
        notices.push_back(fmt::format(
            "the window is {} tokens: the memory of this machine cannot cache the {} of the model",
            rounded, wanted));
        return rounded;
    }
    return wanted;
}

}  // namespace

std::vector<size_t> msaLayers(const ModelConfig& config) {
    std::vector<size_t> layers;
    for (size_t layer = 0; layer < config.n_layers; ++layer) {
        if (config.layers[layer].attention == AttentionKind::Msa) {
            layers.push_back(layer);
        }
    }
    return layers;
}

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
    uint64_t bytes = uint64_t{config.n_layers} * 2 * config.n_kv_heads * config.head_dim *
                     kernels::cacheElementBytes(types.kv);
    for (const LayerConfig& layer : config.layers) {
        if (layer.attention == AttentionKind::Msa) {
            bytes += config.msa.head_dim * kernels::cacheElementBytes(types.index);
        }
    }
    return bytes;
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
                                           const ModelOptions& options,
                                           const LoadProgress& progress,
                                           const std::stop_token& stop) {
    const auto report = [&](double fraction, const char* what) {
        if (progress) {
            progress(fraction, what);
        }
    };
    report(0.0, "reading the header");
    std::unique_ptr<Model> model(new Model(BV_TRY(openModel(request.model_path))));
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

    const bool exact = options.compute == Compute::Exact;
    const CacheTypes cache = {exact ? kernels::CacheType::F32 : options.cache_type,
                              exact ? kernels::CacheType::F32 : options.index_cache_type};
    ModelInfo& info = model->info_;
    info = describeSource(source);
    info.adapters = request.adapters;
    info.n_parameters += model->adapters_.parameterCount();
    info.cache_bytes_per_token = cacheBytesPerToken(config, cache);
    info.trained_context_tokens = config.context_tokens;
    info.vocab_size = config.vocab_size;
    info.n_layers = config.n_layers;
    info.block_tokens = config.hasMsa() ? config.msa.block_tokens : 0;
    info.context_tokens =
        BV_TRY(chooseContext(request.model_path, config, info.cache_bytes_per_token,
                             info.file_bytes, options.context_tokens, info.notices));
    addAttentionNotices(config, indexed, info.notices);

    const size_t max_tokens =
        std::max<size_t>(1, std::min(options.max_pass_tokens, info.context_tokens));
    const std::vector<float> divisors = BV_TRY(ropeDivisors(source, model->adapters_, config));
    model->kernels_ = options.kernels != nullptr ? options.kernels : &kernels::active();
    const size_t n_threads =
        options.n_threads > 0 ? options.n_threads : std::max<size_t>(1, kernels::cpuInfo().n_cores);
    BackendShape shape =
        Decoder::backendShape(config, divisors, cache, info.context_tokens, max_tokens);
    shape.expert_budget_bytes = options.expert_budget_bytes;
    model->backend_ = BV_TRY(CpuBackend::create(shape, exact ? Precision::Exact : Precision::Fast,
                                                *model->kernels_, n_threads));
    report(0.05, "reading tensors");
    ModelWeights weights = BV_TRY(loadWeights(
        source, model->adapters_, config, *model->backend_,
        [&](double fraction) { report(0.05 + 0.9 * fraction, "reading tensors"); }, stop));
    model->decoder_ =
        BV_TRY(Decoder::create(config, std::move(weights), *model->backend_, max_tokens));
    info.resident_bytes = model->backend_->residentBytes();
    addRepackNotice(source, info);
    info.instruction_set = model->backend_->description();
    info.n_threads = model->backend_->threadCount();
    report(1.0, "ready");
    return model;
}

Result<void> Model::checkWhole() const {
    BV_TRY(source_->checkWhole());
    return adapters_.checkWhole();
}

}  // namespace belvedere::inference
