#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sets up what is missing and runs every test, cheapest first: the unit tests under the address sanitizer, those of the kernels
# and of the programs as they are shipped. --full adds what takes long: the unit tests without sanitizer and with that of
# threads, the slow label and clang-tidy. Prints the summaries of ctest, what was skipped and why, and one closing line.
source "$(dirname "${BASH_SOURCE[0]}")/.setup.sh"
full=${1:-}
failed=()
results=$source_dir/build/results
rm -rf "$results" && mkdir -p "$results"

step() { printf '\n== %s\n' "$*"; }

# run_tests NAME PRESET CTEST-ARGUMENT...
run_tests() {
  local name=$1 preset=$2
  step "$name"
  ctest --preset "$preset" -j "$jobs" --output-junit "$results/$name.xml" "${@:3}" || failed+=("$name")
}

step "packages"
install_packages "${build_packages[@]}" libgtest-dev libgmock-dev clang-format-19 clang-tidy-19 clang-19 \
  libclang-rt-19-dev lld-19 xvfb xauth xdotool x11-utils openbox

step "format"
git ls-files '*.h' '*.cpp' '*.cu' '*.cuh' | xargs clang-format-19 --dry-run --Werror || failed+=("format")

step "build dev"
build_preset dev product_tests
build/dev/bin/belvedere models fetch || failed+=("default model")

run_tests product dev -R '^(lint|kernels|app)\.'
run_tests gui dev -L '^gui$' -j 1
run_tests e2e dev -L '^e2e$' -j 1

step "build asan"
build_preset asan unit_tests
run_tests asan asan -L '^unit$'

# fuzz TARGET: on its corpus and 20 seconds beyond.
fuzz() {
  local name
  name=$(basename "$1" _fuzz)
  mkdir -p "build/fuzz/found/$name"
  "$1" -max_total_time=20 -timeout=10 -rss_limit_mb=2048 -print_final_stats=0 -verbosity=0 \
    -artifact_prefix="build/fuzz/found/$name/" "build/fuzz/found/$name" "tests/fuzz/corpus/$name"
}
export -f fuzz
step "fuzz: each target on its corpus and 20 seconds beyond"
build_preset fuzz fuzzers
printf '%s\n' build/fuzz/bin/*_fuzz | xargs -P "$jobs" -I{} bash -c 'fuzz {} || { echo "FAILED: {}"; exit 1; }' || failed+=("fuzz")

if command -v nvcc >/dev/null; then
  step "build cuda"
  build_preset cuda bv_kernels_cuda || failed+=("cuda")
else
  step "build cuda: left out, as there is no nvcc here"
fi

if [ "$full" = "--full" ]; then
  step "build the rest of dev"
  build_preset dev
  run_tests unit dev -L '^unit$'
  run_tests slow dev -L '^slow$' -j 1
  step "clang-tidy"
  [ -f build/tidy/build.ninja ] || cmake --preset tidy >&2
  git ls-files '*.cpp' ':!tests/fuzz' | xargs -P "$jobs" -n 1 clang-tidy-19 -p build/tidy --quiet || failed+=("tidy")
  step "build tsan"
  build_preset tsan unit_tests
  run_tests tsan tsan -L '^unit$'
fi

step "result"
python3 - "$results" "${failed[@]}" <<'PY'
import pathlib, sys, xml.etree.ElementTree as tree
total = dict(tests=0, failures=0, skipped=0)
for file in sorted(pathlib.Path(sys.argv[1]).glob("*.xml")):
    suite = tree.parse(file).getroot()
    for key in total:
        total[key] += int(suite.get(key, 0))
    for case in suite.iter("testcase"):
        if case.find("skipped") is not None:
            out = case.findtext("system-out") or ""
            reason = next((line.strip() for line in out.splitlines() if "no " in line or "need" in line), "see its output")
            print(f"skipped: {file.stem}: {case.get('name')}: {reason}")
for name in sys.argv[2:]:
    print("FAILED:", name)
passed = total["tests"] - total["failures"] - total["skipped"]
print(f"{passed} passed, {max(total['failures'], len(sys.argv) - 2)} failed, {total['skipped']} skipped")
PY
[ ${#failed[@]} -eq 0 ]
