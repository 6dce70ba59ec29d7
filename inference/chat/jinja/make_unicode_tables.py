#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes unicode_tables.cpp: the facts about characters that templates can observe, as Python's own str shows them."""
import sys

POINTS = [c for c in range(0x80, 0x110000) if not 0xD800 <= c <= 0xDFFF]


def ranges(test):
    """[first, last] of the runs of code points for which test holds; surrogates continue a run."""
    found = []
    for c in POINTS:
        if test(chr(c)):
            if found and (found[-1][1] == c - 1 or (found[-1][1] == 0xD7FF and c == 0xE000)):
                found[-1][1] = c
            else:
                found.append([c, c])
    return found


def mappings(change):
    """Single-point mappings as [first, last, step, delta], and the others as (point, text)."""
    runs, special = [], []
    for c in POINTS:
        to = change(chr(c))
        if to == chr(c):
            continue
        if len(to) != 1:
            special.append((c, to))
            continue
        delta = ord(to) - c
        if runs and runs[-1][3] == delta:
            first, last, step, _ = runs[-1]
            gap = c - last
            if gap in (1, 2) and (first == last or step == gap):
                runs[-1] = [first, c, gap, delta]
                continue
        runs.append([c, c, 1, delta])
    return runs, special


def emit(out, kind, name, rows):
    out.append(f"const std::array<{kind}, {len(rows)}> {name} = {{{{")
    line = "    "
    for row in rows:
        if len(line) + len(row) > 116:
            out.append(line.rstrip())
            line = "    "
        line += row + ", "
    out += [line.rstrip(), "}};", ""]


def case_row(r):
    return "{0x%X, 0x%X, %d, %d}" % tuple(r)


def special_row(s):
    return "{0x%X, {%s}}" % (s[0], ", ".join("0x%X" % ord(c) for c in s[1]))


def main():
    upper, upper_special = mappings(str.upper)
    lower, lower_special = mappings(str.lower)
    title = [(c, chr(c).title()) for c in POINTS if chr(c).title() != chr(c).upper()]
    out = ["// SPDX-License-Identifier: Apache-2.0",
           f"// Made by make_unicode_tables.py with Python {sys.version.split()[0]}; do not edit.", "",
           '#include "inference/chat/jinja/unicode_tables.h"', "", "#include <array>", "",
           "namespace belvedere::inference::jinja::tables {", "namespace {", "", "// clang-format off"]
    emit(out, "CaseRange", "kUpperRanges", [case_row(r) for r in upper])
    emit(out, "CaseRange", "kLowerRanges", [case_row(r) for r in lower])
    emit(out, "CaseSpecial", "kUpperSpecials", [special_row(s) for s in upper_special])
    emit(out, "CaseSpecial", "kLowerSpecials", [special_row(s) for s in lower_special])
    emit(out, "CaseSpecial", "kTitleSpecials", [special_row(s) for s in title])
    pair = "{0x%X, 0x%X}"
    sets = {
        "kUnprintableRanges": lambda c: not c.isprintable(),
        "kCasedRanges": lambda c: (c + "a").title()[-1] == "a",
        "kCaseIgnorableRanges": lambda c: ("A" + c + "\u03a3").lower()[-1] == "\u03c2"
        and (c + "a").title()[-1] != "a",
    }
    for name, test in sets.items():
        emit(out, "PointRange", name, [pair % tuple(r) for r in ranges(test)])
    out += ["// clang-format on", "", "}  // namespace", ""]
    for function, kind, table in [
            ("upperRanges", "CaseRange", "kUpperRanges"), ("lowerRanges", "CaseRange", "kLowerRanges"),
            ("upperSpecials", "CaseSpecial", "kUpperSpecials"), ("lowerSpecials", "CaseSpecial", "kLowerSpecials"),
            ("titleSpecials", "CaseSpecial", "kTitleSpecials"),
            ("unprintableRanges", "PointRange", "kUnprintableRanges"), ("casedRanges", "PointRange", "kCasedRanges"),
            ("caseIgnorableRanges", "PointRange", "kCaseIgnorableRanges")]:
        out += [f"std::span<const {kind}> {function}() {{", f"    return {table};", "}", ""]
    out += ["}  // namespace belvedere::inference::jinja::tables"]
    print("\n".join(out))


main()
