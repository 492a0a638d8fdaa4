#!/bin/bash
# What is too long for every change: the sanitizers over the whole suite, the soak, every fuzz target. Run it from cron or a timer.
#
# usage: tests/nightly.sh [MINUTES]     of each fuzz target and of the soak; default 30
# Writes build/nightly/SUMMARY and a log for each step beside it. A step that fails does not keep the others from running.
# Exit 0: all passed (or were skipped, which the summary says).
set -uo pipefail
cd "$(dirname "$0")/.."
minutes=${1:-30}
out=build/nightly
mkdir -p "$out"
: >"$out/SUMMARY"
failed=0

step() { # step NAME COMMAND...: exit 77 is "skipped"
    local name=$1 began=$SECONDS code
    shift
    "$@" >"$out/$name.log" 2>&1
    code=$?
    case $code in
    0) echo "ok       $name ($((SECONDS - began)) s)" ;;
    77) echo "skipped  $name: $(tail -1 "$out/$name.log")" ;;
    *)
        echo "FAILED   $name, code $code ($((SECONDS - began)) s): $out/$name.log"
        failed=1
        ;;
    esac | tee -a "$out/SUMMARY"
    [ "$code" -eq 0 ] || [ "$code" -eq 77 ] || failed=1
}

suite() { # suite PRESET [CTEST-OPTION...]
    local preset=$1
    shift
    cmake --preset "$preset" && cmake --build --preset "$preset" && ctest --preset "$preset" --output-on-failure "$@"
}

soak() {
    [ -x tests/soak.sh ] || { echo "tests/soak.sh is not there"; return 77; }
    tests/soak.sh --minutes "$minutes"
}

fuzz() {
    command -v clang >/dev/null || { echo "clang is not installed"; return 77; }
    tests/fuzz.sh $((60 * minutes))
}

date -u +"%Y-%m-%dT%H:%M:%SZ $(git rev-parse --short HEAD 2>/dev/null || true)" >>"$out/SUMMARY"
step asan suite asan
# The unit tests of node/ and dicom/, and the system tests of a running node: where there are threads.
step tsan env TSAN_OPTIONS="suppressions=$PWD/tests/tsan.supp halt_on_error=0 exitcode=66" \
    bash -c 'cmake --preset tsan && cmake --build --preset tsan && ctest --preset tsan --output-on-failure -R "^(node|dicom|recon)/|system/test_(serve|receive|slots|audit|contract)"'
step soak soak
step fuzz fuzz
cat "$out/SUMMARY"
exit "$failed"
