#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes unicode_class_table.cpp: the class of every code point that the split patterns tell apart.

Source of the facts: the general categories and the White_Space property of ICU (through its C interface, so that the
table and the test beside it use one version). Run it again only to move to a newer Unicode version:

    python3 generate_unicode_classes.py [ICU major version, default 72] > unicode_class_table.cpp
"""
import ctypes
import sys

OTHER, UPPER, LOWER, CASELESS, MARK, NUMBER, SPACE, NEWLINE = range(8)
# Index: ICU's UCharCategory (Cn Lu Ll Lt Lm Lo Mn Me Mc Nd Nl No); all later categories are OTHER.
CLASS_OF_CATEGORY = [OTHER, UPPER, LOWER, UPPER, CASELESS, CASELESS, MARK, MARK, MARK, NUMBER, NUMBER, NUMBER]
WHITE_SPACE = 31  # UCHAR_WHITE_SPACE
BLOCK = 128
N_CODE_POINTS = 0x110000


def classes(icu_version):
    icu = ctypes.CDLL(f"libicuuc.so.{icu_version}")
    char_type = getattr(icu, f"u_charType_{icu_version}")
    has_property = getattr(icu, f"u_hasBinaryProperty_{icu_version}")
    char_type.restype = has_property.restype = ctypes.c_int8
    result = bytearray()
    for c in range(N_CODE_POINTS):
        category = char_type(c)
        value = CLASS_OF_CATEGORY[category] if category < len(CLASS_OF_CATEGORY) else OTHER
        if c in (0x0A, 0x0D):
            value = NEWLINE
        elif has_property(c, WHITE_SPACE):
            value = SPACE
        result.append(value)
    unicode_version = (ctypes.c_uint8 * 4)()
    getattr(icu, f"u_getUnicodeVersion_{icu_version}")(unicode_version)
    return bytes(result), f"{unicode_version[0]}.{unicode_version[1]}"


def lines(values):
    line = "   "
    for value in values:
        text = f" {value},"
        if len(line) + len(text) > 120:
            yield line
            line = "   "
        line += text
    yield line


def main():
    icu_version = sys.argv[1] if len(sys.argv) > 1 else "72"
    table, unicode_version = classes(icu_version)
    blocks = [table[i : i + BLOCK] for i in range(0, N_CODE_POINTS, BLOCK)]
    while blocks[-1] == blocks[-2]:  # what lies behind the index has the class of its last block
        blocks.pop()
    unique = {}
    index = [unique.setdefault(block, len(unique)) for block in blocks]
    # Planes 4 to 13 are empty: the index would be mostly one value, so it jumps over them.
    gap_begin = next(i for i in range(len(blocks)) if not any(any(b) for b in blocks[i : 0xE0000 // BLOCK]))
    tail = index[0xE0000 // BLOCK :]
    assert len(unique) <= 256
    packed = []
    for block in unique:
        packed += [block[i] | block[i + 1] << 4 for i in range(0, BLOCK, 2)]
    print("// SPDX-License-Identifier: Apache-2.0")
    print(f"// Made by generate_unicode_classes.py from ICU {icu_version} (Unicode {unicode_version}). Do not edit.")
    print('#include "inference/tokenizer/unicode_class.h"\n')
    print("// clang-format off")
    print("namespace belvedere::inference::detail {\n")
    print(f"const uint32_t kClassIndexEnd = {hex(gap_begin * BLOCK)};")
    print(f"const uint32_t kClassTailEnd = {hex(0xE0000 + len(tail) * BLOCK)};\n")
    for name, values in (("kClassIndex", index[:gap_begin]), ("kClassTailIndex", tail), ("kClassBlocks", packed)):
        print(f"const uint8_t {name}[{len(values)}] = {{")
        print("\n".join(lines(values)))
        print("};\n")
    print("}  // namespace belvedere::inference::detail")
    print("// clang-format on")


if __name__ == "__main__":
    main()
