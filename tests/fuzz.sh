#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run the fuzz targets under ASan and UBSan; needs clang.
#
# usage: tests/fuzz.sh [SECONDS [TARGET...]]     default 600 s each, all targets of tests/fuzz
#        FUZZ_JOBS=N   number of simultaneous targets (default: number of processors)
# New corpus files are written to build/fuzz/corpus, findings to build/fuzz/findings, a log of each target to build/fuzz.
# Exit 0: no finding; 1: findings; 2: unknown target.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-600}
shift || true
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    for source in tests/fuzz/fuzz_*.c; do
        name=${source##*/fuzz_}
        targets+=("${name%.c}")
    done
fi
cmake --preset fuzz >/dev/null
for name in "${targets[@]}"; do
    [ -f "tests/fuzz/fuzz_$name.c" ] || { echo "fuzz: no target '$name'" >&2; exit 2; }
    [ -d "tests/fuzz/corpus/$name" ] || { echo "fuzz: target '$name' has no corpus in tests/fuzz/corpus" >&2; exit 2; }
    echo "fuzz_$name"
done | xargs cmake --build --preset fuzz --target
mkdir -p build/fuzz/findings
tests/fuzz/seeds.py build/fuzz/seeds
# An input of 60 bytes that announces 4 GB must be refused quickly: no fuzzed function needs so much memory.
export ASAN_OPTIONS=max_allocation_size_mb=512:allocator_may_return_null=1:quarantine_size_mb=32

# Maximum length of an input, by target; the dictionary is the file with the target's name, if it exists.
longest() {
    case $1 in
    config | sinogram) echo 16384 ;;
    journal) echo 65536 ;;
    *) echo 8192 ;;
    esac
}

run() { # run NAME: one target
    local name=$1 corpus=build/fuzz/corpus/$1 more=()
    mkdir -p "$corpus" "build/fuzz/seeds/$1"
    # DCMTK leaks lists of some refused requests, see the suppression in the target; they end with the process of the association. A leak
    # check after each input takes fifty times as long as the run itself, so it is done once at the end; the suppression then needs
    # the slow stack unwinder, which works without frame pointers.
    if [ "$name" = association ]; then
        more+=(-detect_leaks=0)
        local -x ASAN_OPTIONS=$ASAN_OPTIONS:fast_unwind_on_malloc=0
    fi
    [ ! -f "tests/fuzz/$name.dict" ] || more+=("-dict=tests/fuzz/$name.dict")
    if "build/fuzz/tests/fuzz_$name" "-max_total_time=$seconds" -rss_limit_mb=4096 -timeout=25 -print_final_stats=1 \
        "-artifact_prefix=build/fuzz/findings/$name-" "-max_len=$(longest "$name")" "${more[@]}" "$corpus" "tests/fuzz/corpus/$name" "build/fuzz/seeds/$name" \
        >"build/fuzz/$name.log" 2>&1; then
        echo "$name: no finding, $(sed -n 's/^stat::number_of_executed_units: *//p' "build/fuzz/$name.log") executions"
    else
        echo "$name: FINDING, see build/fuzz/$name.log: $(grep -m1 'SUMMARY\|ERROR' "build/fuzz/$name.log" || tail -1 "build/fuzz/$name.log")"
        return 1
    fi
}

failed=0
at_a_time=${FUZZ_JOBS:-$(nproc)}
running=()
for name in "${targets[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "$at_a_time" ]; do
        sleep 1
    done
    run "$name" &
    running+=($!)
done
for process in "${running[@]}"; do
    wait "$process" || failed=1
done
exit "$failed"
