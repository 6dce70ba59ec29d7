// SPDX-License-Identifier: Apache-2.0
#include "tests/inference/checkpoint_twin.h"

#include <cstring>

#include <fmt/core.h>

#include "inference/format/gguf.h"
#include "kernels/base/check.h"
#include "tests/inference/format/sparse_model.h"

namespace belvedere::testing {
namespace {

using inference::GgufFile;
using inference::ModelTensor;

struct Name {
    const char* gguf;
    const char* stored;
};

constexpr Name kNames[] = {
    {"attn_norm", "input_layernorm"},
    {"ffn_norm", "post_attention_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"},
    {"indexer.q_proj", "self_attn.index_q_proj"},
    {"indexer.k_proj", "self_attn.index_k_proj"},
    {"indexer.q_norm", "self_attn.index_q_norm"},
    {"indexer.k_norm", "self_attn.index_k_norm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
    {"ffn_gate_inp", "MOE.gate"},
    {"exp_probs_b", "MOE.e_score_correction"},
    {"ffn_gate_shexp", "MOE.shared_experts.gate_proj"},
    {"ffn_up_shexp", "MOE.shared_experts.up_proj"},
    {"ffn_down_shexp", "MOE.shared_experts.down_proj"},
    {"ffn_gate_exps", "MOE.experts.w1"},
    {"ffn_up_exps", "MOE.experts.w3"},
    {"ffn_down_exps", "MOE.experts.w2"},
};

void replace(std::string& text, const std::string& from, const std::string& to) {
    if (const size_t at = text.find(from); at != std::string::npos) {
        text.replace(at, from.size(), to);
    }
}

class TwinMaker {
  public:
    TwinMaker(const GgufFile& file, CheckpointBuilder& twin)
        : file_(file),
          twin_(twin),
          architecture_(*file.requiredString("general.architecture")),
          prefix_(architecture_ == "minimax-m3" ? "language_model." : "") {}

    void run() {
        for (const ModelTensor& tensor : file_.tensors()) {
            const std::string name(tensor.name);
            if (name == "token_embd.weight") {
                put(prefix_ + "model.embed_tokens.weight", tensor, bytesOf(tensor));
            } else if (name == "output_norm.weight") {
                put(prefix_ + "model.norm.weight", tensor, normBytes(tensor));
            } else if (name == "output.weight") {
                put(prefix_ + "lm_head.weight", tensor, bytesOf(tensor));
            } else if (name.starts_with("blk.")) {
                addOfLayer(tensor);
            }
        }
    }

  private:
    static std::string bytesOf(const ModelTensor& tensor) {
        return {reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()};
    }

    void put(const std::string& name, const ModelTensor& tensor, const std::string& bytes) {
        StoredTensor stored{tensor.type->name, {}, bytes};
        for (size_t d = std::min<size_t>(tensor.n_dims, 2); d > 0; --d) {
            stored.shape.push_back(tensor.dims[d - 1]);
        }
        BV_CHECK(twin_.tensors.emplace(name, stored).second);
    }

    /// MiniMax-M3's converter added 1.
    std::string normBytes(const ModelTensor& tensor) const {
        std::string bytes = bytesOf(tensor);
        for (size_t at = 0; architecture_ == "minimax-m3" && at < bytes.size(); at += 4) {
            float value = 0;
            std::memcpy(&value, bytes.data() + at, 4);
            value -= 1.0F;
            std::memcpy(bytes.data() + at, &value, 4);
        }
        return bytes;
    }

    /// Llama's converter moved row i * half + j of a head to 2 j + i.
    std::string inPublishedOrder(const ModelTensor& tensor, size_t n_heads) const {
        const std::string stored = bytesOf(tensor);
        std::string bytes = stored;
        const size_t n_rows = tensor.dims[1];
        const size_t row_bytes = stored.size() / n_rows;
        const size_t head_dim = n_rows / n_heads;
        for (size_t row = 0; row < n_rows; ++row) {
            const size_t in_head = row % head_dim;
            const size_t from =
                row - in_head + in_head % (head_dim / 2) * 2 + in_head / (head_dim / 2);
            std::memcpy(bytes.data() + row * row_bytes, stored.data() + from * row_bytes,
                        row_bytes);
        }
        return bytes;
    }

    std::string storedName(const std::string& stem) const {
        for (const Name& name : kNames) {
            if (stem == name.gguf) {
                std::string stored = name.stored;
                replace(stored, "MOE", architecture_ == "qwen3moe" ? "mlp" : "block_sparse_moe");
                if (architecture_ == "qwen3moe") {
                    replace(stored, ".w1", ".gate_proj");
                    replace(stored, ".w2", ".down_proj");
                    replace(stored, ".w3", ".up_proj");
                }
                return stored;
            }
        }
        BV_CHECK(false);
        return {};
    }

    void addOfLayer(const ModelTensor& tensor) {
        const std::string name(tensor.name.substr(4));
        const size_t dot = name.find('.');
        const size_t last = name.rfind('.');
        const std::string layer = prefix_ + "model.layers." + name.substr(0, dot) + ".";
        const std::string stem = name.substr(dot + 1, last - dot - 1);
        const std::string stored = layer + storedName(stem);
        std::string field = name.substr(last);
        if (stem == "exp_probs_b") {
            field = "_bias";
        }
        if (stem.ends_with("_exps")) {
            addExperts(tensor, stored + field);
        } else if (stem.ends_with("norm")) {
            put(stored + field, tensor, normBytes(tensor));
        } else if (architecture_ == "llama" && (stem == "attn_q" || stem == "attn_k")) {
            const std::string key =
                stem == "attn_q" ? "llama.attention.head_count" : "llama.attention.head_count_kv";
            put(stored + field, tensor, inPublishedOrder(tensor, *file_.requiredUint(key)));
        } else {
            put(stored + field, tensor, bytesOf(tensor));
        }
    }

    void addExperts(const ModelTensor& tensor, const std::string& name) {
        for (size_t i = 0; i < tensor.dims[2]; ++i) {
            std::string of_expert = name;
            replace(of_expert, ".experts.", fmt::format(".experts.{}.", i));
            const auto piece = tensor.piece(i).bytes;
            put(of_expert, tensor, {reinterpret_cast<const char*>(piece.data()), piece.size()});
        }
    }

    const GgufFile& file_;
    CheckpointBuilder& twin_;
    std::string architecture_;
    std::string prefix_;
};

}  // namespace

CheckpointBuilder checkpointTwin(const std::string& gguf, const std::string& config) {
    const auto file = GgufFile::parse(std::as_bytes(std::span(gguf)), "twin");
    BV_CHECK(file.has_value());
    CheckpointBuilder twin;
    twin.config = nlohmann::json::parse(config);
    TwinMaker(*file, twin).run();
    return twin;
}

CheckpointBuilder sparseCheckpoint() {
    return checkpointTwin(sparseModel(), R"({
        "model_type": "minimax_m3_vl",
        "architectures": ["MiniMaxM3SparseForConditionalGeneration"],
        "text_config": {
            "vocab_size": 8, "hidden_size": 16, "intermediate_size": 16,
            "dense_intermediate_size": 16, "shared_intermediate_size": 16,
            "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
            "head_dim": 8, "hidden_act": "swigluoai", "swiglu_alpha": 1.702, "swiglu_limit": 7.0,
            "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "use_gemma_norm": true,
            "use_qk_norm": true, "qk_norm_type": "per_head", "rope_theta": 5000000,
            "rotary_dim": 4, "partial_rotary_factor": 0.5, "num_local_experts": 4,
            "num_experts_per_tok": 2, "n_shared_experts": 1, "scoring_func": "sigmoid",
            "use_routing_bias": true, "routed_scaling_factor": 2.0,
            "tie_word_embeddings": false, "attention_output_gate": false,
            "moe_layer_freq": [0, 1],
            "sparse_attention_config": {
                "use_sparse_attention": true, "sparse_attention_freq": [0, 1],
                "sparse_num_index_heads": 2, "sparse_index_dim": 8, "sparse_block_size": 2,
                "sparse_topk_blocks": 2, "sparse_local_block": 1, "sparse_init_block": 0,
                "sparse_score_type": "max", "sparse_disable_index_value": [0, 1]
            }
        }
    })");
}

}  // namespace belvedere::testing
