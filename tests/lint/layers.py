#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on an #include that points the wrong way: the table is who may include what (regular expressions of paths)."""
import pathlib, re, sys

ALLOWED = {
    "kernels/base/": r"kernels/base/",
    "kernels/": r"kernels/",
    "inference/": r"inference/|kernels/base/|kernels/(kernels|formats|cuda/cuda_kernels)\.h",
    "agent/model/engine_model": r"agent/|kernels/base/|inference/engine\.h",
    "agent/model/template_probe": r"agent/|kernels/base/|inference/engine\.h",
    "agent/": r"agent/|kernels/base/",
    "tools/": r"tools/|kernels/base/|agent/(tool|message|permission|plan|token_counter|context_source)\.h",
    "app/": r"app/|agent/|kernels/base/|inference/(engine|inspect|chat/render_command)\.h"
            r"|tools/(all_tools|workspace|process|repository/repository)\.h",
}
root, bad = pathlib.Path(sys.argv[1]), []
for path in sorted(p for folder in ("kernels", "inference", "agent", "tools", "app") for p in (root / folder).rglob("*")):
    name = path.relative_to(root).as_posix()
    if path.suffix not in (".h", ".cpp", ".cu", ".cuh"):
        continue
    rule = next(allowed for prefix, allowed in ALLOWED.items() if name.startswith(prefix))
    qt_is_allowed = name.startswith("app/") and not re.match(r"app/(headless/|config|main\.cpp)", name)
    for number, line in enumerate(path.read_text().splitlines(), 1):
        ours, system = re.match(r'#include "([^"]+)"', line), re.match(r"#include <(Q\w+|Qt\w+/.*)>", line)
        if (ours and not re.match(rule, ours[1])) or (system and not qt_is_allowed):
            bad.append(f"{name}:{number}: {line.strip()}")
print("\n".join(bad) or "layers: every include points the right way")
sys.exit(bool(bad))
