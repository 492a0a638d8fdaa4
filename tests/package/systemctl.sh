#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# In place of systemctl in the chroot of bare_debian.sh: starts, stops and restarts the node as its unit says. Files in /run: node.pid;
# states (of the jobs when the node was stopped); unfinished (how many were not delivered); away (seconds from stop to start).
set -u
unit=/lib/systemd/system/tomonode.service
pid=$(cat /run/node.pid 2>/dev/null)
# awk prints nothing if the process ends in between.
runs() { [ -n "$pid" ] && [ -e "/proc/$pid" ] && [[ $(awk '{ print $3 }' "/proc/$pid/stat" 2>/dev/null) == [^Z] ]]; }
start() {
    local program
    runs && return 0
    program=$(sed -n 's/^ExecStart=//p' "$unit")
    mkdir -p /var/lib/tomonode
    : >>/var/log/node.log
    # shellcheck disable=SC2046,SC2086  # words of the unit
    (
        umask "$(sed -n 's/^UMask=//p' "$unit")"
        cd / && exec setsid setpriv --reuid=tomonode --regid=tomonode --init-groups --no-new-privs --bounding-set=-all --inh-caps=-all \
            env -i PATH=/usr/bin:/bin $(sed -n 's/^Environment=//p' "$unit") $program </dev/null >/dev/null 2>>/var/log/node.log
    ) &
    pid=$!
    echo "$pid" >/run/node.pid
    for _ in $(seq 300); do # the node has opened its journal, and reconstructs
        grep -q "serve\[$pid\] device-ready " /var/log/node.log && return 0
        runs || return 1
        sleep 0.1
    done
    return 1
}
stop() {
    runs || return 0
    tomonode list 2>/dev/null | awk '$1 ~ /^[0-9]+$/ { print $2 }' >/run/list
    sort /run/list | uniq -c | xargs >/run/states
    grep -cvx delivered /run/list >/run/unfinished
    kill -TERM "$pid"
    while runs; do sleep 0.05; done
}
words=()
for word in "$@"; do
    case "$word" in
    --property=MainPID | --value | --system | --quiet | --) ;;
    *) words+=("$word") ;;
    esac
done
case "${words[*]:-}" in
"start tomonode.service") start ;;
"stop tomonode.service") stop ;;
"restart tomonode.service")
    began=$EPOCHREALTIME
    stop
    start || exit
    awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f\n", b - a }' >/run/away
    ;;
"is-active tomonode.service") runs ;;
"show tomonode.service") echo "$pid" ;;
*daemon-reload*) ;;
*) SYSTEMD_OFFLINE=1 systemctl.real "$@" ;; # links of units: is-enabled, preset
esac
