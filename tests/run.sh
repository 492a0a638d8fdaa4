#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Build tomonode and run its tests (tests/README.md); first install missing packages (see deploy/install-deps.sh). If the browser or the
# programs of the groups `checks` and `package` cannot be installed, only their tests are skipped.
#
# usage: tests/run.sh [PRESET] [--tier N] [-R REGEX] [--no-skips]     PRESET: dev (default), release, asan, tsan, cuda, kernels
#        --tier N    1 (default): what runs on every commit; 2: all tests of all sizes
#        -R REGEX    run only the programs of CTest and the files of pytest whose name matches; an error if none does
#        --no-skips  on a machine that has everything: a skipped test, or part of one, is an error
# Ends with a summary and a list of what was skipped, each with its reason. Exit code: 0 if no test failed; 1 also if a test was skipped
# without a reason, or with --no-skips at all.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=dev regex="" skips=() failed=0
while [ $# -gt 0 ]; do
    case "$1" in
    -R | --tier)
        [ $# -ge 2 ] || { echo "tests/run.sh: $1 needs an argument" >&2; exit 2; }
        if [ "$1" = -R ]; then regex=$2; else export TOMONODE_TIER=$2; fi
        shift
        ;;
    --no-skips) skips=(--no-skips) ;;
    -h | --help)
        sed -n '3,12s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    -*)
        echo "tests/run.sh: unknown option $1" >&2
        exit 2
        ;;
    *) preset=$1 ;;
    esac
    shift
done

needed=(build test)
[ "$preset" != tsan ] || needed+=(nightly)
if ! deploy/install-deps.sh "${needed[@]}" checks package browser; then
    deploy/install-deps.sh "${needed[@]}"
    echo "tests/run.sh: tests that need packages that could not be installed are skipped" >&2
fi
build=build/$preset
rm -f "$build"/{units,system,alone}.xml
jobs=$(nproc)
began=$SECONDS
lap() { # lap WHAT: say how long it took
    times+="${times:+, }$1 $((SECONDS - began)) s"
    began=$SECONDS
}
cmake --preset "$preset"
cmake --build --preset "$preset" -j "$jobs"
lap build

ctest --preset "$preset" -j "$jobs" ${regex:+-R "$regex"} || failed=1 # finding none is no failure
lap units

# The tests of the whole program: mostly waiting, so twice as many as there are processors; then those beside which nothing may run.
mapfile -t files < <(find tests/system tests/hostile -name 'test_*.py' | sed 's#^tests/##' | grep -E "${regex:-.}" | sort)
pytest() { # pytest NAME OPTION...: exit code 5 (no test is left after the selection) is no failure
    local code=0
    TOMONODE=$PWD/$build/tomonode TOMONODE_BUILD=$PWD/$build /usr/bin/python3 -m pytest --junit-xml="$build/$1.xml" "${@:2}" "${files[@]/#/tests/}" || code=$?
    [ "$code" = 0 ] || [ "$code" = 5 ] || failed=1
}
if [ "${#files[@]}" -gt 0 ] && [ -x "$build/tomonode" ]; then
    pytest system -n $((2 * jobs)) -m "not alone"
    pytest alone -m alone
    lap system
fi

echo
results=()
for name in units system alone; do [ ! -f "$build/$name.xml" ] || results+=("$build/$name.xml"); done
tests/summary.py "${results[@]}" "${skips[@]}" || failed=1
echo "$times"
exit "$failed"
