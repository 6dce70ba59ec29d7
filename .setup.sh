# SPDX-License-Identifier: Apache-2.0
# Sourced by run.sh and test.sh: what both need from a Debian 12. Installs only what is missing; works in the source folder.
set -euo pipefail
caller_dir=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")"
source_dir=$PWD
jobs=$(nproc)
export CCACHE_NOHASHDIR=1 CCACHE_BASEDIR="$source_dir"

build_packages=(
  g++ cmake ninja-build ccache mold pkg-config git python3 python3-pip
  libfmt-dev libexpected-dev nlohmann-json3-dev libsqlite3-dev libgit2-dev libre2-dev libicu-dev libssl-dev libmd4c-dev libpng-dev
  libopencv-core-dev libopencv-imgproc-dev libopencv-imgcodecs-dev libopencv-dev
  qt6-base-dev libqt6svg6-dev libx11-dev libxext-dev libxtst-dev fonts-dejavu-core)

# install_packages NAME...: those that are missing, with sudo where that is needed.
install_packages() {
  local missing=() as_root=() name
  for name in "$@"; do
    dpkg-query -W -f='${Status}' "$name" 2>/dev/null | grep -q '^install ok installed$' || missing+=("$name")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || {
      echo "packages are missing and there is no sudo: as root run: apt-get install ${missing[*]}" >&2
      exit 1
    }
    as_root=(sudo)
  fi
  echo "installing ${missing[*]}" >&2
  "${as_root[@]}" apt-get update -qq >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
}

# build_preset PRESET [TARGET...]: configures where that has not been done, then builds.
build_preset() {
  local preset=$1 targets=("${@:2}")
  [ -f "build/$preset/build.ninja" ] || cmake --preset "$preset" >&2
  cmake --build --preset "$preset" -j "$jobs" ${targets:+--target "${targets[@]}"} >&2
}
