#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The life of the packages on a bare Debian 12 (mmdebstrap, as root): installation starts the node, an exam goes to an Orthanc, an upgrade from
# an older package with exams under way loses nothing and keeps the configuration, as does the way back; a newer journal is refused; a backup
# is restored as docs/disk-dies.md says; tomonode-cuda takes the place of the program; purge leaves the images. Prints sizes and times.
#
# A chroot has no systemd. Its place takes tests/package/systemctl.sh, which the packages' scripts call through Debian's deb-systemd-invoke: it
# starts what the unit names as the unit's user, without capabilities, and stops it with SIGTERM, as systemd does. The other settings of the
# unit (its sandbox, Type=notify) are not in force; systemd-analyze verifies the file.
#
# usage: tests/package/bare_debian.sh OLD NEW       folders with the packages of an older commit and of this one
set -euo pipefail
cd "$(dirname "$0")/../.."
fail() { echo "FAILED: $*" >&2; exit 1; }
[ $# -eq 2 ] || { sed -n '3,11s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ "$(id -u)" -eq 0 ] || { echo "skipped: needs root (chroot, mounts)"; exit 77; }
command -v mmdebstrap >/dev/null || { echo "skipped: mmdebstrap is not installed (deploy/install-deps.sh package)"; exit 77; }
old=$(realpath -e "$1"/tomonode_*.deb) new=$(realpath -e "$2"/tomonode_*.deb) cuda=$(realpath -e "$2"/tomonode-cuda_*.deb 2>/dev/null || true)
# A namespace of processes and one of mounts: at the end nothing is left of either.
if [ -z "${TOMONODE_BARE:-}" ]; then
    TOMONODE_BARE=$(mktemp -d)
    export TOMONODE_BARE
    trap '[ -z "${KEEP:-}" ] || cp "$TOMONODE_BARE/root/var/log/node.log" "$TOMONODE_BARE"/*.log "$KEEP/"; rm -rf --one-file-system "$TOMONODE_BARE"' EXIT
    unshare --mount --pid --fork --kill-child "$0" "$@"
    exit
fi
work=$TOMONODE_BARE bare=$TOMONODE_BARE/root
step() { echo "== $* ($SECONDS s)"; }
free_port() { /usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
inside() { chroot "$bare" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 "$@"; }
used() { du -smx "$bare" | cut -f1; }
# apt ARGUMENT...: seconds and MiB are in $took and $grew; what it said in $work/apt.log. Its questions have no answer: stdin is closed.
apt() {
    local began=$EPOCHREALTIME before
    before=$(used)
    inside apt-get -q -y -o Dpkg::Use-Pty=0 "$@" </dev/null >"$work/apt.log" 2>&1 || fail "apt-get $*: $(tail -n 30 "$work/apt.log")"
    took=$(awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }') grew=$(($(used) - before))
    inside apt-get clean
}
wait_for() { # wait_for WHAT COMMAND...
    local what=$1
    shift
    for _ in $(seq 600); do
        ! "$@" >/dev/null 2>&1 || return 0
        sleep 0.5
    done
    fail "$what: still not after 300 s. $(tail -n 20 "$bare/var/log/node.log" 2>/dev/null)"
}
list() { inside tomonode list --json; }
delivered() { list | /usr/bin/python3 -c 'import json, sys; print(sum(j["state"] == "delivered" for j in json.load(sys.stdin)["jobs"]))'; }
delivered_is() { [ "$(delivered)" = "$1" ]; }
archived() { inside curl -sf "http://127.0.0.1:$rest/statistics" | /usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)["CountInstances"])'; }
send() { # send SEED: simulate an exam and send it, again after a refusal, as modalities do
    inside tomonode simulate dbt --phantom beads --binning 2 --seed "$1" -o "/exams/$1" >/dev/null
    for _ in $(seq 60); do
        ! inside storescu -aec TOMONODE +sd +sp '*.dcm' 127.0.0.1 "$port" "/exams/$1" >/dev/null 2>&1 || return 0
        sleep 0.5
    done
    return 1
}

step "a bare Debian"
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
mmdebstrap --variant=minbase --include=systemd,systemd-sysv,ca-certificates "$suite" "$bare" >"$work/mmdebstrap.log" 2>&1 || fail "mmdebstrap: $(tail -n 20 "$work/mmdebstrap.log")"
mount -t proc proc "$bare/proc"
mount --rbind /dev "$bare/dev"
mount -t tmpfs tmpfs "$bare/run"
cp /etc/resolv.conf "$bare/etc/resolv.conf"
mkdir -p "$bare/run/systemd/system" "$bare/packages" "$bare/exams"
rm -f "$bare/usr/sbin/policy-rc.d"
cp "$old" "$bare/packages/old.deb"
cp "$new" "$bare/packages/new.deb"
[ -z "$cuda" ] || cp "$cuda" "$bare/packages/cuda.deb"
inside dpkg-divert --quiet --local --add --rename --divert /usr/bin/systemctl.real /usr/bin/systemctl
install -m 755 tests/package/systemctl.sh "$bare/usr/bin/systemctl"
echo "$(used) MiB"

step "installation"
apt update
apt install --no-install-recommends /packages/old.deb
echo "apt install: $took s, $grew MiB with its libraries"
inside systemctl is-active tomonode.service || fail "the node does not run after the installation: $(cat "$work/apt.log" "$bare/var/log/node.log")"
[ "$(inside systemctl is-enabled tomonode.service)" = enabled ] || fail "the unit is not enabled"
[ "$(inside stat -c '%U:%G %a' /var/lib/tomonode)" = "tomonode:tomonode 700" ] || fail "the spool: $(inside stat -c '%U:%G %a' /var/lib/tomonode)"
[ "$(stat -c %u "$bare/proc/$(cat "$bare/run/node.pid")")" = "$(inside id -u tomonode)" ] || fail "the node does not run as user tomonode"

step "an exam into an Orthanc"
apt install --no-install-recommends orthanc dcmtk curl
port=$(free_port) pacs=$(free_port) rest=$(free_port)
cat >"$bare/etc/tomonode/tomonode.conf" <<CONF
# The operator's own file.
node = { port = $port; retention_days = 30; };
status = { enabled = false; };
destinations = ( { name = "pacs"; aet = "ORTHANC"; host = "127.0.0.1"; port = $pacs; } );
CONF
sha256sum "$bare/etc/tomonode/tomonode.conf" >"$work/conf.sum"
echo "{ \"StorageDirectory\": \"/var/lib/orthanc/test\", \"IndexDirectory\": \"/var/lib/orthanc/test\", \"Plugins\": [], \"HttpPort\": $rest,
  \"RemoteAccessAllowed\": false, \"AuthenticationEnabled\": false, \"DicomPort\": $pacs, \"OverwriteInstances\": true }" >"$bare/etc/orthanc-test.json"
inside Orthanc /etc/orthanc-test.json >"$work/orthanc.log" 2>&1 &
wait_for "Orthanc" archived
inside systemctl restart tomonode.service || fail "the node does not start again: $(tail -n 5 "$bare/var/log/node.log")"
send 1 || fail "the exam was not accepted"
wait_for "the exam is delivered" delivered_is 1
[ "$(archived)" = 1 ] || fail "$(archived) objects in the archive, not 1"

step "upgrade with exams under way"
before=$(cat "$bare/run/node.pid")
for seed in 2 3 4; do send "$seed" || fail "exam $seed was not accepted"; done
(send 5 && send 6) & # received while the node is exchanged
senders=$!
apt install /packages/new.deb
echo "apt install of the upgrade: $took s; when the old node was stopped: $(cat "$bare/run/states")"
wait "$senders" || fail "an exam was not accepted during the upgrade"
[ "$(cat "$bare/run/node.pid")" != "$before" ] || fail "the node was not restarted"
inside systemd-analyze verify --man=no tomonode.service 2>"$work/verify" || true
! grep 'tomonode\.service' "$work/verify" || fail "systemd-analyze verify"
grep -q '[1-9]' "$bare/run/unfinished" || fail "no exam was under way at the upgrade"
wait_for "six exams are delivered" delivered_is 6
[ "$(archived)" = 6 ] || fail "$(archived) objects in the archive, not 6"
sha256sum --quiet --check "$work/conf.sum" || fail "the upgrade changed tomonode.conf"
echo "6 exams delivered, 6 objects in the archive; the node was away for $(cat "$bare/run/away") s"

step "and back"
apt install --allow-downgrades /packages/old.deb
inside systemctl is-active tomonode.service || fail "the older node does not run: $(tail -n 5 "$bare/var/log/node.log")"
delivered_is 6 || fail "the older node does not have the cases"
apt install /packages/new.deb
sha256sum --quiet --check "$work/conf.sum" || fail "the way back changed tomonode.conf"

step "a journal of a newer version"
inside systemctl stop tomonode.service
version() { /usr/bin/python3 -c 'import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute(f"PRAGMA user_version={sys.argv[2]}")' "$bare/var/lib/tomonode/journal.db" "$1"; }
version 2
! inside systemctl start tomonode.service || fail "a journal of a newer version is opened"
tail -n 1 "$bare/var/log/node.log" | grep 'has schema 2, written by a newer tomonode; this one reads up to 1' || fail "said: $(tail -n 1 "$bare/var/log/node.log")"
version 1

step "backup and restore"
apt install --no-install-recommends sqlite3
inside systemctl start tomonode.service || fail "the node does not start: $(tail -n 5 "$bare/var/log/node.log")"
delivered_is 6 || fail "cases are missing"
mkdir "$bare/backup"
inside sqlite3 /var/lib/tomonode/journal.db ".backup /backup/journal.db"
inside cp -a /var/lib/tomonode/instances /var/lib/tomonode/outbox /var/lib/tomonode/patient.key /backup/
send 7 || fail "the exam was not accepted"
wait_for "exam 7 is delivered" delivered_is 7
inside systemctl stop tomonode.service
inside sh -c 'rm -r /var/lib/tomonode/* && cp -a /backup/* /var/lib/tomonode/ && chown -R tomonode: /var/lib/tomonode' # the disk died
inside systemctl start tomonode.service || fail "the node does not start with its backup: $(tail -n 5 "$bare/var/log/node.log")"
delivered_is 6 || fail "cases are missing: $(list)"
send 7 || fail "the exam was not accepted again"
wait_for "exam 7 is delivered again" delivered_is 7
[ "$(archived)" = 7 ] || fail "$(archived) objects in the archive, not 7"

if [ -n "$cuda" ]; then
    step "tomonode-cuda"
    before=$(sha256sum <"$bare/usr/bin/tomonode") first=$(cat "$bare/run/node.pid")
    apt install /packages/cuda.deb
    echo "apt install: $took s, $grew MiB"
    [ "$(sha256sum <"$bare/usr/bin/tomonode.cpu")" = "$before" ] || fail "the program of tomonode is not kept"
    [ "$(cat "$bare/run/node.pid")" != "$first" ] || fail "the node was not restarted with the program of tomonode-cuda"
    [ "$bare/proc/$(cat "$bare/run/node.pid")/exe" -ef "$bare/usr/bin/tomonode" ] || fail "the node runs another program"
    inside tomonode devices | tee "$work/devices"
    grep -q '^no cuda ' "$work/devices" || grep -q '^cuda:0 ' "$work/devices" || fail "devices does not say whether there is a GPU"
    apt remove tomonode-cuda
    [ "$(sha256sum <"$bare/usr/bin/tomonode")" = "$before" ] && [ ! -e "$bare/usr/bin/tomonode.cpu" ] || fail "the program of tomonode is not back"
    inside systemctl is-active tomonode.service || fail "the node does not run without tomonode-cuda"
fi

step "purge"
images=$(find "$bare/var/lib/tomonode" -type f | wc -l)
apt purge tomonode
grep '^tomonode: ' "$work/apt.log"
! inside systemctl is-active tomonode.service || fail "the node still runs"
[ "$(grep -c '^tomonode: .* is kept' "$work/apt.log")" -ge 2 ] || fail "purge does not say what it leaves"
[ "$(find "$bare/var/lib/tomonode" -type f | wc -l)" -ge "$((images - 2))" ] || fail "purge removed images" # SQLite may remove its WAL and index
[ ! -e "$bare/etc/tomonode" ] && [ ! -e "$bare/usr/bin/tomonode" ] && [ ! -e "$bare/lib/systemd/system/tomonode.service" ] || fail "purge left configuration or program"
[ -z "$(find "$bare/etc/systemd" -name 'tomonode*')" ] || fail "purge left a link to the unit"
echo "all as expected ($SECONDS s)"
