// SPDX-License-Identifier: Apache-2.0
#pragma once

// A tensor of a model file, whatever container it comes from: name, type, shape and where its bytes
// stand. Does not own: valid as long as the file it is from. A plain value: any thread.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "inference/format/tensor_types.h"

namespace belvedere::inference {

/// One matrix of a tensor, where the container keeps it by itself.
struct TensorPiece {
    std::span<const std::byte> bytes;        ///< not aligned
    std::span<const std::byte> scales = {};  ///< MXFP8: one E8M0 for 32 numbers of E4M3
    std::string_view stored_name = {};       ///< where it is not the tensor's
};

struct ModelTensor {
    std::string_view name;  ///< as GGUF spells it: "blk.0.attn_q.weight"
    const TensorTypeInfo* type = nullptr;
    size_t n_dims = 0;
    std::array<uint64_t, 4> dims = {1, 1, 1, 1};  ///< fastest first; the missing ones are 1
    std::span<const std::byte> bytes;             ///< empty where there are pieces
    std::vector<TensorPiece> pieces;              ///< [dims[2]], or empty: all stand in `bytes`
    std::string_view stored_name;                 ///< the container's own; empty: the same
    bool adds_one = false;   ///< norm weights stored around 0 (Gemma): 1 belongs to each
    bool is_vision = false;  ///< of an image tower or its projector

    [[nodiscard]] uint64_t elementCount() const { return dims[0] * dims[1] * dims[2] * dims[3]; }

    [[nodiscard]] uint64_t byteCount() const {
        uint64_t n_bytes = bytes.size();
        for (const TensorPiece& piece : pieces) {
            n_bytes += piece.bytes.size() + piece.scales.size();
        }
        return n_bytes;
    }

    /// For messages.
    [[nodiscard]] std::string_view label() const {
        return stored_name.empty() ? name : stored_name;
    }

    /// Matrix i of the dims[2] that stand one behind the other.
    [[nodiscard]] TensorPiece piece(size_t i) const {
        if (!pieces.empty()) {
            return pieces[i];
        }
        const size_t n_bytes = bytes.size() / static_cast<size_t>(dims[2]);
        return {bytes.subspan(i * n_bytes, n_bytes)};
    }
};

}  // namespace belvedere::inference
