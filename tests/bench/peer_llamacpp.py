#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prompt and generation speed of llama.cpp beside ours: the same file, ids, threads and depths, one after the other.

    CMAKE_ARGS="-DGGML_NATIVE=OFF -DGGML_AVX512=ON -DGGML_AVX512_VBMI=ON -DGGML_AVX512_VNNI=ON -DGGML_AVX512_BF16=ON" \
        pip install llama-cpp-python
    peer_llamacpp.py --program build/bench/bin/belvedere --model FILE.gguf [--threads 2] [--depth 0 4096]

Prints tokens per second (median of three) and, for generation, the weight bytes a token reads: the floor is these bytes over
the machine's memory bandwidth. llama.cpp runs with its defaults (f16 cache, ubatch 512, repacked weights).
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time


def time_ours(program, model, threads, depth, prompt, generate):
    command = [program, "bench", "--json", "--model", model, "--threads", threads, "--depth", depth, "--prompt", prompt,
               "--max-tokens", generate]
    return json.loads(subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout)


class Peer:
    """llama.cpp through its C functions, so that Python's share does not count."""

    def __init__(self, model, threads, n_tokens):
        import llama_cpp

        self.api = llama_cpp
        llama_cpp.llama_backend_init()
        self.model = llama_cpp.llama_model_load_from_file(model.encode(), llama_cpp.llama_model_default_params())
        options = llama_cpp.llama_context_default_params()
        options.n_ctx = -(-(n_tokens + 8) // 256) * 256
        options.n_batch, options.n_ubatch = 2048, 512
        options.n_threads = options.n_threads_batch = threads
        self.context = llama_cpp.llama_init_from_model(self.model, options)
        self.depth = None
        self.n_vocab = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.model))

    def decode(self, ids):
        for begin in range(0, len(ids), 2048):
            if len(ids) > 2048:
                print(f"llama.cpp: {begin} of {len(ids)} tokens", file=sys.stderr, flush=True)
            part = ids[begin : begin + 2048]
            tokens = (self.api.llama_token * len(part))(*part)  # the batch only points to it
            if self.api.llama_decode(self.context, self.api.llama_batch_get_one(tokens, len(part))) != 0:
                raise RuntimeError("llama_decode failed")
        self.api.llama_synchronize(self.context)

    def run(self, depth, prompt, generate):
        """Seconds of prompt and of generation after `depth` tokens, which are computed by the first run and kept."""
        memory = self.api.llama_get_memory(self.context)
        ids = [(i * 7919 + 13) % self.n_vocab for i in range(depth + prompt + generate)]
        if self.depth != depth or not self.api.llama_memory_seq_rm(memory, 0, depth, -1):
            self.api.llama_memory_clear(memory, True)
            if depth:
                self.decode(ids[:depth])
            self.depth = depth
        start = time.perf_counter()
        self.decode(ids[depth : depth + prompt])
        middle = time.perf_counter()
        for token in ids[depth + prompt :]:
            self.decode([token])
        return middle - start, time.perf_counter() - middle


def time_peer(model, threads, depth, prompt, generate):
    peer = Peer(model, threads, depth + prompt + generate)
    runs = [peer.run(depth, prompt, generate) for _ in range(4)][1:]  # the first warms up
    return {
        "prompt_tok_s": statistics.median(prompt / seconds for seconds, _ in runs),
        "gen_tok_s": statistics.median(generate / seconds for _, seconds in runs),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--depth", type=int, nargs="+", default=[0, 4096])
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--generate", type=int, default=128)
    options = parser.parse_args()
    size = os.path.getsize(options.model)
    print(f"{os.path.basename(options.model)}, {options.threads} threads, prompt {options.prompt}, generation {options.generate}")
    for depth in options.depth:
        arguments = (options.model, options.threads, depth, options.prompt, options.generate)
        peer = time_peer(*arguments)
        ours = time_ours(options.program, *arguments)
        for key, what in (("prompt_tok_s", "prompt"), ("gen_tok_s", "generation")):
            line = f"depth {depth:5}  {what:10}  ours {ours[key]:8.1f}  llama.cpp {peer[key]:8.1f} tokens/s  ratio {ours[key] / peer[key]:5.2f}"
            if what == "generation":
                line += f"  (about {size / 1e6:.0f} MB of weights a token: {ours[key] * size / 1e9:.1f} GB/s)"
            print(line, flush=True)


if __name__ == "__main__":
    main()
