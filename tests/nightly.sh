#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run the tests that take too long for every change: the whole suite under sanitizers, the soak, all hostile input, every fuzz target, the
# contract of a node with pilots of Slurm, the planted faults, fits of 50 geometries of each tomosynthesis system, and exams of each system
# for both sides and views; packages, also in a virtual machine, and image.
# Start it from cron or a timer.
#
# usage: tests/nightly.sh [MINUTES]     duration of each fuzz target and of the soak; default 30
# Writes build/nightly/SUMMARY, and a log of each step in the same folder. After a failed step the others still run.
# Exit 0: all passed (or were skipped, see the summary).
set -uo pipefail
cd "$(dirname "$0")/.." || exit
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

# suite PRESET: the whole suite. A report of any process fails its test (tests/sanitized.sh); skipped tests are listed in the summary.
suite() {
    local preset=$1 code=0
    if [ "$preset" = tsan ] && ! command -v clang >/dev/null; then
        echo "clang is not installed (deploy/install-deps.sh nightly)"
        return 77
    fi
    rm -f "build/$preset/tests.xml"
    cmake --preset "$preset" && cmake --build --preset "$preset" && ctest --preset "$preset" || code=1
    [ ! -f "build/$preset/tests.xml" ] || tests/summary.py "build/$preset/tests.xml" | sed 's/^/         /' >>"$out/SUMMARY"
    return "$code"
}

# A new release build, as installed: with -O3 the compiler finds more warnings than in the development build.
warnings() {
    cmake --preset release -B "$out/release" -DTOMONODE_WERROR=ON && cmake --build "$out/release"
}

soak() {
    [ -x tests/soak.sh ] || { echo "tests/soak.sh does not exist"; return 77; }
    tests/soak.sh --minutes "$minutes"
}

hostile() { # the program of the step `warnings`
    TOMONODE=$out/release/tomonode tests/hostile/run.py --table "$out/hostile.md"
}

fuzz() {
    command -v clang >/dev/null || { echo "clang is not installed"; return 77; }
    tests/fuzz.sh $((60 * minutes))
}

calibration() { # the programs of the steps `asan` and `warnings`
    TOMONODE_FIT_TRIALS=50 build/asan/tests/recon_test_bead_fit &&
        TOMONODE=$out/release/tomonode TOMONODE_FIT_TRIALS=10 tests/system/formats/test_profile.py
}

monitoring() { # the program of the step `warnings`; the suite skips what needs promtool and amtool where they are not installed
    command -v promtool >/dev/null && command -v amtool >/dev/null || { echo "promtool or amtool is not installed (deploy/install-deps.sh nightly)"; return 77; }
    TOMONODE=$out/release/tomonode tests/system/page/test_monitoring.py
}

systems() { # the program of the step `warnings`
    TOMONODE=$out/release/tomonode TOMONODE_SYSTEMS=all tests/system/formats/test_systems.py
}

# An upgrade from the first commit that is older than the packages: its sources are compiled. Needs the history of the repository, and root.
packages() { # the program of the step `warnings`
    local old=${TOMONODE_OLD_COMMIT:-d1a32afc} code=0
    git cat-file -e "$old^{commit}" 2>/dev/null || { echo "the commit $old is not in this clone"; return 77; }
    rm -rf "$out/packages" "$out/packages-old"
    git worktree add --force --detach "$out/old" "$old" && deploy/package.sh deb --no-cuda --source "$out/old" "$out/packages-old" &&
        deploy/package.sh deb --build "$out/release" --cuda-build "$out/release" "$out/packages" &&
        tests/package/bare_debian.sh "$out/packages-old" "$out/packages" || code=$?
    git worktree remove --force "$out/old"
    return "$code"
}

machine() { # the packages of the step `packages`
    [ -d "$out/packages-old" ] || { echo "the step packages made none"; return 77; }
    tests/package/machine.sh "$out/packages-old" "$out/packages"
}

image() { # the program of the step `warnings`
    TOMONODE_BUILD=$out/release tests/package/image.sh
}

stow() { # the program of the step `warnings`
    TOMONODE=$out/release/tomonode TOMONODE_STOW_OBJECTS=1000 tests/system/jobs/test_stow.py hostile orthanc
}

contract_slurm() { # the program of the step `asan`; 77 where Slurm cannot be installed
    TOMONODE=$PWD/build/asan/tomonode tests/cluster.sh --contract
}

export TOMONODE_TEST_SEED=${TOMONODE_TEST_SEED:-$((RANDOM * 32768 + RANDOM))} # of all random tests; without it they use 1
date -u +"%Y-%m-%dT%H:%M:%SZ $(git rev-parse --short HEAD 2>/dev/null || true) TOMONODE_TEST_SEED=$TOMONODE_TEST_SEED" >>"$out/SUMMARY"
step warnings warnings
step asan suite asan
step tsan suite tsan
step soak soak
step hostile hostile
step stow stow
step fuzz fuzz
step contract-slurm contract_slurm
step calibration calibration
step systems systems
step monitoring monitoring
step packages packages
step machine machine
step image image
step faults tests/faults/run.py
cat "$out/SUMMARY"
exit "$failed"
