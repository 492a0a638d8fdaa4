#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The Debian packages of this build, without installing them: version, dependencies, contents, modes and configuration files; lintian finds
# no error and no warning; apt takes them from a signed repository, and refuses what was changed in it; the maintainer scripts call systemd
# as they should at installation, upgrade, removal and purge (stand-ins record the calls). tests/package/bare_debian.sh installs them.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
for program in dpkg-buildpackage dh lintian apt-ftparchive gpg; do
    command -v "$program" >/dev/null || { echo "skipped: $program is not installed (deploy/install-deps.sh package)"; exit 77; }
done
git -C "$TOMONODE_SOURCE" rev-parse HEAD >/dev/null 2>&1 || { echo "skipped: this is no checkout of git"; exit 77; }
cd "$TOMONODE_SOURCE"

# tomonode-cuda has a small program here: of its own it has nothing but the program and the scripts. The weakest compression saves time.
mkdir "$work/cuda"
cp "$TOMONODE_BUILD/tests/pilot_hello" "$work/cuda/tomonode"
export GNUPGHOME=$work/gnupg
mkdir -m 700 "$GNUPGHOME"
trap 'gpgconf --kill all; rm -rf "$work"' EXIT
gpg --batch --quiet --passphrase "" --quick-generate-key packages@example.org ed25519 sign never 2>"$work/gpg.log"
DPKG_DEB_COMPRESSOR_TYPE=gzip DPKG_DEB_COMPRESSOR_LEVEL=1 DEB_BUILD_OPTIONS=parallel=2 \
    deploy/package.sh deb --build "$TOMONODE_BUILD" --cuda-build "$work/cuda" --sign packages@example.org "$work/out"
deb=$(echo "$work"/out/tomonode_*.deb)
version=$(dpkg-deb --field "$deb" Version)
[[ $version =~ ^[0-9.]+([~+]git[0-9]{14}\.[0-9a-f]{12}(\.dirty)?)?$ ]] || fail "version $version"
day=$(TZ=UTC0 git log -1 --date=format-local:%Y%m%d --format=%cd)
[[ $version != *git* || $version == *git$day* ]] || fail "version $version does not have the day of the commit, $day"
! dpkg-deb --field "$deb" Depends Recommends Pre-Depends | grep -iE 'cuda|nvidia' || fail "tomonode needs CUDA"

# What a build needs is said twice.
for package in $(deploy/install-deps.sh --list build | grep -e '-dev$' | grep -vx libcmocka-dev); do
    grep -qE "[ ,]$package(,|\$)" deploy/debian/control || fail "deploy/install-deps.sh build has $package, Build-Depends in deploy/debian/control does not"
done

# Contents: everything belongs to root, nobody else may write, programs alone are executable, and the configuration is the operator's.
dpkg-deb --contents "$deb" >"$work/contents"
! grep -v ' root/root ' "$work/contents" || fail "files that do not belong to root"
! grep -E '^[^l].{4}w|^[^l].{7}w|^...s|^......s' "$work/contents" || fail "files that others may write, or setuid"
[ "$(awk '/^-..x/ { print $6 }' "$work/contents" | grep -v /usr/share/doc/ | tr '\n' ' ')" = "./usr/bin/tomonode " ] || fail "executable: $(grep '^-..x' "$work/contents")"
for file in /usr/bin/tomonode /lib/systemd/system/tomonode.service /usr/lib/sysusers.d/tomonode.conf /usr/lib/tmpfiles.d/tomonode.conf \
    /etc/tomonode/tomonode.conf /usr/share/man/man1/tomonode.1.gz /usr/share/bash-completion/completions/tomonode \
    /usr/share/zsh/vendor-completions/_tomonode /usr/share/doc/tomonode/docs/deployment.md /usr/share/doc/tomonode/copyright; do
    grep -q " \.$file\$" "$work/contents" || fail "tomonode does not have $file"
done
dpkg-deb --raw-extract "$deb" "$work/tomonode"
[ "$(sort "$work/tomonode/DEBIAN/conffiles" | tr '\n' ' ')" = "/etc/tomonode/defaults.conf /etc/tomonode/materials-20keV.conf /etc/tomonode/tomonode.conf " ] ||
    fail "conffiles: $(cat "$work/tomonode/DEBIAN/conffiles")"
