#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The packages on a Debian 12 with its own kernel and systemd, in a virtual machine (qemu; as root): installation starts the unit, all of whose
# restrictions are in force; exams go to an Orthanc; an upgrade, a reboot and a power cut (qemu is killed) with cases under way lose and
# double nothing; purge leaves the images. Emulated it takes about a quarter of an hour; ACCEL=kvm where the machine has KVM.
#
# usage: tests/package/machine.sh OLD NEW       folders with the packages of an older commit and of this one
set -euo pipefail
cd "$(dirname "$0")/../.."
fail() { echo "FAILED: $*" >&2; exit 1; }
[ $# -eq 2 ] || { sed -n '3,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ "$(id -u)" -eq 0 ] || { echo "skipped: needs root (mmdebstrap)"; exit 77; }
for program in qemu-system-x86_64 mmdebstrap mke2fs ssh; do
    command -v "$program" >/dev/null || { echo "skipped: $program is not installed (deploy/install-deps.sh package nightly)"; exit 77; }
done
old=$(realpath -e "$1"/tomonode_*.deb) new=$(realpath -e "$2"/tomonode_*.deb)
work=$(mktemp -d) machine=""
trap '[ -z "$machine" ] || kill -KILL "$machine"; [ -z "${KEEP:-}" ] || cp "$work"/*.log "$KEEP/"; rm -rf "$work"' EXIT
port=$(/usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
step() { echo "== $* ($SECONDS s)"; }
inside() { ssh -q -i "$work/key" -p "$port" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o ConnectTimeout=20 -o BatchMode=yes root@127.0.0.1 "$@"; }
wait_for() { # wait_for WHAT COMMAND...
    local what=$1 end=$((SECONDS + 600))
    shift
    while [ "$SECONDS" -lt "$end" ]; do
        ! "$@" >/dev/null 2>&1 || return 0
        sleep 1
    done
    fail "$what: still not after 600 s: $(inside 'tomonode list; journalctl --no-pager -n 20 -u tomonode' 2>&1 || tail -n 20 "$work/console.log")"
}
boot() {
    qemu-system-x86_64 -accel "${ACCEL:-tcg,thread=multi}" -cpu max -smp 2 -m 2048 -kernel "$work/vmlinuz" -initrd "$work/initrd" -append "root=/dev/vda rw console=ttyS0 net.ifnames=0" \
        -drive "file=$work/disk,format=raw,if=virtio" -nic "user,model=virtio-net-pci,restrict=on,hostfwd=tcp:127.0.0.1:$port-:22" -device virtio-rng-pci \
        -display none -monitor none -serial "file:$work/console.log" </dev/null >"$work/qemu.log" 2>&1 &
    machine=$!
    wait_for "the machine starts" inside true
}
delivered_is() { [ "$(inside tomonode list --json | /usr/bin/python3 -c 'import json, sys; print(sum(j["state"] == "delivered" for j in json.load(sys.stdin)["jobs"]))')" = "$1" ]; }
archived() { inside curl -sf http://127.0.0.1:8042/statistics | /usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)["CountInstances"])'; }
send() { # send SEED: simulate an exam and send it
    inside "tomonode simulate dbt --phantom beads --binning 8 --seed $1 -o /exams/$1 && storescu -aec TOMONODE +sd +sp '*.dcm' 127.0.0.1 11112 /exams/$1" >"$work/send.log" 2>&1 ||
        fail "exam $1 was not accepted: $(tail -n 3 "$work/send.log")"
}
all_delivered() { # all_delivered N: every case is delivered, and the archive has an object of each
    inside systemctl start orthanc
    wait_for "$1 cases are delivered" delivered_is "$1"
    [ "$(archived)" = "$1" ] || fail "$(archived) objects in the archive, not $1"
}

step "a machine"
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
ssh-keygen -q -t ed25519 -N '' -f "$work/key"
mmdebstrap --variant=important --include=linux-image-amd64,systemd-sysv,dbus,ifupdown,openssh-server,orthanc,dcmtk,curl,ca-certificates "$suite" "$work/root" >"$work/mmdebstrap.log" 2>&1 ||
    fail "mmdebstrap: $(tail -n 20 "$work/mmdebstrap.log")"
mkdir -p "$work/root/root/.ssh" "$work/root/packages" "$work/root/exams"
cp "$work/key.pub" "$work/root/root/.ssh/authorized_keys"
cp "$old" "$work/root/packages/old.deb"
cp "$new" "$work/root/packages/new.deb"
printf 'auto eth0\niface eth0 inet dhcp\n' >>"$work/root/etc/network/interfaces"
printf '/dev/vda / ext4 defaults 0 1\n' >"$work/root/etc/fstab"
for package in old new; do # the machine has no network
    chroot "$work/root" sh -c "apt-get -q update && apt-get -q -y --download-only --no-install-recommends install /packages/$package.deb" >"$work/apt.log" 2>&1 || fail "$(tail "$work/apt.log")"
done
cp "$work"/root/boot/vmlinuz-* "$work/vmlinuz"
cp "$work"/root/boot/initrd.img-* "$work/initrd"
mke2fs -q -t ext4 -d "$work/root" "$work/disk" 6G
rm -r "$work/root"
boot

step "installation"
inside 'DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install /packages/old.deb </dev/null' >"$work/apt.log" 2>&1 || fail "apt-get install: $(tail -n 20 "$work/apt.log")"
[ "$(inside systemctl is-active tomonode) $(inside systemctl is-enabled tomonode)" = "active enabled" ] || fail "the node does not run after the installation"
inside "cat >>/etc/tomonode/tomonode.conf" <<'CONF'
protocols = ( { name = "dbt-osem"; voxel = 2.0; slice_spacing = 5.0; } );
CONF
inside systemctl reload tomonode
send 1
all_delivered 1

step "upgrade with cases under way"
inside systemctl stop orthanc # so that no case ends before
send 2 && send 3
inside 'DEBIAN_FRONTEND=noninteractive apt-get -q -y install /packages/new.deb </dev/null' >"$work/apt.log" 2>&1 || fail "apt-get install: $(tail -n 20 "$work/apt.log")"
inside 'journalctl -o short-unix -u tomonode' | awk '/: Stopping/ { a = $1 } /: Started/ { b = $1 } END { printf "away for %.1f s\n", b - a }'
delivered_is 1 || fail "no case was under way"
inside 'cat /proc/$(systemctl show -P MainPID tomonode)/status' | grep -qx $'CapEff:\t0000000000000000' || fail "the node has capabilities"
[ "$(inside systemctl show -P OOMPolicy tomonode)" = continue ] || fail "systemd ends the node when a worker is killed for lack of memory"
inside journalctl -b -u tomonode | grep 'sandbox mode=' | tail -1

step "reboot with cases under way"
send 4
boots=$(inside cat /proc/sys/kernel/random/boot_id)
inside systemctl reboot || true
rebooted() { [ "$(inside cat /proc/sys/kernel/random/boot_id)" != "$boots" ] && inside systemctl is-active tomonode; }
wait_for "the node runs after a reboot" rebooted
inside systemctl stop orthanc
send 5

step "power cut with cases under way"
kill -KILL "$machine"
wait "$machine" || true
boot
wait_for "the node runs after a power cut" inside systemctl is-active tomonode
all_delivered 5
! inside journalctl -p crit -u tomonode -q | grep . || fail "critical messages"

step "purge"
images=$(inside 'find /var/lib/tomonode/instances -type f | wc -l')
inside 'DEBIAN_FRONTEND=noninteractive apt-get -q -y purge tomonode </dev/null' >"$work/apt.log" 2>&1 || fail "apt-get purge: $(tail -n 20 "$work/apt.log")"
grep '^tomonode: ' "$work/apt.log"
[ "$(inside 'find /var/lib/tomonode/instances -type f | wc -l')" = "$images" ] || fail "purge removed images"
! inside 'ls -d /etc/tomonode /usr/bin/tomonode /etc/systemd/system/*/tomonode*' 2>/dev/null || fail "purge left configuration, program or links"
inside systemctl poweroff || true
echo "all as expected ($SECONDS s)"
