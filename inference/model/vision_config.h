// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a vision tower and its projector are, as a value: MiniMax-M3's, from the mmproj file beside
// a GGUF or from the vision_config of a checkpoint. A plain value: any thread.

#include <cstddef>

#include "inference/format/gguf.h"
#include "inference/model/config_json.h"
#include "kernels/base/result.h"

namespace belvedere::inference {

/// How the elements of q and k that turn stand in a head. Halves: first elements of all pairs of
/// time, row and column, then the second ones. ByAxis: time, row and column each by itself in
/// halves, as converters to GGUF order the rows of q and k.
enum class AxisOrder { Halves, ByAxis };

struct VisionConfig {
    size_t n_layers = 0;
    size_t dim = 0;
    size_t n_heads = 0;
    size_t ff_dim = 0;
    size_t out_dim = 0;  ///< of the projector, throughout: the text model's dim
    float norm_eps = 0.0F;
    double freq_base = 10000.0;
    size_t segment_pairs = 4;  ///< pairs of frames that attend to each other
    AxisOrder axis_order = AxisOrder::Halves;

    [[nodiscard]] size_t headDim() const { return dim / n_heads; }

    /// Pairs of elements that turn with one axis: 13 of a head of 80.
    /// Source: MiniMax-M3's vision rotary embedding.
    [[nodiscard]] size_t axisPairs() const { return headDim() / 2 * 2 / 3 / 2; }
};

/// From the metadata of an mmproj file (general.architecture "clip"). Errors: Corrupt for missing,
/// absurd or contradicting values; Unsupported for other towers and projectors.
[[nodiscard]] Result<VisionConfig> visionConfigFromGguf(const GgufFile& file);

/// From a whole config.json that has a vision_config. Errors: as above.
[[nodiscard]] Result<VisionConfig> visionConfigFromJson(const ConfigJson& root);

}  // namespace belvedere::inference