grep -q '^ExecStart=/usr/bin/tomonode serve -c /etc/tomonode/tomonode.conf$' "$work/tomonode/lib/systemd/system/tomonode.service" || fail "the unit starts another program"
"$work/tomonode/usr/bin/tomonode" --version >/dev/null || fail "the program does not run"

# The library: nothing but the shared object in one package; with the other a sample can be built, which runs.
for package in libtomonode0 libtomonode-dev; do
    dpkg-deb --extract "$(echo "$work/out/${package}"_*.deb)" "$work/$package"
done
[ "$(find "$work/libtomonode0/usr" -path '*/doc' -prune -o ! -type d -printf '%f\n' | sort | tr '\n' ' ')" = "$(cd "$TOMONODE_BUILD" && printf '%s ' libtomonode.so.[0-9]*)" ] ||
    fail "libtomonode0: $(find "$work/libtomonode0" ! -type d)"
cp -r "$work/libtomonode0/." "$work/libtomonode-dev/"
library=$(find "$work/libtomonode-dev" -name libtomonode.so -printf '%h\n')
cc -o "$work/beams" docs/samples/library/beams.c -I"$work/libtomonode-dev/usr/include" -L"$library" -ltomonode -lm
LD_LIBRARY_PATH=$library "$work/beams" >/dev/null || fail "a sample does not run with libtomonode0"

