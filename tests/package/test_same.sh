#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The packages of one commit are equal to the bit, wherever and whenever they are made: each is compiled twice, in folders of other
# lengths, from files of other times, with another umask, language and day. --cuda: tomonode-cuda, too.
#
# usage: tests/package/test_same.sh [--cuda]
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for program in dpkg-buildpackage dh; do
    command -v "$program" >/dev/null || { echo "skipped: $program is not installed (deploy/install-deps.sh package)"; exit 77; }
done
cd "$(dirname "$0")/../.."
git rev-parse HEAD >/dev/null 2>&1 || { echo "skipped: this is no checkout of git"; exit 77; }
options=(--no-cuda)
[ "${1:-}" != --cuda ] || options=()
export CCACHE_DISABLE=1 DPKG_DEB_COMPRESSOR_TYPE=gzip DPKG_DEB_COMPRESSOR_LEVEL=1

for folder in a another/folder; do # at once: of one commit
    mkdir -p "$work/$folder/tmp"
    git clone --quiet . "$work/$folder/clone"
done
package() { # package FOLDER TIMEZONE LANGUAGE UMASK
    (
        umask "$4"
        cd "$work/$1/clone"
        [ "$3" = C ] || git ls-files -z | xargs -0 touch --no-dereference --date=2001-01-01
        TMPDIR=$work/$1/tmp TZ=$2 LC_ALL=$3 deploy/package.sh deb "${options[@]}" "$work/$1/out"
    )
}
package a Etc/GMT+12 C 022
package another/folder Etc/GMT-14 C.UTF-8 027 # 26 hours apart: never the same day

found=0
for deb in "$work"/a/out/*.deb; do
    other=$work/another/folder/out/$(basename "$deb")
    found=$((found + 1))
    cmp "$deb" "$other" && continue
    for one in "$deb" "$other"; do
        dpkg-deb --raw-extract "$one" "$one.content"
        (cd "$one.content" && find . -type f -exec sha256sum {} + | sort -k 2) >"$one.sums"
        dpkg-deb --contents "$one" >"$one.list"
    done
    diff "$deb.sums" "$other.sums" || true
    diff "$deb.list" "$other.list" || true
    echo "FAILED: two packages of one commit differ: $(basename "$deb")" >&2
    exit 1
done
[ "$found" -ge 3 ] || { echo "FAILED: $found packages were made" >&2; exit 1; }
echo "$found packages are equal"
