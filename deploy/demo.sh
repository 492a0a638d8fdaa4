#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Demonstrate the program on one machine: send a DBT exam from a simulated modality through tomonode to an Orthanc, and check the result.
#
# usage: deploy/demo.sh [--check] [--keep DIR] [--program FILE]
#   --check         stop everything at the end; exit 0 only if the PACS contains the right object
#                   (without it node and Orthanc run until Ctrl-C, so that you can look at them)
#   --keep DIR      work in DIR and keep it (default: a temporary folder, removed at the end)
#   --program FILE  use this tomonode instead of building one
#
# Nothing outside the work folder and no server of the machine is changed: the demo starts a separate Orthanc on loopback. Ports are
# the defaults (node 11112, PACS 4242) if they are free, else other free ports.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

check_only=no keep="" program=""
while [ $# -gt 0 ]; do
    case "$1" in
    --check) check_only=yes ;;
    --keep | --program)
        [ $# -ge 2 ] || { echo "demo: $1 needs an argument" >&2; exit 2; }
        if [ "$1" = --keep ]; then keep=$2; else program=$2; fi
        shift
        ;;
    -h | --help)
        sed -n '3,13s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *)
        echo "demo: unknown argument $1 (see --help)" >&2
        exit 2
        ;;
    esac
    shift
done

step() { printf '\n== %s\n' "$*"; }
now() { date +%s.%N; }
since() { awk -v a="$1" -v b="$(now)" 'BEGIN { printf "%.1f", b - a }'; }
fail() { # fail SENTENCE [LOG]: print SENTENCE and the end of LOG, exit 1
    echo "demo: $1" >&2
    if [ -n "${2:-}" ] && [ -s "$2" ]; then
        echo "demo: last lines of $2:" >&2
        tail -n 25 "$2" | sed 's/^/    /' >&2
    fi
    exit 1
}

# --- at every exit, stop everything that was started ---------------------------------------------------------------
node_pid="" orthanc_pid="" work=""
stop() { # stop PID: send SIGTERM, and SIGKILL if it still runs after 20 s
    [ -n "$1" ] || return 0
    kill -TERM "$1" 2>/dev/null || return 0
    for _ in $(seq 200); do
        kill -0 "$1" 2>/dev/null || return 0
        sleep 0.1
    done
    kill -KILL "$1" 2>/dev/null || true
}
finish() {
    local code=$?
    trap - EXIT INT TERM HUP
    stop "$node_pid"
    stop "$orthanc_pid"
    wait 2>/dev/null || true
    if [ -n "$work" ] && [ -z "$keep" ]; then
        if [ "$code" -eq 0 ]; then rm -rf "$work"; else echo "demo: logs and files are kept in $work" >&2; fi
    fi
    exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# --- programs ----------------------------------------------------------------------------------------------------------------
started=$(now)
cd "$root"
if [ -n "$program" ]; then
    [ -x "$program" ] || fail "$program is no program"
    program=$(realpath "$program")
    deploy/install-deps.sh demo
else
    deploy/install-deps.sh build demo
fi
if [ -n "$keep" ]; then
    mkdir -p "$keep"
    work=$(realpath "$keep")
    [ -z "$(ls -A "$work")" ] || fail "the folder $work is not empty"
else
    work=$(mktemp -d "${TMPDIR:-/tmp}/tomonode-demo.XXXXXX")
fi
free_mib=$(df -Pm "$work" | awk 'NR == 2 { print $4 }')
[ "$free_mib" -ge 3000 ] || fail "$work has $free_mib MiB free; the exam, the spool and the PACS need 3000 (TMPDIR or --keep choose another place)"
if [ -z "$program" ]; then
    step "Building (build/release)"
    cmake --preset release >"$work/build.log" 2>&1 || fail "cmake could not configure the build" "$work/build.log"
    cmake --build --preset release --target tomonode -j "$(nproc)" >>"$work/build.log" 2>&1 || fail "the build failed" "$work/build.log"
    program=$root/build/release/tomonode
    echo "done in $(since "$started") s"
fi
"$program" --version

# --- ports -------------------------------------------------------------------------------------------------------------------
# free_port WANTED: print WANTED if the port is free, else any free port (WANTED 0: any)
free_port() {
    /usr/bin/python3 - "$1" <<'PY'
import socket, sys
for port in (int(sys.argv[1]), 0):
    try:
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind(("", port))
            s.listen(1)
            print(s.getsockname()[1])
            break
    except OSError:
        pass
PY
}
node_port=$(free_port 11112)
pacs_port=$(free_port 4242)
rest_port=$(free_port 8042)
conf=() whom=""
if [ "$(id -u)" -eq 0 ]; then
    whom='user = "root";' # for a demonstration in a container; give a permanent node its own user
fi
if [ -n "$whom" ] || [ "$node_port" != 11112 ] || [ "$pacs_port" != 4242 ]; then
    cat >"$work/tomonode.conf" <<CONF
# These keys replace the defaults: ports that are free on this machine, and the user of the node.
node = { port = $node_port; $whom };
destinations = ( { name = "pacs"; port = $pacs_port; } );
CONF
    conf=(-c "$work/tomonode.conf")
    [ "$node_port $pacs_port" = "11112 4242" ] || echo "A default port is in use: node on $node_port, PACS on $pacs_port (see $work/tomonode.conf)."
fi
export TOMONODE_SPOOL=$work/spool

# --- the PACS ----------------------------------------------------------------------------------------------------------------
step "Starting an Orthanc as the PACS (DICOM $pacs_port, web http://127.0.0.1:$rest_port)"
mkdir -p "$work/pacs"
# Orthanc 1.10 has no bind address: REST is limited to loopback, and objects are accepted only from this node on loopback.
cat >"$work/orthanc.json" <<JSON
{
  "Name": "tomonode demo", "StorageDirectory": "$work/pacs", "IndexDirectory": "$work/pacs", "TemporaryDirectory": "$work/pacs",
  "Plugins": [], "HttpPort": $rest_port, "RemoteAccessAllowed": false, "AuthenticationEnabled": false,
  "DicomAet": "ORTHANC", "DicomPort": $pacs_port, "DicomCheckCalledAet": true,
  "DicomAlwaysAllowEcho": false, "DicomAlwaysAllowStore": false, "DicomCheckModalityHost": true,
  "DicomModalities": { "tomonode": [ "TOMONODE", "127.0.0.1", $node_port ] }
}
JSON
Orthanc "$work/orthanc.json" >"$work/orthanc.log" 2>&1 &
orthanc_pid=$!
rest="http://127.0.0.1:$rest_port"
rest_up() { /usr/bin/python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1] + "/system", timeout=2)' "$rest" 2>/dev/null; }
for _ in $(seq 100); do
    kill -0 "$orthanc_pid" 2>/dev/null || fail "Orthanc ended" "$work/orthanc.log"
    if rest_up; then break; fi
    sleep 0.2
