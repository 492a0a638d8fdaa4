#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Build tomonode and run all its tests; first install missing packages (see deploy/install-deps.sh). If the browser or the programs of
# the groups `checks` and `package` cannot be installed, only their tests are skipped.
#
# usage: tests/run.sh [PRESET] [-R REGEX] [--no-skips]     PRESET: dev (default), release, asan, tsan, cuda, kernels
#        -R REGEX    run only the tests whose name matches (CTest); an error if none does
#        --no-skips  on a machine that has everything: a skipped test, or part of one, is an error
# Ends with CTest's summary and a list of what was skipped, each with its reason. Exit code: CTest's; 1 if a test was skipped without a
# reason, or with --no-skips at all.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=dev
regex=()
skips=()
while [ $# -gt 0 ]; do
    case "$1" in
    -R)
        [ $# -ge 2 ] || { echo "tests/run.sh: -R needs a regular expression" >&2; exit 2; }
        regex=(-R "$2")
        shift 2
        ;;
    --no-skips)
        skips=(--no-skips)
        shift
        ;;
    -h | --help)
        sed -n '3,11s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    -*)
        echo "tests/run.sh: unknown option $1" >&2
        exit 2
        ;;
    *)
        preset=$1
        shift
        ;;
    esac
done

needed=(build test)
[ "$preset" != tsan ] || needed+=(nightly)
if ! deploy/install-deps.sh "${needed[@]}" checks package browser; then
    deploy/install-deps.sh "${needed[@]}"
    echo "tests/run.sh: tests that need packages that could not be installed are skipped" >&2
fi
jobs=$(nproc)
results=build/$preset/tests.xml # CTest's, see the test presets in CMakePresets.json
rm -f "$results"
cmake --preset "$preset"
cmake --build --preset "$preset" -j "$jobs"
# System tests run one at a time (they measure times and open ports); unit tests run in parallel.
code=0
ctest --preset "$preset" -j "$jobs" --no-tests=error "${regex[@]}" || code=$?
if [ -f "$results" ]; then
    echo
    tests/summary.py "$results" "${skips[@]}" || [ "$code" -ne 0 ] || code=1
fi
exit "$code"
