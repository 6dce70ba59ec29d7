// SPDX-License-Identifier: Apache-2.0
// Writes tests/fuzz/corpus/snapshot:
// build/fuzz/bin/make_snapshot_corpus tests/fuzz/corpus/snapshot
#include <cstdio>
#include <fstream>
#include <string>

#include "tests/inference/cache/snapshot_probe.h"

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fputs("usage: make_snapshot_corpus FOLDER\n", stderr);
        return 2;
    }
    const auto write = [&](const char* name, size_t n_tokens, size_t n_banned) {
        const auto bytes = belvedere::testing::probeSnapshot(n_tokens, n_banned);
        std::ofstream(std::string(argv[1]) + "/" + name, std::ios::binary)
            .write(reinterpret_cast<const char*>(bytes.data()),
                   static_cast<std::streamsize>(bytes.size()));
    };
    write("one_token", 1, 0);
    write("whole_page", 128, 0);
    write("three_pages", 300, 0);
    write("ban", 20, 3);
    return 0;
}
