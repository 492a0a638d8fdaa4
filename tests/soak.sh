#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Long forms of the tests of the node's guarantees (docs/reliability.md): killed processes, full disks, frozen and broken peers, many
# associations, power cuts, and the exams of a day in quick succession.
#
# usage: tests/soak.sh [--minutes N] [--kills N] [--full N] [--exams N] [--sweep] [--crowd] [--peers] [--damage N] [--power N] [--seed S]
#        --minutes N  all parts below, each for its share of N minutes
#        --kills N    kill -9 of any process at every event of the journal and at random bytes, N times for each of: tomosynthesis, PET with time
#                     of flight, raw data of an mMR
#        --full N     kill -9 at random moments of exams of 500 MB, N times, with Orthanc as the PACS if it is installed
#        --exams N    N small exams in quick succession through one daemon
#        --sweep      full disk: at every block of an object of 1 MB and of raw data of PET, within one of 20 MB, in the last bytes, while journal
#                     and result are written
#        --crowd      a hundred associations of ten images
#        --peers      throughput while one peer is frozen and another sends a byte now and then
#        --damage N   damaged rows and files, and jumps of the clock, N times, each time with a different seed
#        --power N    power cuts computed from the recorded calls of a node: all states judged, a node started on N of them
# Program: $TOMONODE, else build/release/tomonode; its build folder: $TOMONODE_BUILD, else the folder of the program.
# Prints the seeds and a table of the parts. Exit code 1 if a part failed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
TOMONODE=$(realpath "${TOMONODE:-build/release/tomonode}")
export TOMONODE TOMONODE_BUILD="${TOMONODE_BUILD:-$(dirname "$TOMONODE")}"
[ -x "$TOMONODE" ] || { echo "tests/soak.sh: no $TOMONODE: build it, or set TOMONODE" >&2; exit 2; }

export TOMONODE_TEST_SEED=${TOMONODE_TEST_SEED:-random} # of the parts, unless --seed; each prints its own
export TOMONODE_TIER=2
parts=() # NAME|SCRIPT AND ITS OPTIONS, or NAME|test_FILE and variables of its long form
share() { awk -v m="$1" -v s="$2" 'BEGIN { printf "%.2f", m * s }'; }
add() { parts+=("$1|$2"); }
number() { [[ "${2:-}" =~ ^[0-9]+$ ]] || { echo "tests/soak.sh: $1 needs a number" >&2; exit 2; }; }
sweep() { add "disk full" "test_contract_disk TOMONODE_STEP=4096 TOMONODE_COARSE=64 TOMONODE_RESULTS=24 ${1:-}"; }
while [ $# -gt 0 ]; do
    case "$1" in
    --seed) number "$@"; TOMONODE_TEST_SEED=$2; shift ;;
    --minutes)
        number "$@"
        add "kill -9" "test_contract_kill TOMONODE_KILLS=1000000 TOMONODE_MINUTES=$(share "$2" 0.075)" # each of four tests
        add "kill -9, Orthanc" "soak_kill.py --kills 1000000 --minutes $(share "$2" 0.05)"
        sweep "TOMONODE_MINUTES=$(share "$2" 0.05)"
        add "crowd" "test_contract_many TOMONODE_IMAGES=10"
        add "peers" "test_contract_peers TOMONODE_ROUNDS=4"
        add "damage" "test_contract_damage"
        add "clock" "test_contract_clock"
        add "power cuts" "test_contract_power TOMONODE_CUTS=1000000 TOMONODE_MINUTES=$(share "$2" 0.1)"
        add "a day" "soak_day.py --exams 10000 --minutes $(share "$2" 0.3)"
        shift
        ;;
    --kills) number "$@"; add "kill -9" "test_contract_kill TOMONODE_KILLS=$2"; shift ;;
    --full) number "$@"; add "kill -9, full exams" "soak_kill.py --binning 1 --kills $2"; shift ;;
    --exams) number "$@"; add "a day" "soak_day.py --exams $2"; shift ;;
    --power) number "$@"; add "power cuts" "test_contract_power TOMONODE_CUTS=$2"; shift ;;
    --sweep) sweep ;;
    --crowd) add "crowd" "test_contract_many TOMONODE_IMAGES=10" ;;
    --peers) add "peers" "test_contract_peers TOMONODE_ROUNDS=10" ;;
    --damage)
        number "$@"
        for ((i = 1; i <= $2; i++)); do
            add "damage $i" "test_contract_damage"
            add "clock $i" "test_contract_clock"
        done
        shift
        ;;
    -h | --help)
        sed -n '3,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0"
        exit 0
        ;;
    *)
        echo "tests/soak.sh: unknown option $1" >&2
        exit 2
        ;;
    esac
    shift
done
[ ${#parts[@]} -gt 0 ] || { echo "tests/soak.sh: no part selected, see tests/soak.sh --help" >&2; exit 2; }

failed=0
summary=()
for part in "${parts[@]}"; do
    read -r -a command <<< "${part#*|}"
    echo "==== ${part%%|*}: ${command[*]}"
    began=$(date +%s)
    case ${command[0]} in
    *.py) "tests/${command[0]}" "${command[@]:1}" ;;
    *) env "${command[@]:1}" /usr/bin/python3 -m pytest -n0 -s --timeout=0 "tests/system/${command[0]}.py" ;;
    esac
    code=$?
    case $code in
    0) how=passed ;;
    77) how=skipped ;;
    *)
        how="FAILED ($code)"
        failed=1
        ;;
    esac
    summary+=("$(printf '%-24s %-12s %6d s' "${part%%|*}" "$how" $(($(date +%s) - began)))")
done
echo
echo "==== summary"
printf '%s\n' "${summary[@]}"
exit $failed
