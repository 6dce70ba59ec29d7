// SPDX-License-Identifier: Apache-2.0
#include "tests/tools/repository/git_folder.h"

#include <array>
#include <cstdio>

#include <gtest/gtest.h>

namespace belvedere::testing {

std::string shell(const std::string& command) {
    std::string output;
    FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
    if (pipe == nullptr) {
        ADD_FAILURE() << "cannot run " << command;
        return output;
    }
    std::array<char, 4096> buffer{};
    for (size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
        output.append(buffer.data(), n);
    }
    EXPECT_EQ(::pclose(pipe), 0) << command << "\n" << output;
    return output;
}

void GitFolder::git(const std::string& arguments, const std::string& folder) const {
    shell("cd '" + (path() / folder).native() +
          "' && GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null git -c user.name=T -c "
          "user.email=t@example.org "
          "-c protocol.file.allow=always " +
          arguments);
}

}  // namespace belvedere::testing
