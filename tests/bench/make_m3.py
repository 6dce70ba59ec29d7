#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a MiniMax-M3 with random weights and the real shape of attention (heads of 128, blocks of 128, top-k 16), small
enough for a desktop: speed does not depend on what the weights say. llama.cpp loads the file as well.

    pip install gguf
    make_m3.py OUTPUT.gguf [--layers 12] [--dim 512] [--heads 32] [--experts 8] [--context 1049600]

Matrices are Q8_0, the index branch and the router F32. Layer 0 is dense (attention and MLP), the others MSA with experts.
"""
import argparse

import gguf
import numpy as np

KV_HEADS = 4
HEAD_DIM = 128
EXPERTS_USED = 2


def byte_symbols():
    """One printable character for each byte, as byte-level BPE writes them."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    shifted = iter(range(256, 512))
    return [chr(byte if byte in kept else next(shifted)) for byte in range(256)]


class Writer:
    def __init__(self, path, seed):
        self.gguf = gguf.GGUFWriter(path, "minimax-m3")
        self.random = np.random.default_rng(seed)

    def vector(self, name, n, value=1.0):
        self.gguf.add_tensor(name, np.full(n, value, np.float32))

    def matrix(self, name, *shape, quantized=True):
        values = self.random.standard_normal(shape, np.float32) / np.float32(np.sqrt(shape[-1]))
        if quantized:
            kind = gguf.GGMLQuantizationType.Q8_0
            self.gguf.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
        else:
            self.gguf.add_tensor(name, values)

    def mlp(self, layer, suffix, dim, ff_dim, *experts):
        self.matrix(f"blk.{layer}.ffn_gate{suffix}.weight", *experts, ff_dim, dim)
        self.matrix(f"blk.{layer}.ffn_up{suffix}.weight", *experts, ff_dim, dim)
        self.matrix(f"blk.{layer}.ffn_down{suffix}.weight", *experts, dim, ff_dim)


def write_facts(writer, options):
    facts = writer.gguf
    facts.add_name("m3-bench")
    facts.add_block_count(options.layers)
    facts.add_context_length(options.context)
    facts.add_embedding_length(options.dim)
    facts.add_feed_forward_length(options.dim)
    facts.add_head_count(options.heads)
    facts.add_head_count_kv(KV_HEADS)
    facts.add_key_length(HEAD_DIM)
    facts.add_value_length(HEAD_DIM)
    facts.add_layer_norm_rms_eps(1e-6)
    facts.add_rope_freq_base(5e6)
    facts.add_rope_dimension_count(HEAD_DIM // 2)
    facts.add_expert_count(options.experts)
    facts.add_expert_used_count(EXPERTS_USED)
    facts.add_expert_shared_count(1)
    facts.add_expert_feed_forward_length(options.dim)
    facts.add_expert_shared_feed_forward_length(options.dim)
    facts.add_expert_weights_scale(2.0)
    facts.add_expert_weights_norm(True)
    facts.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
    facts.add_leading_dense_block_count(1)
    for key, value in {"head_count": KV_HEADS, "key_length": HEAD_DIM, "top_k": 16, "block_size": 128, "local_blocks": 1}.items():
        facts.add_uint32(f"minimax-m3.attention.indexer.{key}", value)
    tokens = [*byte_symbols(), "he", "<bos>", "<eos>"]
    facts.add_tokenizer_model("gpt2")
    facts.add_tokenizer_pre("minimax-m2")
    facts.add_token_list(tokens)
    facts.add_token_types([gguf.TokenType.NORMAL] * 257 + [gguf.TokenType.CONTROL] * 2)
    facts.add_token_merges(["h e"])  # llama.cpp wants one
    facts.add_bos_token_id(len(tokens) - 2)
    facts.add_eos_token_id(len(tokens) - 1)
    return len(tokens)


def write_layer(writer, layer, options):
    name = f"blk.{layer}"
    dim = options.dim
    for norm in ("attn_norm", "ffn_norm"):
        writer.vector(f"{name}.{norm}.weight", dim)
    for norm in ("attn_q_norm", "attn_k_norm"):
        writer.vector(f"{name}.{norm}.weight", HEAD_DIM)
    writer.matrix(f"{name}.attn_q.weight", options.heads * HEAD_DIM, dim)
    writer.matrix(f"{name}.attn_k.weight", KV_HEADS * HEAD_DIM, dim)
    writer.matrix(f"{name}.attn_v.weight", KV_HEADS * HEAD_DIM, dim)
    writer.matrix(f"{name}.attn_output.weight", dim, options.heads * HEAD_DIM)
    if layer == 0:
        writer.mlp(layer, "", dim, dim)
        return
    writer.matrix(f"{name}.indexer.q_proj.weight", KV_HEADS * HEAD_DIM, dim, quantized=False)
    writer.matrix(f"{name}.indexer.k_proj.weight", HEAD_DIM, dim, quantized=False)
    for norm in ("q_norm", "k_norm"):
        writer.vector(f"{name}.indexer.{norm}.weight", HEAD_DIM)
    writer.matrix(f"{name}.ffn_gate_inp.weight", options.experts, dim, quantized=False)
    writer.vector(f"{name}.exp_probs_b.bias", options.experts, 0.0)
    writer.mlp(layer, "_exps", dim, dim, options.experts)
    writer.mlp(layer, "_shexp", dim, dim)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("output")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--heads", type=int, default=32)
    parser.add_argument("--experts", type=int, default=8)
    parser.add_argument("--context", type=int, default=1_049_600)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    writer = Writer(options.output, options.seed)
    vocab_size = write_facts(writer, options)
    writer.matrix("token_embd.weight", vocab_size, options.dim)
    writer.vector("output_norm.weight", options.dim)
    writer.matrix("output.weight", vocab_size, options.dim)
    for layer in range(options.layers):
        write_layer(writer, layer, options)
    writer.gguf.write_header_to_file()
    writer.gguf.write_kv_data_to_file()
    writer.gguf.write_tensors_to_file()
    writer.gguf.close()


if __name__ == "__main__":
    main()
