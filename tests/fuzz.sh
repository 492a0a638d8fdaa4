#!/bin/bash
# Runs every fuzz target under ASan and UBSan, all at a time; needs clang.
#
# usage: tests/fuzz.sh [SECONDS]     default 600 s each
# What is new in a corpus stays in build/fuzz/corpus, findings in build/fuzz/findings. Exit 0: no finding.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-600}
cmake --preset fuzz
cmake --build --preset fuzz
mkdir -p build/fuzz/findings
failed=0
run() { # run NAME OPTION...: one target, its log beside its corpus
    local name=$1 corpus=build/fuzz/corpus/$1
    shift
    mkdir -p "$corpus"
    "build/fuzz/tests/fuzz_$name" -max_total_time="$seconds" -rss_limit_mb=4096 -print_final_stats=1 \
        -artifact_prefix="build/fuzz/findings/$name-" "$@" "$corpus" "tests/fuzz/corpus/$name" >"build/fuzz/$name.log" 2>&1
}
run config -max_len=16384 -dict=tests/fuzz/config.dict &
config=$!
run dicom -max_len=8192 &
dicom=$!
run mhd -max_len=8192 &
mhd=$!
run interfile -max_len=8192 -dict=tests/fuzz/interfile.dict &
interfile=$!
run sinogram -max_len=16384 &
sinogram=$!
wait "$config" || failed=1
wait "$dicom" || failed=1
wait "$mhd" || failed=1
wait "$interfile" || failed=1
wait "$sinogram" || failed=1
grep -H 'Done\|ERROR\|SUMMARY' build/fuzz/*.log || true
exit "$failed"
