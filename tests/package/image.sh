#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The OCI image with Orthanc (deploy/package.sh image --demo): it conforms to the specification (check_image.py; skopeo reads it), compose
# accepts deploy/compose.yaml, and its root file system passes the demonstration (deploy/demo.sh --check) in a container without rights
# (bubblewrap): read-only, as the image's user. No container engine is needed, and none is tested.
#
# usage: tests/package/image.sh [OUT]       $TOMONODE_BUILD: the build whose program is packaged. OUT: folder in which the files are kept
set -euo pipefail
cd "$(dirname "$0")/../.."
fail() { echo "FAILED: $*" >&2; exit 1; }
for program in bwrap mmdebstrap dpkg-buildpackage; do
    command -v "$program" >/dev/null || { echo "skipped: $program is not installed (deploy/install-deps.sh package nightly)"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=${1:-$work/out}
deploy/package.sh deb --build "$TOMONODE_BUILD" "$out"
began=$SECONDS
deploy/package.sh image --demo "$out"
echo "image made in $((SECONDS - began)) s"
archive=$(echo "$out"/tomonode-demo-*.oci.tar)

mkdir "$work/layout" "$work/root" "$work/demo"
chmod 755 "$work" "$work/root"
tar -xf "$archive" -C "$work/layout"
/usr/bin/python3 tests/package/check_image.py "$work/layout" "$work/root" "$work/env"
mapfile -t variables <"$work/env"
printf x >"$work/x" && tar -cf "$work/x.tar" -C "$work" x
for copy in 1 2; do
    deploy/oci_image.py --root "$work/x.tar" --name x:x --version 1 --created 0 "$work/x$copy"
done
cmp "$work/x1" "$work/x2" || fail "the same image twice gives two files"
if command -v skopeo >/dev/null; then
    skopeo inspect "oci-archive:$archive" >"$work/skopeo" || fail "skopeo does not read the image"
    echo "ok      skopeo reads it"
else
    echo "skopeo is not installed: whether it reads the image was not tested"
fi
if command -v docker-compose >/dev/null; then
    docker-compose -f deploy/compose.yaml config --quiet || fail "compose refuses deploy/compose.yaml"
    sed 's/read_only/read_onli/' deploy/compose.yaml >"$work/wrong.yaml"
    ! docker-compose -f "$work/wrong.yaml" config --quiet 2>/dev/null || fail "compose accepts every file"
    echo "ok      compose accepts deploy/compose.yaml"
else
    echo "docker-compose is not installed: deploy/compose.yaml was not tested"
fi

# What an engine does with `read_only`, volumes and `user`; as root the container starts from a user without rights.
plain=()
if [ "$(id -u)" -eq 0 ]; then
    plain=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    chown 65534:65534 "$work/demo"
fi
box() { # box OPTION... COMMAND...: in the container
    env -i "${variables[@]}" "${plain[@]}" bwrap --unshare-user --unshare-ipc --unshare-uts --uid 11112 --gid 11112 --die-with-parent --ro-bind "$work/root" / --proc /proc --dev /dev \
        --tmpfs /run --tmpfs /tmp --tmpfs /var/lib/orthanc --bind "$work/demo" /var/lib/tomonode --chdir /var/lib/tomonode "$@"
}
[ "$(box id -un)" = tomonode ] || fail "the user is $(box id)"
! box touch /etc/tomonode/x 2>/dev/null || fail "the root file system can be written"
box tomonode devices | tee "$work/devices"
mkdir "$work/cgroup"
echo "50000 100000" >"$work/cgroup/cpu.max"
box --tmpfs /sys --ro-bind "$work/cgroup" /sys/fs/cgroup tomonode devices | grep -q '^cpu .*(1 thread,' || fail "half a processor, and several threads"

# The health check, the archive of compose.yaml, and the commands of docs/deployment.md, in a network of their own, because their ports are fixed.
cat >"$work/demo/services.sh" <<'SERVICES'
! /usr/lib/tomonode/health 2>/dev/null || { echo "healthy without a node"; exit 1; }
/usr/bin/tomonode serve 2>node.log &
/usr/sbin/Orthanc /etc/tomonode/orthanc.json >/tmp/orthanc.log 2>&1 &
for _ in $(seq 300); do
    ! { /usr/lib/tomonode/health >/dev/null && echoscu -aet TOMONODE 127.0.0.1 4242; } 2>/dev/null || break
    sleep 0.2
done
/usr/lib/tomonode/health && tomonode test-peer pacs || { cat node.log; tail -5 /tmp/orthanc.log; exit 1; }
bash -e commands.sh || { cat node.log; exit 1; }
for _ in $(seq 300); do
    ! tomonode list | grep -q ' delivered ' || break
    sleep 0.2
done
tomonode list | grep ' delivered ' || { cat node.log; exit 1; }
kill %1 && wait %1
SERVICES
sed -n 's/^docker compose -f deploy\/compose.yaml exec node //p' docs/deployment.md >"$work/demo/commands.sh"
[ "$(wc -l <"$work/demo/commands.sh")" -eq 3 ] || fail "docs/deployment.md has other commands: $(cat "$work/demo/commands.sh")"
box --unshare-net /bin/bash services.sh || fail "node and archive of compose.yaml"
rm -r "$work/demo" && mkdir "$work/demo"
[ ${#plain[@]} -eq 0 ] || chown 65534:65534 "$work/demo"

cat >"$work/tomonode" <<PROGRAM
#!/bin/bash
exec bwrap --unshare-user --unshare-ipc --unshare-uts --uid 11112 --gid 11112 --die-with-parent --ro-bind $work/root / --proc /proc --dev /dev \
    --tmpfs /run --tmpfs /tmp --bind $work/demo $work/demo --chdir / /usr/bin/tomonode "\$@"
PROGRAM
chmod 755 "$work/tomonode"
"${plain[@]}" env HOME="$work/demo" TMPDIR="$work/demo" deploy/demo.sh --check --program "$work/tomonode" >"$work/demo.log" 2>&1 ||
    fail "the demonstration: $(tail -30 "$work/demo.log")"
tail -1 "$work/demo.log"
echo "all as expected"
