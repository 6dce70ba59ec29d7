// SPDX-License-Identifier: Apache-2.0
#include "app/desktop_main.h"

int main(int argc, char** argv) {
    return belvedere::app::runDesktop(argc, argv);
}
