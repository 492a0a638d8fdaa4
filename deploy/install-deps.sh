#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Install from the distribution the packages that building, testing and demonstrating tomonode need (Debian 12 and derivatives).
# Does nothing if all packages are installed. Root rights are requested only to install packages.
#
# usage: deploy/install-deps.sh [build] [test] [demo] [checks] [package] [browser] [nightly]     (no argument: the first three)
#        deploy/install-deps.sh --list [GROUP...]         (print the package names only)
set -euo pipefail

# libcmocka-dev belongs to `build`, because every preset configures the unit tests.
build="cmake ninja-build gcc g++ pkg-config git libdcmtk-dev libcharls-dev libopenjp2-7-dev libconfig-dev libsqlite3-dev libjansson-dev libxxhash-dev libssl-dev zlib1g-dev
       libcmocka-dev libkissfft-dev libpng-dev libmicrohttpd-dev libseccomp-dev libcurl4-openssl-dev"
# The system tests use DCMTK's senders and Orthanc, and compress with GDCM, and check results with dciodvfy, pydicom and dcm2niix.
test="dcmtk dicom3tools libgdcm-tools dcm2niix openssl sqlite3 orthanc orthanc-dicomweb libxml2-utils python3 python3-pydicom python3-numpy python3-pil
      python3-pytest python3-pytest-xdist python3-pytest-timeout python3-hypothesis procps"
# Needed by the tests of source and script formatting, of the files for systemd, rsyslog and logrotate, of manual pages and completion, and of diagrams in reports, which
# are skipped without them, of the web servers in front of the status page and of its interface for programs, and by the target `tidy` (clang-tidy).
checks="clang-format clang-tidy shellcheck systemd rsyslog logrotate python3-matplotlib man-db groff mandoc zsh nginx apache2-bin libapache2-mod-auth-openidc python3-jsonschema python3-yaml"
# For deploy/package.sh: Debian packages and OCI images, and their tests.
package="debhelper dpkg-dev lintian mmdebstrap apt-utils gnupg"
# About 350 MB, for tests/system/test_status_browser.py, which is skipped without it.
browser="chromium"
# For the presets `tsan` and `fuzz` (tests/nightly.sh): libomp-dev has the OpenMP runtime that the thread sanitizer can see into. For images: a container without
# rights, and the schemas of OCI.
# promtool and amtool (140 MB) try deploy/monitoring. ccache makes planted faults faster.
nightly="clang ccache libclang-rt-dev libomp-dev llvm bubblewrap docker-compose golang-github-opencontainers-image-spec-dev python3-jsonschema python3-h5py skopeo prometheus prometheus-alertmanager qemu-system-x86"
demo="dcmtk dicom3tools orthanc python3 python3-pydicom python3-numpy python3-pil"

list_only=no
if [ "${1:-}" = --list ]; then
    list_only=yes
    shift
fi
[ $# -gt 0 ] || set -- build test demo
wanted=""
for group in "$@"; do
    case "$group" in
    build) wanted="$wanted $build" ;;
    test) wanted="$wanted $test" ;;
    demo) wanted="$wanted $demo" ;;
    checks) wanted="$wanted $checks" ;;
    package) wanted="$wanted $package" ;;
    browser) wanted="$wanted $browser" ;;
    nightly) wanted="$wanted $nightly" ;;
    *)
        echo "install-deps: no group \"$group\"; there are: build test demo checks package browser nightly" >&2
        exit 2
        ;;
    esac
done
# shellcheck disable=SC2086  # word splitting is intended
wanted=$(printf '%s\n' $wanted | sort -u)
if [ "$list_only" = yes ]; then
    echo "$wanted"
    exit 0
fi

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "install-deps: this system is not Debian (no dpkg-query, apt-get). Please install the packages that correspond to:" >&2
    echo "$wanted" >&2
    exit 1
fi

# shellcheck disable=SC2086
have=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $wanted 2>/dev/null | sed -n 's/^installed //p' | sort -u || true)
missing=$(comm -23 <(echo "$wanted") <(echo "$have") | tr '\n' ' ')
[ -n "${missing// /}" ] || exit 0

echo "install-deps: for \"$*\" these Debian packages are missing: $missing"

if [ "$(id -u)" -eq 0 ]; then
    as_root() { bash -c "$1"; }
elif command -v sudo >/dev/null; then
    echo "install-deps: installing them needs root, so sudo may ask for your password."
    as_root() { sudo bash -c "$1"; }
elif command -v su >/dev/null && [ -t 0 ]; then
    echo "install-deps: installing them needs root (there is no sudo, so su asks for root's password)."
    as_root() { su root -c "$1"; }
else
    echo "install-deps: installing them needs root, and there is neither sudo nor a terminal for su. Run as root:" >&2
    echo "    apt-get install --no-install-recommends $missing" >&2
    exit 1
fi

# Debian's packages start services: a PACS on ports 4242 and 8042 (orthanc), a system log (rsyslog), a web server (nginx), a daily timer (logrotate). Only the
# programs are needed, so the service of a newly installed package is masked.
services=""
for package in $missing; do
    case "$package" in
    orthanc | rsyslog | nginx | prometheus | prometheus-alertmanager) services="$services $package.service" ;;
    logrotate) services="$services logrotate.timer" ;;
    esac
done
quiet=""
if [ -n "$services" ] && [ -d /run/systemd/system ]; then
    quiet="systemctl mask --quiet$services;"
    echo "install-deps: these services are masked (systemctl unmask enables them):$services"
elif [ -n "$services" ]; then
    # Without systemd the packages obey policy-rc.d (exit code 101: start nothing), unless the machine has a policy already.
    quiet="if [ ! -e /usr/sbin/policy-rc.d ]; then
        trap 'rm -f /usr/sbin/policy-rc.d' EXIT
        printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d; chmod 755 /usr/sbin/policy-rc.d; fi;"
fi

# The package lists of a fresh machine are empty or old, so they are fetched first.
as_root "set -e; export DEBIAN_FRONTEND=noninteractive; $quiet
    apt-get -q -o DPkg::Lock::Timeout=120 update
    apt-get -q -y -o DPkg::Lock::Timeout=120 install --no-install-recommends $missing"
