#!/bin/bash
# Builds tomonode and runs all its tests; installs first what is missing (see deploy/install-deps.sh).
#
# usage: tests/run.sh [PRESET] [-R REGEX]     PRESET: dev (default), release, asan, tsan, cuda, kernels
#        -R REGEX  run the tests alone whose name matches (CTest)
# Ends with CTest's summary and its exit code.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=dev
regex=()
while [ $# -gt 0 ]; do
    case "$1" in
    -R)
        [ $# -ge 2 ] || { echo "tests/run.sh: -R needs a regular expression" >&2; exit 2; }
        regex=(-R "$2")
        shift 2
        ;;
    -h | --help)
        sed -n '2,7s/^# \{0,1\}//p' "$0"
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

deploy/install-deps.sh build test
jobs=$(nproc)
cmake --preset "$preset"
cmake --build --preset "$preset" -j "$jobs"
# System tests run alone (they measure, and they listen); the unit tests share the cores.
ctest --preset "$preset" -j "$jobs" --output-on-failure --no-tests=error "${regex[@]}"
