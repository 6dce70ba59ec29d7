#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh Debian 12 to the running program: installs what is missing, builds, fetches the default model, then opens the
# window where there is a display, else a terminal chat. With arguments it runs that command: ./run.sh ask --repo . "question"
source "$(dirname "${BASH_SOURCE[0]}")/.setup.sh"

program=$source_dir/build/release/bin/belvedere
stamp=build/release/.built  # newer than every source: nothing to build
sources=(CMakeLists.txt CMakePresets.json .setup.sh kernels inference agent tools app resources)
if [ ! -f "$stamp" ] || [ -n "$(find "${sources[@]}" -newer "$stamp" -type f -print -quit)" ]; then
  install_packages "${build_packages[@]}"
  started=$(mktemp)
  build_preset release
  mv "$started" "$stamp"  # as old as the build's start: a file changed meanwhile is built next time
fi

cd "$caller_dir"
case "${1:-}" in
  "" | ask | chat)
    # A model named on the command line needs no default one.
    [[ " $* " == *" --model"* ]] || "$program" models fetch || echo "going on without the default model" >&2 ;;
esac
exec "$program" "$@"
