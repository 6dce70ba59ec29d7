// SPDX-License-Identifier: Apache-2.0
#include "tests/support/temp_dir.h"

#include <cstdlib>
#include <fstream>
#include <string>

#include "kernels/base/check.h"

namespace belvedere::testing {

TempDir::TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "belvedere-test-XXXXXX").string();
    BV_CHECK(mkdtemp(name.data()) != nullptr);
    path_ = std::filesystem::canonical(name);
}

TempDir::~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path TempDir::write(const std::filesystem::path& relative,
                                     std::string_view content) const {
    const std::filesystem::path file = path_ / relative;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream out(file, std::ios::binary);
    out.write(content.data(), static_cast<std::streamsize>(content.size()));
    BV_CHECK(out.good());
    return file;
}

}  // namespace belvedere::testing
