#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Make Debian packages of tomonode, or an OCI image of its Debian package; Debian 12 and derivatives.
#
# usage: deploy/package.sh deb [--source TREE] [--build DIR] [--cuda-build DIR] [--no-cuda] [--sign KEY] OUT
#        deploy/package.sh image [--cuda] [--demo] OUT
#
# deb    writes tomonode_VERSION_ARCH.deb, libtomonode0 and libtomonode-dev, and, where nvcc is found, tomonode-cuda_VERSION_ARCH.deb to
#        the folder OUT.
#        Packages of one commit, made with the same compilers and libraries, are equal to the bit.
#        --source TREE     package this checkout instead of the one that contains the script (an older one, too)
#        --build DIR       take the program of this finished build, so that nothing is compiled; --cuda-build: the same for
#                          tomonode-cuda. With --build alone tomonode-cuda is not made
#        --no-cuda         do not make tomonode-cuda
#        --sign KEY        make OUT a repository for apt, signed by this key of gpg (an address or a fingerprint); its public part is
#                          OUT/tomonode.asc (docs/SECURITY.md says how to use it)
# image  writes tomonode-VERSION-ARCH.oci.tar, an OCI archive (image tomonode:latest), to the folder OUT, of the packages in OUT. No
#        image registry is used: the root file system is made of the distribution's packages (TOMONODE_MIRROR: from another mirror).
#        --cuda            with tomonode-cuda: tomonode-cuda-VERSION-ARCH.oci.tar, tomonode:cuda
#        --demo            with Orthanc and DCMTK, for deploy/compose.yaml: tomonode-demo-VERSION-ARCH.oci.tar, tomonode:demo
# The packages that this needs: deploy/install-deps.sh build package.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

fail() { echo "package: $*" >&2; exit 1; }
usage() { echo "package: $* (see --help)" >&2; exit 2; }

source=$root cpu="" cuda="" with_cuda="" demo="" key="" out="" what=${1:-}
case "$what" in
deb | image) shift ;;
-h | --help)
    sed -n '3,22s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
*) usage "the first word is deb or image" ;;
esac
while [ $# -gt 0 ]; do
    case "$what $1" in
    "deb --source" | "deb --build" | "deb --cuda-build" | "deb --sign")
        [ $# -ge 2 ] || usage "$1 needs an argument"
        case "$1" in
        --source) source=$(realpath -e "$2") ;;
        --build) cpu=$(realpath -e "$2") ;;
        --cuda-build) cuda=$(realpath -e "$2") ;;
        --sign) key=$2 ;;
        esac
        shift
        ;;
    "deb --no-cuda") with_cuda=no ;;
    "image --cuda") with_cuda=yes ;;
    "image --demo") demo=yes ;;
    *" -"*) usage "unknown option $1" ;;
    *)
        [ -z "$out" ] || usage "more than one folder: $out, $1"
        out=$1
        ;;
    esac
    shift
done
[ -n "$out" ] || usage "the folder for the files is missing"
mkdir -p "$out"
out=$(realpath "$out")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Print VERSION~gitDATE.REVISION of a checkout: dates order the commits of one branch. A commit with the tag vVERSION has VERSION alone,
# those after it VERSION+git...; .dirty is appended to a checkout with changes.
package_version() { # package_version TREE
    local version stamp mark="~"
    version=$(sed -n 's/^project(.* VERSION \([0-9.]*\).*/\1/p' "$1/CMakeLists.txt")
    stamp=$(TZ=UTC0 git -C "$1" log -1 --date=format-local:%Y%m%d%H%M%S --abbrev=12 --format=%cd.%h) ||
        fail "$1 is no checkout of git: the version of a package is that of its commit"
    if ! git -C "$1" diff --quiet HEAD; then
        stamp=$stamp.dirty
    elif [ "$(git -C "$1" tag --points-at HEAD --list "v$version")" ]; then
        echo "$version"
        return
    fi
    [ -z "$(git -C "$1" tag --merged HEAD --list "v$version")" ] || mark="+"
    echo "$version${mark}git$stamp"
}