# A repository that is signed: apt finds the version in it, and refuses a package or a list that was changed, and another key.
mkdir -p "$work"/apt/{lists,cache,state} "$work/repository"
cp "$work"/out/* "$work/repository/"
echo "deb [signed-by=$work/out/tomonode.asc] copy:$work/repository ./" >"$work/apt/sources.list"
apt_get() { # as the user of this test, with nothing of the machine's apt
    (cd "$work/apt" && apt-get -q -o Dir::Etc="$work/apt" -o Dir::Etc::sourceparts=- -o Dir::State="$work/apt/state" -o Dir::State::lists="$work/apt/lists" \
        -o Dir::Cache="$work/apt/cache" -o APT::Sandbox::User="$(id -un)" "$@" >"$work/apt.log" 2>&1)
}
apt_update() { # from nothing: of a repository that it knows apt reads InRelease alone
    rm -rf "$work"/apt/lists/*
    apt_get --error-on=any update
}
apt_update || fail "apt refuses the repository: $(cat "$work/apt.log")"
apt_get download tomonode || fail "apt refuses the package: $(cat "$work/apt.log")"
cmp "$work"/apt/tomonode_*.deb "$deb" || fail "apt gives another package"
rm "$work"/apt/*.deb
printf x >>"$(echo "$work"/repository/tomonode_*.deb)"
! apt_get download tomonode || fail "apt takes a package that was changed"
sed -i 's/^Package: tomonode$/Package: other/' "$work/repository/Packages"
! apt_update || fail "apt takes a list of packages that was changed"
cp "$work/out/Packages" "$work/repository/"
gpg --batch --quiet --passphrase "" --quick-generate-key other@example.org ed25519 sign never 2>"$work/gpg.log"
gpg --batch --yes --armor --output "$work/out/tomonode.asc" --export other@example.org
! apt_update || fail "apt takes a repository of another key"
! deploy/package.sh deb --build "$TOMONODE_BUILD" --sign nobody@example.org "$work/unsigned" 2>"$work/sign.log" || fail "a key that is not there signs"
grep -qx 'package: gpg has no key nobody@example.org to sign with' "$work/sign.log" || fail "a key that is not there: $(cat "$work/sign.log")"

# lintian: no error and no warning.
lintian --allow-root --fail-on error,warning "$work"/out/*.deb >"$work/lintian.log" 2>&1 || fail "lintian: $(cat "$work/lintian.log")"

# The maintainer scripts, with the folders they look at below $work, and stand-ins that record their calls.
mkdir -p "$work/stand-in" "$work/run/systemd/system" "$work/lib/tomonode" "$work/log/tomonode"
for name in systemctl deb-systemd-invoke deb-systemd-helper systemd-sysusers systemd-tmpfiles dpkg-divert tomonode; do
    # shellcheck disable=SC2016  # expanded by the stand-in
    printf '#!/bin/sh\necho "%s $*" >>"$CALLS"\ncase "$*" in\n*MainPID*) echo "$NODE" ;;\ncheck*) [ -z "$PROBLEM" ] || { echo "$PROBLEM" >&2; exit 3; } ;;\nesac\n' "$name" >"$work/stand-in/$name"
    chmod 755 "$work/stand-in/$name"
done
# script PACKAGE NAME ARGUMENT...: run a maintainer script; its calls are in $work/calls then, what it says in $work/said.
script() {
    local file=$work/$1/DEBIAN/$2
    : >"$work/calls"
    sed -e "s|/run/systemd|$work/run/systemd|g" -e "s|/var/lib/tomonode|$work/lib/tomonode|g" -e "s|/var/log/tomonode|$work/log/tomonode|g" \
        -e "s|/usr/bin/deb-systemd|$work/stand-in/deb-systemd|g" -e "s|-ef /usr/bin/tomonode|-ef $PROGRAM|" "$file" >"$work/script"
    CALLS=$work/calls PATH=$work/stand-in:$PATH sh "$work/script" "${@:3}" >"$work/said" 2>&1 </dev/null || fail "$1 $2 ${*:3}: $(cat "$work/said")"
}
called() { grep -qxF -- "$1" "$work/calls" || fail "not called: $1. Calls: $(cat "$work/calls")"; }
not_called() { ! grep -F -- "$1" "$work/calls" || fail "called: $1"; }
export NODE=$$ PROBLEM="" PROGRAM=/usr/bin/tomonode
script tomonode postinst configure ""
called "systemd-sysusers tomonode.conf"
called "systemd-tmpfiles --create tomonode.conf"
called "deb-systemd-helper enable tomonode.service"
called "deb-systemd-invoke start tomonode.service"
grep -n 'sysusers\|invoke' "$work/calls" | sort -n | head -1 | grep -q sysusers || fail "the node starts before its user exists"
script tomonode postinst configure 0.0.1
called "deb-systemd-invoke restart tomonode.service"
called "tomonode check -c /etc/tomonode/tomonode.conf"
[ ! -s "$work/said" ] || fail "an upgrade says: $(cat "$work/said")"
PROBLEM="tomonode.conf:3: unknown key" script tomonode postinst configure 0.0.1
grep -q 'tomonode.conf:3: unknown key' "$work/said" || fail "an upgrade does not say that the configuration has a problem"
called "deb-systemd-invoke restart tomonode.service"
for step in "prerm upgrade 0.0.2" "postrm upgrade 0.0.2"; do # the node runs until the new version is configured
    # shellcheck disable=SC2086  # words
    script tomonode $step
    not_called "deb-systemd-invoke"
done
script tomonode prerm remove
called "deb-systemd-invoke stop tomonode.service"
echo image >"$work/lib/tomonode/image"
script tomonode postrm purge
called "deb-systemd-helper purge tomonode.service"
grep -q "^tomonode: $work/lib/tomonode (.*) is kept: images" "$work/said" || fail "purge does not say what is left: $(cat "$work/said")"
grep -q "^tomonode: $work/log/tomonode (.*) is kept: logs" "$work/said" || fail "purge does not say what is left: $(cat "$work/said")"
[ -f "$work/lib/tomonode/image" ] || fail "purge removed an image"

deb=$(echo "$work"/out/tomonode-cuda_*.deb)
dpkg-deb --field "$deb" Depends | grep -qF "tomonode (= $version)" || fail "tomonode-cuda fits another version of tomonode"
! dpkg-deb --field "$deb" Depends Recommends Pre-Depends | grep -iE 'cuda|nvidia' || fail "tomonode-cuda needs a driver or libraries of CUDA"
dpkg-deb --raw-extract "$deb" "$work/tomonode-cuda"
[ "$(dpkg-deb --contents "$deb" | awk '/^-/ { print $6 }' | grep -v share/doc)" = ./usr/bin/tomonode ] || fail "contents of tomonode-cuda"
script tomonode-cuda preinst install
called "dpkg-divert --quiet --package tomonode-cuda --add --rename --divert /usr/bin/tomonode.cpu /usr/bin/tomonode"
script tomonode-cuda postinst configure ""
called "deb-systemd-invoke restart tomonode.service" # process $NODE, this shell, runs another program
PROGRAM=/proc/$$/exe script tomonode-cuda postinst configure ""
not_called "deb-systemd-invoke"
script tomonode-cuda postrm upgrade 0.0.2
not_called "dpkg-divert"
script tomonode-cuda postrm remove
called "dpkg-divert --quiet --package tomonode-cuda --remove --rename --divert /usr/bin/tomonode.cpu /usr/bin/tomonode"
called "deb-systemd-invoke restart tomonode.service"
echo "all as expected"
