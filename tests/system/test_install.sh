#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Check `cmake --install`: files are in the right folders for each prefix, the program runs from there, and systemd, rsyslog and logrotate
# (if installed) accept their files.
set -euo pipefail
work=$(mktemp -d)
node=""
cleanup() {
    [ -z "$node" ] || kill -9 "$node" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
command -v cmake >/dev/null || { echo "skipped: cmake is not installed"; exit 77; }

install_to() { # install_to FOLDER PREFIX
    DESTDIR=$1 cmake --install "$TOMONODE_BUILD" --prefix "$2" >"$work/log" 2>&1 || fail "cmake --install --prefix $2: $(tail -3 "$work/log")"
}
holds() { # holds FOLDER FILE...
    local folder=$1 file
    shift
    for file in "$@"; do
        [ -f "$folder$file" ] || fail "there is no $file"
    done
}

# Paths: with prefix /usr the configuration is in /etc; with other prefixes below the prefix.
install_to "$work/usr" /usr
holds "$work/usr" /usr/bin/tomonode /etc/tomonode/tomonode.conf /etc/tomonode/defaults.conf /usr/lib/systemd/system/tomonode.service \
    /usr/lib/sysusers.d/tomonode.conf /usr/lib/tmpfiles.d/tomonode.conf /usr/share/doc/tomonode/docs/deployment.md \
    /usr/share/doc/tomonode/examples/rsyslog-tomonode.conf /usr/share/doc/tomonode/examples/logrotate-tomonode \
    /usr/share/doc/tomonode/examples/cpu-only.conf /usr/share/man/man1/tomonode.1 /usr/share/man/man1/tomonode-recon.1 \
    /usr/share/man/man1/tomonode-simulate-pet.1 /usr/share/bash-completion/completions/tomonode /usr/share/zsh/site-functions/_tomonode
[ ! -e "$work/usr/usr/etc" ] || fail "the configuration is in /usr/etc"
install_to "$work/local" /usr/local
holds "$work/local" /usr/local/bin/tomonode /usr/local/etc/tomonode/tomonode.conf /usr/local/lib/systemd/system/tomonode.service
[ ! -e "$work/local/etc" ] || fail "with prefix /usr/local something lies in /etc"
for root in usr local; do
    unit=$(find "$work/$root" -name tomonode.service)
    ! grep -n '@[a-z]*@' "$unit" || fail "the unit for $root has a place that was not filled in"
    grep -oE '^Exec[A-Za-z]*=/[^ ]*|-c /[^ ]*|file:///[^ ]*' "$unit" | sed -E 's/^(Exec[A-Za-z]*=|-c |file:\/\/)//' | sort -u >"$work/named"
    [ "$(grep -vc '^/bin/sh$' "$work/named")" -ge 3 ] || fail "the unit for $root names too little: $(cat "$work/named")"
    while IFS= read -r file; do
        [ -e "$work/$root$file" ] || [ "$file" = /bin/sh ] || fail "the unit for $root names $file, which is not installed"
    done <"$work/named"
done

# The operator's file is not overwritten.
echo '# mine' >"$work/usr/etc/tomonode/tomonode.conf"
install_to "$work/usr" /usr
grep -q '^# mine$' "$work/usr/etc/tomonode/tomonode.conf" || fail "an upgrade replaced tomonode.conf"

# The program runs from there, and commands read the installed configuration by default.
unset TOMONODE_CONF
for program in "$work/usr/usr/bin/tomonode" "$work/local/usr/local/bin/tomonode"; do
    etc=$work/local/usr/local/etc
    [ "${program#"$work/local"}" != "$program" ] || etc=$work/usr/etc
    echo "node = { spool = \"$work/empty-spool\"; };" >"$etc/tomonode/tomonode.conf"
    "$program" check >"$work/out" || fail "check without -c"
    grep -q "^$etc/tomonode/tomonode.conf: no problems" "$work/out" || fail "check without -c read: $(head -1 "$work/out")"
    "$program" list 2>&1 | grep -q "^tomonode list: $work/empty-spool has no journal.*$etc/tomonode/tomonode.conf" ||
        fail "list without -c: $("$program" list 2>&1)"
    rm "$etc/tomonode/tomonode.conf"
    "$program" check | grep -q '^embedded defaults: ' || fail "check without -c and without a file"
done
program=$work/usr/usr/bin/tomonode
"$program" --version >/dev/null || fail "the installed program does not run"
install_to "$work/local" /usr/local
"$program" check -c "$work/local/usr/local/etc/tomonode/tomonode.conf" >/dev/null || fail "the installed tomonode.conf has problems"
user=""
[ "$(id -u)" -ne 0 ] || user='user = "root";'
echo "node = { port = 0; spool = \"$work/spool\"; device = \"cpu\"; $user }; status = { enabled = false; };" >"$work/node.conf"
"$program" serve -c "$work/node.conf" 2>"$work/node.log" &
node=$!
for _ in $(seq 300); do
    ! grep -q ' device-ready ' "$work/node.log" || break
    kill -0 "$node" 2>/dev/null || fail "the installed node ended: $(cat "$work/node.log")"
    sleep 0.2
done
grep -q ' device-ready ' "$work/node.log" || fail "the installed node has no device: $(cat "$work/node.log")"
kill "$node"
wait "$node" || fail "the installed node did not stop cleanly"
node=""

# systemd checks the unit. The system calls that the node's sandbox needs are not in @system-service of every systemd.
for call in landlock_create_ruleset landlock_add_rule landlock_restrict_self seccomp; do
    grep -q "^SystemCallFilter=.*$call" "$unit" || fail "the unit forbids $call, so that the node cannot limit its processes"
done
grep -qx 'OOMPolicy=continue' "$unit" || fail "the unit ends the whole node when the kernel kills a worker for lack of memory"
! grep '^ExecStartPre=.*check' "$unit" || fail "the unit does not start a node that has a certificate out of date (see test_environment)"
if command -v systemd-analyze >/dev/null; then
    sed "s|=/usr/bin/tomonode|=$program|" "$work/usr/usr/lib/systemd/system/tomonode.service" >"$work/tomonode.service"
    systemd-analyze verify --man=no "$work/tomonode.service" >"$work/out" 2>&1 || true
    ! grep 'tomonode\.service' "$work/out" || fail "systemd-analyze verify"
    systemd-analyze security --offline=yes "$work/tomonode.service" >"$work/out" 2>&1 || fail "systemd-analyze security: $(tail -3 "$work/out")"
    exposure=$(sed -nE 's/.*Overall exposure level[^:]*: ([0-9.]+).*/\1/p' "$work/out")
    awk -v e="$exposure" 'BEGIN { exit !(e > 0 && e < 3) }' || fail "systemd-analyze security: exposure $exposure, not below 3"
    echo "exposure $exposure"
else
    echo "skipped: the unit by systemd's own judgement: systemd-analyze is not installed"
fi
if command -v systemd-sysusers >/dev/null && [ "$(id -u)" -eq 0 ]; then
    systemd-sysusers --root="$work/usr" >"$work/out" 2>&1 || fail "systemd-sysusers: $(cat "$work/out")"
    grep -q '^tomonode:.*:/var/lib/tomonode:/usr/sbin/nologin$' "$work/usr/etc/passwd" || fail "no user: $(cat "$work/out")"
    systemd-tmpfiles --root="$work/usr" --create "$work/usr/usr/lib/tmpfiles.d/tomonode.conf" >"$work/out" 2>&1 ||
        fail "systemd-tmpfiles: $(cat "$work/out")"
    [ "$(stat -c %a "$work/usr/var/lib/tomonode")" = 700 ] || fail "the spool's folder is open to others"
else
    echo "skipped: user and folders: needs root and systemd-sysusers"
fi
# LogsDirectory= changes the owner of an existing folder, and of every file in it, to the node's user: so tmpfiles must agree with the unit,
# and the files of syslog must be elsewhere.
examples=$work/usr/usr/share/doc/tomonode/examples
grep -q '^d /var/log/tomonode 0750 tomonode tomonode ' "$work/usr/usr/lib/tmpfiles.d/tomonode.conf" || fail "tmpfiles and unit disagree"
! grep -n '/var/log/tomonode/' "$examples/rsyslog-tomonode.conf" "$examples/logrotate-tomonode" || fail "syslog's files are the node's"
if command -v rsyslogd >/dev/null; then
    { echo 'module(load="imuxsock")'; cat "$examples/rsyslog-tomonode.conf"; } >"$work/rsyslog.conf"
    rsyslogd -N1 -f "$work/rsyslog.conf" >"$work/out" 2>&1 || fail "rsyslog: $(cat "$work/out")"
    ! grep -i error "$work/out" || fail "rsyslog"
else
    echo "skipped: the example for rsyslog: rsyslogd is not installed"
fi
if command -v logrotate >/dev/null && [ "$(id -u)" -eq 0 ]; then
    install -m 644 "$examples/logrotate-tomonode" "$work/logrotate.conf"
    logrotate -d -s "$work/state" "$work/logrotate.conf" >"$work/out" 2>&1 || fail "logrotate: $(cat "$work/out")"
    ! grep '^error' "$work/out" || fail "logrotate"
else
    echo "skipped: the example for logrotate: needs root and logrotate"
fi
echo "all as expected"
