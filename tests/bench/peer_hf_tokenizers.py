#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The peer of tokenizer_bench: Hugging Face tokenizers on the same files, with the vocabulary of a SmolLM GGUF or with any
tokenizer.json. Count and sum of the ids must equal those tokenizer_bench prints.

    pip install tokenizers
    RAYON_NUM_THREADS=1 python3 peer_hf_tokenizers.py MODEL.gguf|tokenizer.json PATH...     (then with 2)
"""
import os
import pathlib
import statistics
import struct
import sys
import time

from tokenizers import Tokenizer, models, pre_tokenizers

ROUNDS = 3
EXTENSIONS = {"", ".h", ".hpp", ".tcc", ".cpp", ".c", ".py"}
NUMBER_FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


class GgufMetadata:
    """Just enough to find tokens and merges; trusts the file."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read(64 << 20)
        self.position = 0
        assert self.number("I") == 0x46554747, "not a GGUF file"
        self.number("I")
        self.number("Q")
        self.values = {}
        for _ in range(self.number("Q")):
            key = self.string()
            self.values[key] = self.value(self.number("I"))

    def number(self, form):
        (value,) = struct.unpack_from("<" + form, self.data, self.position)
        self.position += struct.calcsize("<" + form)
        return value

    def string(self):
        size = self.number("Q")
        self.position += size
        return self.data[self.position - size : self.position].decode()

    def value(self, kind):
        if kind == 8:
            return self.string()
        if kind == 9:
            kind, count = self.number("I"), self.number("Q")
            return [self.value(kind) for _ in range(count)]
        return self.number(NUMBER_FORMATS[kind])


def load(path):
    if path.endswith(".json"):
        return Tokenizer.from_file(path)
    values = GgufMetadata(path).values
    if values["tokenizer.ggml.pre"] != "smollm":
        sys.exit("peer_hf_tokenizers: only GGUF files with tokenizer.ggml.pre = smollm; give a tokenizer.json instead")
    vocabulary = {text: i for i, text in enumerate(values["tokenizer.ggml.tokens"])}
    merges = [tuple(merge.split(" ")) for merge in values["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    return tokenizer


def sources(paths):
    files = []
    for path in map(pathlib.Path, paths):
        found = [path] if path.is_file() else path.rglob("*")
        files += [p for p in found if p.is_file() and not p.is_symlink() and p.suffix in EXTENSIONS]
    return [p.read_bytes() for p in sorted(files)]


def main():
    tokenizer = load(sys.argv[1])
    contents = sources(sys.argv[2:])
    texts = []
    for content in contents:
        try:
            texts.append(content.decode())
        except UnicodeDecodeError:
            print(f"peer: left out a file of {len(content)} bytes that is not UTF-8")
    mega_bytes = sum(len(text.encode()) for text in texts) / 1e6
    times = []
    cpu_start = time.process_time()
    for _ in range(ROUNDS):
        start = time.perf_counter()
        encodings = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        times.append(time.perf_counter() - start)
    cpu_seconds = time.process_time() - cpu_start
    ids = [encoding.ids for encoding in encodings]
    threads = os.environ.get("RAYON_NUM_THREADS", "all")
    print(
        f"tokenizers {threads} thread(s)  {len(texts)} files  {mega_bytes:.1f} MB  {sum(map(len, ids))} tokens"
        f"  id sum {sum(map(sum, ids))}\n"
        f"           median {mega_bytes / statistics.median(times):.1f} MB/s"
        f"  per core and CPU second {mega_bytes * ROUNDS / cpu_seconds:.1f} MB"
    )


if __name__ == "__main__":
    main()
