#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tier 2: the tests that take too long for every change (tests/README.md). Start it from cron or a timer.
#
# usage: tests/nightly.sh [MINUTES [STEP...]]     MINUTES: duration of each fuzz target and of the soak; default 30. STEP: only these
#        warnings  a release build, as installed: with -O3 the compiler finds more warnings than in the development build
#        suite     all tests of both tiers, with that build
#        asan, tsan  tier 1 with sanitizers; a report of any process fails its test
#        soak, fuzz, cluster (Slurm), packages, machine (a virtual one), image, faults (planted)
# Writes build/nightly/SUMMARY, and a log of each step in the same folder. After a failed step the others still run.
# Exit 0: all passed (or were skipped, see the summary).
set -uo pipefail
cd "$(dirname "$0")/.." || exit
minutes=${1:-30}
shift || true
steps=("$@")
[ $# -gt 0 ] || steps=(warnings suite asan tsan soak fuzz cluster packages machine image faults)
out=build/nightly
mkdir -p "$out"
: >"$out/SUMMARY"
failed=0
release=$PWD/build/release

step() { # step NAME: exit 77 of its function is "skipped"
    local name=$1 began=$SECONDS code
    "$name" >"$out/$name.log" 2>&1
    code=$?
    case $code in
    0) echo "ok       $name ($((SECONDS - began)) s)" ;;
    77) echo "skipped  $name: $(tail -1 "$out/$name.log")" ;;
    *) echo "FAILED   $name, code $code ($((SECONDS - began)) s): $out/$name.log" ;;
    esac | tee -a "$out/SUMMARY"
    [ "$code" -eq 0 ] || [ "$code" -eq 77 ] || failed=1
}

tests_of() { # tests_of PRESET TIER: what was skipped goes into the summary
    local code=0
    tests/run.sh "$1" --tier "$2" || code=1
    sed -n '/^Skipped/,$p' "$out/${FUNCNAME[1]}.log" | sed 's/^/         /' >>"$out/SUMMARY"
    return "$code"
}

have() { # have PROGRAM...
    local program
    for program in "$@"; do
        command -v "$program" >/dev/null || { echo "$program is not installed (deploy/install-deps.sh nightly)"; return 77; }
    done
}

warnings() { cmake --preset release -DTOMONODE_WERROR=ON && cmake --build --preset release; }
suite() { TOMONODE_STOW_OBJECTS=1000 TOMONODE_FIT_TRIALS=10 tests_of release 2; }
asan() { tests_of asan 1; }
tsan() { have clang && tests_of tsan 1; }
soak() { TOMONODE=$release/tomonode tests/soak.sh --minutes "$minutes"; }
fuzz() { have clang && tests/fuzz.sh $((60 * minutes)); }
cluster() { TOMONODE=$release/tomonode tests/cluster.sh && TOMONODE=$release/tomonode tests/cluster.sh --contract; }

# An upgrade from the first commit that is older than the packages: its sources are compiled. Needs the history of the repository, and root.
packages() {
    local old=${TOMONODE_OLD_COMMIT:-d1a32afc} code=0
    git cat-file -e "$old^{commit}" 2>/dev/null || { echo "the commit $old is not in this clone"; return 77; }
    rm -rf "$out/packages" "$out/packages-old" "$out/old" # the last: of a run that was ended
    git worktree prune
    git worktree add --force --detach "$out/old" "$old" && deploy/package.sh deb --no-cuda --source "$out/old" "$out/packages-old" &&
        deploy/package.sh deb --build "$release" --cuda-build "$release" "$out/packages" &&
        tests/package/bare_debian.sh "$out/packages-old" "$out/packages" || code=$?
    git worktree remove --force "$out/old"
    return "$code"
}

machine() { # the packages of the step `packages`
    [ -d "$out/packages-old" ] || { echo "the step packages made none"; return 77; }
    tests/package/machine.sh "$out/packages-old" "$out/packages"
}

image() { TOMONODE_BUILD=$release tests/package/image.sh; }
faults() { tests/faults/run.py; }

export TOMONODE_TEST_SEED=${TOMONODE_TEST_SEED:-$((RANDOM * 32768 + RANDOM))} # of all random tests; without it they use 1
date -u +"%Y-%m-%dT%H:%M:%SZ $(git rev-parse --short HEAD 2>/dev/null || true) TOMONODE_TEST_SEED=$TOMONODE_TEST_SEED" >>"$out/SUMMARY"
for name in "${steps[@]}"; do
    declare -F "$name" >/dev/null || { echo "tests/nightly.sh: no step $name" >&2; exit 2; }
    step "$name"
done
cat "$out/SUMMARY"
exit "$failed"
