// SPDX-License-Identifier: Apache-2.0
#include "inference/model/adapter.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "inference/model/sparse_config.h"

namespace belvedere::inference {
namespace {

constexpr std::string_view kSuffixA = ".lora_a";
constexpr std::string_view kSuffixB = ".lora_b";
constexpr uint64_t kMaxRank = 4096;
constexpr uint64_t kMaxContext = 1U << 28;

/// The layer of "blk.N.indexer.X", if that is the name's form.
std::optional<size_t> indexedLayer(std::string_view name) {
    constexpr std::string_view kPrefix = "blk.";
    if (!name.starts_with(kPrefix)) {
        return std::nullopt;
    }
    size_t layer = 0;
    const char* begin = name.data() + kPrefix.size();
    const char* end = name.data() + name.size();
    const auto [rest, error] = std::from_chars(begin, end, layer);
    if (error != std::errc() ||
        !std::string_view(rest, static_cast<size_t>(end - rest)).starts_with(".indexer.")) {
        return std::nullopt;
    }
    return layer;
}

bool isMatrix(const ModelTensor& tensor) {
    return tensor.dims[2] == 1 && tensor.dims[3] == 1;
}

std::string shapeText(const ModelTensor& tensor) {
    return fmt::format("{} x {}", tensor.dims[0], tensor.dims[1]);
}

}  // namespace

Result<void> AdapterSet::add(const std::string& path, float scale, const ModelSource& base) {
    if (!std::isfinite(scale)) {
        return fail(ErrorCode::InvalidArgument, "{}: the adapter's scale {} is no number", path,
                    scale);
    }
    auto file = std::make_unique<GgufFile>(BV_TRY(GgufFile::open(path)));
    const auto type = BV_TRY(file->findString("general.type")).value_or("model");
    const auto adapter_type = BV_TRY(file->findString("adapter.type")).value_or("");
    if (type != "adapter" || adapter_type != "lora") {
        return fail(ErrorCode::InvalidArgument,
                    "{}: not a LoRA adapter (general.type \"{}\", adapter.type \"{}\")", path,
                    type.substr(0, 32), adapter_type.substr(0, 32));
    }
    const auto architecture = BV_TRY(file->requiredString("general.architecture"));
    const std::string base_architecture = BV_TRY(base.architecture());
    if (architecture != base_architecture) {
        return fail(ErrorCode::InvalidArgument, "{}: an adapter for \"{}\", but {} is \"{}\"", path,
                    architecture.substr(0, 64), base.name(), base_architecture.substr(0, 64));
    }
    BV_TRY(addMetadata(*file, architecture));
    const std::optional<MsaConfig> msa = BV_TRY(readMsaConfig(*file, architecture));
    if (msa && overrides_.msa) {
        return fail(ErrorCode::InvalidArgument, "{}: another adapter already brings an MSA index",
                    path);
    }
    overrides_.msa = msa ? msa : overrides_.msa;
    for (const ModelTensor& tensor : file->tensors()) {
        BV_TRY(addTensor(*file, tensor, scale, base));
    }
    files_.push_back(std::move(file));
    return {};
}

Result<void> AdapterSet::addMetadata(const GgufFile& file, std::string_view architecture) {
    const std::string prefix = fmt::format("{}.", architecture);
    for (const std::string_view key : file.keys()) {
        if (!key.starts_with(prefix)) {
            continue;
        }
        const std::string_view name = key.substr(prefix.size());
        if (name == "rope.freq_base") {
            if (overrides_.freq_base) {
                return fail(ErrorCode::InvalidArgument, "{}: {} is already set by another adapter",
                            file.name(), key);
            }
            overrides_.freq_base = BV_TRY(file.requiredFloat(key));
        } else if (name == "context_length") {
            if (overrides_.context_tokens) {
                return fail(ErrorCode::InvalidArgument, "{}: {} is already set by another adapter",
                            file.name(), key);
            }
            overrides_.context_tokens = BV_TRY(file.requiredUint(key));
            if (*overrides_.context_tokens == 0 || *overrides_.context_tokens > kMaxContext) {
                return fail(ErrorCode::Corrupt, "{}: {} is {}", file.name(), key,
                            *overrides_.context_tokens);
            }
        } else if (!name.starts_with("attention.indexer.")) {
            return fail(ErrorCode::Unsupported, "{}: an adapter cannot change {}", file.name(),
                        key.substr(0, 80));
        }
    }
    return {};
}

Result<void> AdapterSet::addTensor(const GgufFile& file,
                                   const ModelTensor& tensor,
                                   float scale,
                                   const ModelSource& base) {
    if (tensor.name.ends_with(kSuffixA)) {
        return addPair(file, tensor, scale, base);
    }
    if (tensor.name.ends_with(kSuffixB)) {
        const std::string name(tensor.name.substr(0, tensor.name.size() - kSuffixB.size()));
        if (file.findTensor(name + std::string(kSuffixA)) == nullptr) {
            return fail(ErrorCode::Corrupt, "{}: {} has no lora_a beside it", file.name(),
                        tensor.name);
        }
        return {};
    }
    const ModelTensor* original = base.find(tensor.name);
    const std::optional<size_t> layer = indexedLayer(tensor.name);
    if (layer && original == nullptr) {
        std::vector<size_t>& layers = overrides_.msa_layers;
        const auto place = std::lower_bound(layers.begin(), layers.end(), *layer);
        if (place == layers.end() || *place != *layer) {
            layers.insert(place, *layer);
        }
        return addWhole(file, tensor);
    }
    if (original == nullptr) {
        return fail(ErrorCode::InvalidArgument, "{}: {} replaces nothing in {}", file.name(),
                    tensor.name, base.name());
    }
    if (original->dims != tensor.dims) {
        return fail(ErrorCode::InvalidArgument, "{}: {} is {}, but the base has {}", file.name(),
                    tensor.name, shapeText(tensor), shapeText(*original));
    }
    return addWhole(file, tensor);
}

Result<void> AdapterSet::addWhole(const GgufFile& file, const ModelTensor& tensor) {
    if (!replaced_.emplace(tensor.name, &tensor).second) {
        return fail(ErrorCode::InvalidArgument, "{}: {} is already replaced by another adapter",
                    file.name(), tensor.name);
    }
    return {};
}

Result<void> AdapterSet::addPair(const GgufFile& file,
                                 const ModelTensor& a,
                                 float scale,
                                 const ModelSource& base) {
    const std::string_view name = a.name.substr(0, a.name.size() - kSuffixA.size());
    const ModelTensor* b = file.findTensor(fmt::format("{}{}", name, kSuffixB));
    if (b == nullptr) {
        return fail(ErrorCode::Corrupt, "{}: {} has no lora_b beside it", file.name(), a.name);
    }
    const ModelTensor* target = base.find(name);
    // The rows of an embedding are looked up, not multiplied.
    if (target == nullptr || !name.starts_with("blk.") || target->n_dims != 2) {
        return fail(ErrorCode::InvalidArgument, "{}: {} changes no matrix of a layer of {}",
                    file.name(), a.name, base.name());
    }
    const uint64_t rank = a.dims[1];
    if (!isMatrix(a) || !isMatrix(*b) || rank > kMaxRank || b->dims[0] != rank ||
        a.dims[0] != target->dims[0] || b->dims[1] != target->dims[1]) {
        return fail(ErrorCode::InvalidArgument,
                    "{}: {} ({}) and lora_b ({}) do not fit the base's {}", file.name(), a.name,
                    shapeText(a), shapeText(*b), shapeText(*target));
    }
    const double alpha = BV_TRY(file.requiredFloat("adapter.lora.alpha"));
    if (!std::isfinite(alpha)) {
        return fail(ErrorCode::Corrupt, "{}: adapter.lora.alpha is {}", file.name(), alpha);
    }
    LoraPair pair = {&a, b, scale * static_cast<float>(alpha / static_cast<double>(rank))};
    pairs_[target->name].push_back(pair);
    n_parameters_ += a.elementCount() + b->elementCount();
    return {};
}

const ModelTensor* AdapterSet::find(const ModelSource& base, std::string_view name) const {
    const auto found = replaced_.find(name);
    return found != replaced_.end() ? found->second : base.find(name);
}

std::span<const LoraPair> AdapterSet::pairsOf(std::string_view name) const {
    const auto found = pairs_.find(name);
    return found == pairs_.end() ? std::span<const LoraPair>()
                                 : std::span<const LoraPair>(found->second);
}

Result<void> AdapterSet::checkWhole() const {
    for (const std::unique_ptr<GgufFile>& file : files_) {
        BV_TRY(file->checkWhole());
    }
    return {};
}

}  // namespace belvedere::inference
