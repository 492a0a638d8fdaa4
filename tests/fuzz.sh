#!/bin/bash
# Runs the fuzz targets under ASan and UBSan; needs clang.
#
# usage: tests/fuzz.sh [SECONDS [TARGET...]]     default 600 s each, all targets of tests/fuzz
#        FUZZ_JOBS=N   so many at a time (default: as many as there are processors)
# What is new in a corpus stays in build/fuzz/corpus, findings in build/fuzz/findings, each target's log beside them.
# Exit 0: no finding; 1: findings; 2: a target that is not there.
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
# A length of 4 GB in 60 bytes of input is a refusal, and should be a quick one: nothing that is fuzzed needs so much.
export ASAN_OPTIONS=max_allocation_size_mb=512:allocator_may_return_null=1:quarantine_size_mb=32

# How long an input may be, by target; the dictionary is the file of its name, where there is one.
longest() {
    case $1 in
    config | sinogram) echo 16384 ;;
    journal) echo 65536 ;;
    *) echo 8192 ;;
    esac
}

run() { # run NAME: one target
    local name=$1 corpus=build/fuzz/corpus/$1 more=()
    mkdir -p "$corpus"
    # DCMTK forgets lists of some refused requests, see the suppression in the target: an association is a process, they end with it. Looking
    # for leaks after each of them costs fifty times the run itself, so it is done once at the end; and only the slow way of walking the
    # stack, which needs no frame pointers, tells there whose they are.
    if [ "$name" = association ]; then
        more+=(-detect_leaks=0)
        local -x ASAN_OPTIONS=$ASAN_OPTIONS:fast_unwind_on_malloc=0
    fi
    [ ! -f "tests/fuzz/$name.dict" ] || more+=("-dict=tests/fuzz/$name.dict")
    if "build/fuzz/tests/fuzz_$name" "-max_total_time=$seconds" -rss_limit_mb=4096 -timeout=25 -print_final_stats=1 \
        "-artifact_prefix=build/fuzz/findings/$name-" "-max_len=$(longest "$name")" "${more[@]}" "$corpus" "tests/fuzz/corpus/$name" \
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
