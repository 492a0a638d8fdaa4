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

# contract MODULE [TEST ...]
contract() {
    local module=$1
    shift
    echo "== $module with pilots of Slurm"
    TOMONODE_EXECUTOR=slurm "tests/system/$module" "$@" || failed=1
}

if [ "${1:-}" = --contract ]; then
    for module in tests/system/test_contract_*.py tests/system/test_kill.py; do
        contract "$(basename "$module")"
    done
    exit $failed
fi
for module in tests/system/cluster/test_*.py; do
    echo "== $module"
    if [ $# -gt 0 ]; then
        names=()
        for name in "$@"; do
            ! grep -q "^def $name(" "$module" || names+=("$name")
        done
        [ ${#names[@]} -gt 0 ] || continue
        "$module" "${names[@]}" || failed=1
    else
        "$module" || failed=1
    fi
done
if [ $# -eq 0 ]; then
    contract test_contract_damage.py
    contract test_contract_kill.py killed_at_every_event_and_at_random_bytes killed_while_several_are_in_work
    contract test_contract_disk.py full_under_journal_and_result
    contract formats/test_pet_scatter.py results_of_one_exam
fi
exit $failed
