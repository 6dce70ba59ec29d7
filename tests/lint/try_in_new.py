#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on BV_TRY inside a new expression: when it returns, g++ 12 does not free what new has allocated."""
import pathlib, re, sys

root, bad = pathlib.Path(sys.argv[1]), []
for path in sorted(p for folder in ("kernels", "inference", "agent", "tools", "app") for p in (root / folder).rglob("*")):
    if path.suffix not in (".h", ".cpp"):
        continue
    text = re.sub(r"//[^\n]*", "", path.read_text())
    for found in re.finditer(r"\bnew\s+[\w:<>]+\s*[({][^;]*?\bBV_TRY\b", text):
        bad.append(f"{path.relative_to(root)}:{text.count(chr(10), 0, found.start()) + 1}: BV_TRY inside new")
print("\n".join(bad) or "try_in_new: none")
sys.exit(bool(bad))
