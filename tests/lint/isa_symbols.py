#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails where an object compiled for one instruction set defines a weak symbol.

The linker keeps one copy of a weak symbol (an inline function, a template, a variable of a header) for the whole program. If that
is the copy with AVX-512 in it, the baseline code that calls it dies on an older CPU. DW.ref.* only refer to exception tables.

    isa_symbols.py NM OBJECT...
"""
import subprocess
import sys

WEAK_KINDS = "VvWwu"


def weak_definitions(nm, path):
    text = subprocess.run([nm, "-C", "--defined-only", path], check=True, capture_output=True, text=True).stdout
    for line in text.splitlines():
        fields = line.split(maxsplit=2)
        if len(fields) == 3 and fields[1] in WEAK_KINDS and not fields[2].startswith("DW.ref."):
            yield fields[2]


def main():
    if len(sys.argv) < 3:
        sys.exit("isa_symbols: no objects named; usage: isa_symbols.py NM OBJECT...")
    n_bad = 0
    for path in sys.argv[2:]:
        for symbol in weak_definitions(sys.argv[1], path):
            n_bad += 1
            print(f"{path}: weak definition of {symbol}: make it static or put it into an unnamed namespace")
    print(f"isa_symbols: {len(sys.argv) - 2} objects, {n_bad} weak definitions")
    sys.exit(1 if n_bad else 0)


main()