done
rest_up || fail "Orthanc does not answer on $rest" "$work/orthanc.log"

# --- the node ----------------------------------------------------------------------------------------------------------------
step "Starting the node (DICOM $node_port, AE title TOMONODE)"
"$program" serve "${conf[@]}" >"$work/node.log" 2>&1 &
node_pid=$!
for _ in $(seq 100); do
    kill -0 "$node_pid" 2>/dev/null || fail "the node ended" "$work/node.log"
    if echoscu -aet MODALITY -aec TOMONODE 127.0.0.1 "$node_port" >/dev/null 2>&1; then break; fi
    sleep 0.1
done
echoscu -aet MODALITY -aec TOMONODE 127.0.0.1 "$node_port" >"$work/echo.log" 2>&1 || fail "the node does not respond to C-ECHO on port $node_port" "$work/node.log"

# --- the exam ----------------------------------------------------------------------------------------------------------------
step "Simulating an exam: 25 projections of 2816 x 3584, left breast, CC"
t=$(now)
"$program" simulate dbt --system siemens-inspiration --phantom breast --side L --view CC -o "$work/exam" >"$work/simulate.log" 2>&1 ||
    fail "the simulation failed" "$work/simulate.log"
echo "$(find "$work/exam" -name '*.dcm' | wc -l) files, $(du -sm "$work/exam" | cut -f1) MiB, in $(since "$t") s"

step "Sending it with storescu, as DCMTK ships it"
send_start=$(now)
storescu -aet MODALITY -aec TOMONODE +sd +sp '*.dcm' 127.0.0.1 "$node_port" "$work/exam" >"$work/storescu.log" 2>&1 ||
    fail "storescu failed" "$work/storescu.log"
send_end=$(now)
echo "sent in $(awk -v a="$send_start" -v b="$send_end" 'BEGIN { printf "%.1f", b - a }') s"

step "Waiting for the object to reach the PACS"
state=""
deadline=$((SECONDS + ${TOMONODE_DEMO_TIMEOUT:-900}))
while :; do
    kill -0 "$node_pid" 2>/dev/null || fail "the node ended" "$work/node.log"
    "$program" list "${conf[@]}" --json >"$work/list.json" 2>"$work/list.log" || fail "tomonode list failed" "$work/list.log"
    new=$(/usr/bin/python3 "$root/deploy/check_result.py" state "$work/list.json")
    if [ "$new" != "$state" ]; then
        state=$new
        echo "$(since "$send_end") s: ${state:-no case yet}"
    fi
    case "$state" in
    *delivered) break ;;
    *held | *failed | *dead-letter | *cancelled | *quarantined) fail "the case ended as \"$state\"" "$work/node.log" ;;
    esac
    [ "$SECONDS" -lt "$deadline" ] || fail "the case is still \"$state\" after ${TOMONODE_DEMO_TIMEOUT:-900} s" "$work/node.log"
    sleep 0.5
done
job=${state%% *}
"$program" show "${conf[@]}" --json "$job" >"$work/show.json" || fail "tomonode show $job failed" "$work/node.log"

# --- the result -----------------------------------------------------------------------------------------------------------
step "Fetching it back out of the PACS, and checking"
mkdir "$work/result"
/usr/bin/python3 "$root/deploy/check_result.py" check --pacs "$rest" --exam "$work/exam" --out "$work/result" ||
    fail "the PACS does not hold the right object" "$work/node.log"

step "Where the time went"
/usr/bin/python3 "$root/deploy/check_result.py" stages --show "$work/show.json" --send-start "$send_start" --send-end "$send_end"

if [ "$check_only" = yes ]; then
    step "The demonstration succeeded: the PACS contains the expected object ($(since "$started") s in all)"
    exit 0
fi
step "What to inspect"
cat <<TEXT
pictures        $work/result/*.png
Orthanc         $rest/app/explorer.html
log of the node $work/node.log
spool           $work/spool
exam, truth     $work/exam, $work/exam/truth.json
another exam    $program simulate dbt --side R --view MLO -o DIR;  storescu -aec TOMONODE +sd +sp '*.dcm' 127.0.0.1 $node_port DIR

Node and Orthanc keep running; Ctrl-C stops them${keep:+ (the folder is kept)}.
TEXT
wait -n "$node_pid" "$orthanc_pid" || true
fail "node or Orthanc ended" "$work/node.log"
