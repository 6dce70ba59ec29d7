// SPDX-License-Identifier: Apache-2.0
#pragma once

// A LoRA adapter in GGUF: general.type "adapter", adapter.type "lora". `X.lora_a` [rank, in] and
// `X.lora_b` [out, rank] add scale * alpha / rank * B A to the matrix X of the base; a tensor with
// a base tensor's own name replaces it; rope.freq_base and context_length replace the base's. Index
// branches (blk.N.indexer.*, attention.indexer.*) make their layers MSA layers. Immutable: any
// thread. Source: Hu et al. 2021, arXiv:2106.09685;
// names as in llama.cpp's converter.

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "inference/format/gguf.h"
#include "inference/model/model_config.h"
#include "inference/model/model_source.h"
#include "kernels/base/result.h"

namespace belvedere::inference {

struct LoraPair {
    const ModelTensor* a = nullptr;
    const ModelTensor* b = nullptr;
    float scale = 1.0F;  ///< user's scale times alpha / rank
};

/// All adapters of a model, merged by name.
class AdapterSet {
  public:
    /// Opens and adds one. Errors: those of GgufFile::open; Corrupt; Unsupported; InvalidArgument
    /// where it does not fit the base, or replaces what an earlier one replaces.
    [[nodiscard]] Result<void> add(const std::string& path, float scale, const ModelSource& base);

    [[nodiscard]] const ConfigOverrides& overrides() const { return overrides_; }

    /// The base's tensor, or what an adapter puts in its place or adds; nullptr where there is
    /// none.
    [[nodiscard]] const ModelTensor* find(const ModelSource& base, std::string_view name) const;

    [[nodiscard]] std::span<const std::unique_ptr<GgufFile>> files() const { return files_; }

    /// Low-rank parts of the matrix `name`, in the order of the adapters.
    [[nodiscard]] std::span<const LoraPair> pairsOf(std::string_view name) const;

    /// Errors: Io where a file shrank since it was opened.
    [[nodiscard]] Result<void> checkWhole() const;

    /// Elements of all low-rank parts.
    [[nodiscard]] uint64_t parameterCount() const { return n_parameters_; }

  private:
    [[nodiscard]] Result<void> addMetadata(const GgufFile& file, std::string_view architecture);
    [[nodiscard]] Result<void> addTensor(const GgufFile& file,
                                         const ModelTensor& tensor,
                                         float scale,
                                         const ModelSource& base);
    /// A tensor that takes the place of the base's, or stands beside it.
    [[nodiscard]] Result<void> addWhole(const GgufFile& file, const ModelTensor& tensor);
    [[nodiscard]] Result<void> addPair(const GgufFile& file,
                                       const ModelTensor& a,
                                       float scale,
                                       const ModelSource& base);

    std::vector<std::unique_ptr<GgufFile>> files_;
    std::unordered_map<std::string_view, const ModelTensor*> replaced_;
    std::unordered_map<std::string_view, std::vector<LoraPair>> pairs_;
    ConfigOverrides overrides_;
    uint64_t n_parameters_ = 0;
};

}  // namespace belvedere::inference
