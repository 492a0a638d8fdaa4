#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Test a node with a Slurm cluster on this machine: Debian's packages, one controller, three node daemons, all in folders of their own.
#
# usage: tests/cluster.sh [TEST ...]     names of tests in tests/system/cluster/; default: all, and some of the contract of a node
#        tests/cluster.sh --contract      all tests of the contract, with pilots of Slurm instead of local workers
# Installs what it needs (as root, with apt-get); starts and stops everything; stops it also after a failure. The services of the
# packages are not started. TOMONODE: the program; default: build/dev/tomonode. Exit 0: all passed; 77: Slurm cannot be installed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
packages=(slurmctld slurmd slurm-client munge dcmtk orthanc python3-pydicom python3-numpy)
export TOMONODE=${TOMONODE:-$PWD/build/dev/tomonode} TOMONODE_SOURCE=$PWD
export TOMONODE_BUILD=${TOMONODE_BUILD:-$(dirname "$TOMONODE")} # its tests/pilot_hello
PATH=$PATH:/usr/sbin

missing() {
    local program
    for program in slurmctld slurmd sbatch munged storescu Orthanc; do
        command -v "$program" >/dev/null || return 0
    done
    return 1
}

# Slurm and munge are needed as programs only: policy-rc.d keeps the packages from starting them.
install() {
    local policy=/usr/sbin/policy-rc.d code own=no
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    if [ ! -e $policy ]; then
        own=yes
        printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy
    fi
    apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -yq --no-install-recommends "${packages[@]}"
    code=$?
    [ $own = no ] || rm -f $policy
    return $code
}

if missing && ! install >/dev/null; then
    echo "skipped: Slurm, munge, DCMTK or Orthanc is missing, and they cannot be installed here (root and apt-get are needed)"
    exit 77
fi
[ -x "$TOMONODE" ] || { echo "$TOMONODE does not exist: build it first" >&2; exit 1; }
failed=0

# run FILE [OPTION ...]
run() {
    echo "== $*"
    "${python[@]}" "tests/system/$1" "${@:2}" || failed=1
}

python=(/usr/bin/python3 -m pytest -n0)
export TOMONODE_TIER=2
if [ "${1:-}" = --contract ]; then
    export TOMONODE_EXECUTOR=slurm
    for module in tests/system/test_contract_*.py; do
        run "$(basename "$module")"
    done
    tests/soak_kill.py || failed=1
    exit $failed
fi
if [ $# -gt 0 ]; then
    names=$*
    run cluster -k "${names// / or }"
    exit $failed
fi
run cluster
export TOMONODE_EXECUTOR=slurm
run test_contract_damage.py
run test_contract_kill.py -k "at_every_event or while_several_are_in_work"
run test_contract_disk.py -k full_under_journal_and_result
run formats/test_pet_scatter.py -k results_of_one_exam
exit $failed