make_deb() {
    local version tree=$work/tomonode
    for program in dpkg-buildpackage dh cmake ${key:+apt-ftparchive gpg}; do
        command -v "$program" >/dev/null || fail "$program is not installed (deploy/install-deps.sh build package)"
    done
    [ -z "$key" ] || gpg --batch --list-secret-keys "$key" >/dev/null 2>&1 || fail "gpg has no key $key to sign with"
    if [ -n "$cuda" ]; then
        with_cuda=yes
    elif [ -z "$with_cuda" ] && [ -n "$cpu" ]; then
        with_cuda=no
    elif [ -z "$with_cuda" ] && command -v "${CUDACXX:-nvcc}" >/dev/null; then
        with_cuda=yes
    elif [ -z "$with_cuda" ]; then
        with_cuda=no
        echo "package: nvcc is not installed: tomonode-cuda is not made"
    fi
    version=$(package_version "$source")
    mkdir "$tree"
    git -C "$source" ls-files -z --cached | tar -C "$source" --null --files-from=- --create --ignore-failed-read 2>"$work/tar.log" | tar -C "$tree" --extract
    cp -r "$root/deploy/debian" "$tree/debian"
    {
        printf 'tomonode (%s) unstable; urgency=medium\n\n  * Commit %s.\n\n' "$version" "$(git -C "$source" rev-parse HEAD)"
        printf ' -- %s  %s\n' "$(sed -n 's/^Maintainer: //p' "$tree/debian/control")" "$(git -C "$source" log -1 --date=rfc --format=%cd)"
    } >"$tree/debian/changelog"
    # The copy has no .git, but the program shows its revision.
    export GIT_DIR GIT_WORK_TREE=$tree GIT_OPTIONAL_LOCKS=0
    GIT_DIR=$(git -C "$source" rev-parse --absolute-git-dir)
    (
        cd "$tree"
        export DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS:-parallel=$(nproc)}" WITH_CUDA=$with_cuda TOMONODE_CPU=$cpu TOMONODE_CUDA=$cuda
        # A finished build needs no packages to build it.
        dpkg-buildpackage --build=binary --unsigned-source --unsigned-changes ${cpu:+--no-check-builddeps} >"$work/build.log" 2>&1
    ) || { tail -n 40 "$work/build.log" >&2; fail "dpkg-buildpackage failed"; }
    for file in "$work"/*.deb; do
        mv "$file" "$out/"
        echo "$out/$(basename "$file"): $(du -k "$out/$(basename "$file")" | cut -f1) KiB"
    done
    [ -z "$key" ] || (cd "$out" && sign_repository)
}

# apt verifies InRelease, which has the digest of Packages, which has those of the packages in the folder.
sign_repository() {
    rm -f InRelease
    apt-ftparchive packages . >Packages
    apt-ftparchive -o APT::FTPArchive::Release::Origin=tomonode -o APT::FTPArchive::Release::Suite=stable release . >"$work/Release"
    gpg --batch --yes --local-user "$key" --clearsign --output InRelease "$work/Release"
    gpg --batch --yes --armor --output tomonode.asc --export "$key"
    echo "$out: a repository for apt, signed by $key"
}

# The user has the same number in every image, because volumes keep it: that of the port.
make_image() {
    local version arch created suite name=tomonode tag=latest include=systemd-standalone-sysusers,systemd-standalone-tmpfiles,tomonode repo=$work/repo
    for program in mmdebstrap dpkg-scanpackages; do
        command -v "$program" >/dev/null || fail "$program is not installed (deploy/install-deps.sh package)"
    done
    if [ "$with_cuda" ]; then
        include=$include,tomonode-cuda name=tomonode-cuda tag=cuda
    fi
    local extra=()
    if [ "$demo" ]; then
        include=$include,orthanc,dcmtk name=$name-demo
        tag=${with_cuda:+cuda-}demo
        extra=(--customize-hook="copy-in $root/deploy/image/orthanc.json /etc/tomonode")
    fi
    mkdir "$repo"
    arch=$(dpkg --print-architecture)
    for package in tomonode ${with_cuda:+tomonode-cuda}; do
        local files=("$out/$package"_*_"$arch".deb)
        [ -f "${files[0]}" ] || fail "there is no package $package for $arch in $out: run deploy/package.sh deb first"
        [ ${#files[@]} -eq 1 ] || fail "there are several packages $package in $out: ${files[*]}"
        cp "${files[0]}" "$repo/"
    done
    version=$(dpkg-deb --field "$repo/tomonode"_*.deb Version)
    created=$(dpkg-deb --fsys-tarfile "$repo/tomonode"_*.deb | tar --list --verbose --full-time --utc | awk 'NR == 1 { print $4 "T" $5 "Z" }')
    created=$(date --date="$created" +%s)
    (cd "$repo" && dpkg-scanpackages --multiversion . >Packages 2>"$work/scan.log") || fail "dpkg-scanpackages: $(cat "$work/scan.log")"
    chmod -R a+rX "$work"
    suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
    local mirrors=("deb http://deb.debian.org/debian $suite main" "deb http://deb.debian.org/debian $suite-updates main"
        "deb http://deb.debian.org/debian-security $suite-security main")
    [ -z "${TOMONODE_MIRROR:-}" ] || mirrors=("$TOMONODE_MIRROR")
    # Of documents only the licences, and no package manager: the image is made anew for an update.
    SOURCE_DATE_EPOCH=$created mmdebstrap --variant=essential --include="$include" \
        --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
        --dpkgopt='path-include=/usr/share/doc/*/copyright' \
        --essential-hook='echo "tomonode:x:11112:" >>"$1/etc/group"' \
        --essential-hook='echo "tomonode:x:11112:11112:tomonode DICOM node:/var/lib/tomonode:/usr/sbin/nologin" >>"$1/etc/passwd"' \
        --customize-hook='mkdir -p "$1/usr/lib/tomonode"' --customize-hook="copy-in $root/deploy/image/health /usr/lib/tomonode" "${extra[@]}" \
        "$suite" "$work/root.tar" "${mirrors[@]}" "deb [trusted=yes] copy:$repo ./" >"$work/mmdebstrap.log" 2>&1 ||
        { tail -n 30 "$work/mmdebstrap.log" >&2; fail "mmdebstrap failed"; }
    "$root/deploy/oci_image.py" --root "$work/root.tar" --name "tomonode:$tag" --version "$version" --created "$created" "$out/$name-$version-$arch.oci.tar"
    echo "$out/$name-$version-$arch.oci.tar: $(du -m "$out/$name-$version-$arch.oci.tar" | cut -f1) MiB, $(du -m "$work/root.tar" | cut -f1) MiB unpacked, image tomonode:$tag"
}

"make_$what"
