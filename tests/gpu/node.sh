#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Test the whole node on a machine with a GPU: that it works in its sandbox, and loses nothing when it is killed.
#
# usage: tests/gpu/node.sh [--kills N] [--minutes M]     kills during exams of 500 MB on the GPU; default 20 kills, no time limit; 0: none
# Tests the program of the bundle that contains this script, else $TOMONODE. Needs a CUDA device and python3 with its standard library only.
# Exit 1: something failed.
set -u
kills=20 minutes=()
while [ $# -gt 1 ]; do
    case "$1" in
    --kills) kills=$2 ;;
    --minutes) minutes=(--minutes "$2") ;;
    *) break ;;
    esac
    shift 2
done
[ $# -eq 0 ] || { sed -n '5,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
top=$(cd "$(dirname "$0")/../.." && pwd)
[ ! -x "$top/bin/tomonode" ] || TOMONODE=$top/bin/tomonode
export TOMONODE=${TOMONODE:-$top/build/release/tomonode} PYTHONUNBUFFERED=1
[ ! -d /dev/shm ] || export TMPDIR=/dev/shm
failed=0

step() {
    echo "== $*"
    "$@" || { echo "FAILED: $*"; failed=1; }
}

for sandbox in off auto on; do
    step python3 "$top/tests/gpu/exam.py" --repeat 3 --sandbox $sandbox
    step python3 "$top/tests/gpu/pet.py" --repeat 3 --limit "" --sandbox $sandbox
done
step python3 "$top/tests/gpu/executors.py" --turns 3 --warm-up 1 --sandbox on
[ "$kills" = 0 ] || step python3 "$top/tests/gpu/worker_kills.py" --kills "$kills"
[ "$kills" = 0 ] || step python3 "$top/tests/soak_kill.py" --device auto --binning 1 --pacs python --kills "$kills" "${minutes[@]}"
exit $failed
