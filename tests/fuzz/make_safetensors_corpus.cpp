// SPDX-License-Identifier: Apache-2.0
// Writes tests/fuzz/corpus/safetensors:
// build/fuzz/bin/make_safetensors_corpus tests/fuzz/corpus/safetensors
#include <cstdio>
#include <fstream>
#include <string>

#include "tests/inference/checkpoint_twin.h"

namespace {

using namespace belvedere::testing;

/// Scales beside numbers, experts stacked, gate above up, names that are not the decoder's.
std::map<std::string, StoredTensor> otherForms() {
    const std::string layer = "model.language_model.layers.1.";
    return {
        {layer + "self_attn.q_proj.weight", {"F8_E4M3", {2, 64}, std::string(128, '\x31')}},
        {layer + "self_attn.q_proj.weight_scale_inv", {"U8", {2, 2}, std::string(4, '\x7f')}},
        {layer + "mlp.experts.gate_up_proj", {"BF16", {2, 4, 2}, std::string(32, '\x11')}},
        {layer + "mlp.shared_experts.gate_up_proj.weight",
         {"F16", {4, 2}, std::string(16, '\x11')}},
        {layer + "mlp.gate.e_score_correction_bias", {"F32", {2}, std::string(8, '\x11')}},
        {"model.mtp.layers.0.enorm.weight", {"BF16", {2}, std::string(4, '\x11')}},
        {"vision_tower.vision_model.embeddings.patch_embedding.weight",
         {"BF16", {2, 1, 2, 1, 1}, std::string(8, '\x11')}},
        {"empty", {"I64", {0, 3}, ""}},
        {"scalar", {"F64", {}, std::string(8, '\0')}},
    };
}

void write(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fputs("usage: make_safetensors_corpus FOLDER\n", stderr);
        return 2;
    }
    const std::string folder = std::string(argv[1]) + "/";
    const CheckpointBuilder sparse = sparseCheckpoint();
    write(folder + "published.safetensors", safetensorsBytes(sparse.tensors));
    write(folder + "other_forms.safetensors", safetensorsBytes(otherForms()));
    write(folder + "minimax_m3.json", sparse.config.dump());
    write(folder + "llama.json",
          R"({"model_type": "llama", "hidden_size": 8, "num_hidden_layers": 1, "vocab_size": 4,
"num_attention_heads": 2, "rms_norm_eps": 1e-5, "max_position_embeddings": 64, "hidden_act": "silu",
"intermediate_size": 16, "attention_bias": true, "rope_theta": 1e4, "rope_scaling": {"type": "llama3",
"factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 32}})");
    write(folder + "qwen3_moe.json",
          R"({"model_type": "qwen3_moe", "hidden_size": 8, "num_hidden_layers": 2, "vocab_size": 4,
"num_attention_heads": 2, "num_key_value_heads": 1, "rms_norm_eps": 1e-6, "hidden_act": "silu",
"max_position_embeddings": 64, "intermediate_size": 16, "moe_intermediate_size": 8, "num_experts": 4,
"num_experts_per_tok": 2, "norm_topk_prob": true, "mlp_only_layers": [0], "decoder_sparse_step": 1,
"use_sliding_window": true, "sliding_window": 32, "rope_parameters": {"rope_theta": 1e6}})");
    return 0;
}
