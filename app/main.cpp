// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "app/headless/cli.h"

int main(int argc, char** argv) {
    return belvedere::app::runCommandLine(std::vector<std::string>(argv + 1, argv + argc));
}
