// SPDX-License-Identifier: Apache-2.0
#include "inference/model/model_digest.h"

#include <algorithm>
#include <bit>
#include <string_view>
#include <vector>

namespace belvedere::inference {
namespace {

constexpr uint64_t kWholeBytes = uint64_t{256} << 20;
/// Of a tensor of a larger model: samples, and their size.
constexpr size_t kSamples = 16;
constexpr size_t kSampleBytes = size_t{16} << 10;

/// Facts one behind the other.
class FactList {
  public:
    void add(uint64_t fact) { facts_.push_back(fact); }

    void add(double fact) { facts_.push_back(std::bit_cast<uint64_t>(fact)); }

    void add(std::string_view text) { add(std::as_bytes(std::span(text))); }

    void add(std::span<const std::byte> bytes) {
        const Digest digest = digestOf(bytes);
        facts_.insert(facts_.end(), {bytes.size(), digest.low, digest.high});
    }

    [[nodiscard]] Digest digest() const { return digestOf(std::as_bytes(std::span(facts_))); }

  private:
    std::vector<uint64_t> facts_;
};

void addBytes(std::span<const std::byte> bytes, size_t n_samples, FactList& facts) {
    if (n_samples == 0 || bytes.size() <= n_samples * kSampleBytes) {
        facts.add(bytes);
        return;
    }
    facts.add(uint64_t{bytes.size()});
    for (size_t i = 0; i < n_samples; ++i) {
        const size_t last = bytes.size() - kSampleBytes;
        const size_t begin = n_samples > 1 ? last / (n_samples - 1) * i : last / 2;
        facts.add(bytes.subspan(begin, kSampleBytes));
    }
}

void addTensor(const ModelTensor& tensor, bool is_whole, FactList& facts) {
    facts.add(tensor.name);
    facts.add(std::string_view(tensor.type->name));
    for (const uint64_t dim : tensor.dims) {
        facts.add(dim);
    }
    facts.add(uint64_t{tensor.adds_one});
    addBytes(tensor.bytes, is_whole ? 0 : kSamples, facts);
    const size_t of_piece =
        std::max<size_t>(1, kSamples / std::max<size_t>(1, tensor.pieces.size()));
    for (const TensorPiece& piece : tensor.pieces) {
        addBytes(piece.bytes, is_whole ? 0 : of_piece, facts);
        addBytes(piece.scales, is_whole ? 0 : of_piece, facts);
    }
}

void addConfig(const ModelConfig& config, FactList& facts) {
    facts.add(config.family->architecture);
    for (const uint64_t fact : {config.n_layers,
                                config.dim,
                                config.ff_dim,
                                config.n_heads,
                                config.n_kv_heads,
                                config.head_dim,
                                config.vocab_size,
                                config.rope.n_dims,
                                config.msa.n_heads,
                                config.msa.head_dim,
                                config.msa.block_tokens,
                                config.msa.top_k,
                                config.msa.n_init,
                                config.msa.n_local,
                                config.moe.n_experts,
                                config.moe.n_used,
                                config.moe.ff_dim,
                                config.moe.shared_ff_dim,
                                static_cast<size_t>(config.moe.router),
                                static_cast<size_t>(config.moe.has_choice_bias),
                                static_cast<size_t>(config.rope.pairing)}) {
        facts.add(fact);
    }
    for (const float fact :
         {config.norm_eps, config.moe.scale, config.swiglu_oai.alpha, config.swiglu_oai.limit}) {
        facts.add(static_cast<double>(fact));
    }
    for (const float frequency : ropeFrequencies(config.rope, config.rope.divisors)) {
        facts.add(static_cast<double>(frequency));
    }
    for (const LayerConfig& layer : config.layers) {
        facts.add(static_cast<uint64_t>(layer.attention));
        facts.add(static_cast<uint64_t>(layer.mlp));
    }
}

}  // namespace

Digest modelDigest(const ModelSource& source,
                   const AdapterSet& adapters,
                   const ModelConfig& config,
                   Compute compute) {
    FactList facts;
    facts.add(uint64_t{compute == Compute::Exact});
    addConfig(config, facts);
    std::vector<const ModelTensor*> tensors;
    for (const ModelTensor& tensor : source.tensors()) {
        if (!tensor.is_vision) {
            tensors.push_back(&tensor);
        }
        for (const LoraPair& pair : adapters.pairsOf(tensor.name)) {
            facts.add(static_cast<double>(pair.scale));
        }
    }
    for (const auto& file : adapters.files()) {
        for (const ModelTensor& tensor : file->tensors()) {
            tensors.push_back(&tensor);
        }
    }
    uint64_t n_bytes = 0;
    for (const ModelTensor* tensor : tensors) {
        n_bytes += tensor->byteCount();
    }
    for (const ModelTensor* tensor : tensors) {
        addTensor(*tensor, n_bytes <= kWholeBytes, facts);
    }
    return facts.digest();
}

Digest towerDigest(const ModelSource& source) {
    FactList facts;
    for (const ModelTensor& tensor : source.tensors()) {
        if (tensor.is_vision) {
            addTensor(tensor, false, facts);
        }
    }
    return facts.digest();
}

}  // namespace belvedere::inference
