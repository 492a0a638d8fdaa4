#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Create a relocatable tar file with the program, all shared libraries that it needs except the C library and drivers, DCMTK's
# dictionary, the configuration, and the files for tests and measurements on a machine without packages: unit tests, benchmarks,
# tests/gpu, DCMTK's storescp and storescu.
# It runs on x86-64 Linux with a C library at least as new as this machine's and needs no package (tests/gpu: python3).
#
# usage: deploy/bundle.sh [--build DIR] [--old PROGRAM] [--small] [OUT.tar.gz]     default: build/release, tomonode-VERSION.tar.gz
# --old: another version of the program, as bin/tomonode-old, which tests/gpu/throughput.py compares with. --small: without unit tests and documents.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

build=$root/build/release out="" old="" small=""
while [ $# -gt 0 ]; do
    case "$1" in
    --build)
        [ $# -ge 2 ] || { echo "bundle: --build needs a folder" >&2; exit 2; }
        build=$(realpath "$2")
        shift
        ;;
    --old)
        [ -x "${2:-}" ] || { echo "bundle: --old needs a program" >&2; exit 2; }
        old=$(realpath "$2")
        shift
        ;;
    --small) small=yes ;;
    -h | --help)
        sed -n '3,9s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    -*)
        echo "bundle: unknown option $1" >&2
        exit 2
        ;;
    *) out=$1 ;;
    esac
    shift
done
program=$build/tomonode
[ -x "$program" ] || { echo "bundle: $program does not exist; build it first (cmake --build --preset release)" >&2; exit 1; }
version=$("$program" --version | awk 'NR == 1 { print $2 }')
name=tomonode-$version
out=$(realpath -m "${out:-$name.tar.gz}")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
top=$work/$name
mkdir -p "$top"/{bin,lib,libexec,share/dcmtk,share/licenses,etc/tomonode,tests/{gpu,system/tools}}

cp "$program" "$top/libexec/tomonode"
[ -z "$old" ] || cp "$old" "$top/libexec/tomonode-old"
cp "$root"/conf/*.conf "$root/deploy/tomonode.conf" "$top/etc/tomonode/"
"$program" check --defaults >"$top/etc/tomonode/defaults.conf"
cp "$root/LICENSE" "$root/README.md" "$top/"
[ -n "$small" ] || cp -r "$root/docs" "$top/docs"
for file in "$build"/tests/{kernels,recon,dicom,node}_test_* "$build"/tests/bench; do
    [ -n "$small" ] || [ ! -x "$file" ] || [ -d "$file" ] || cp "$file" "$top/tests/"
done
if [ -x "$build/tests/tls_copy" ]; then # used by tests/gpu/executors.py
    cp "$build/tests/tls_copy" "$top/tests/"
else
    echo "bundle: $build/tests/tls_copy is not built; tests/gpu/executors.py of the bundle will not run" >&2
fi
cp "$root"/tests/gpu/* "$top/tests/gpu/"
cp "$root"/tests/system/tools/{kill_tools,contract_tools,commit_peer,dicom_peer,node_harness}.py "$top/tests/system/tools/"
licence() { # licence FILE: copy the licence of the distribution's package that contains FILE, if the package is known
    local real package
    real=$(realpath "$1") # dpkg may list the path without /usr, because /lib is a link to /usr/lib
    package=$({ dpkg-query -S "$real" || dpkg-query -S "${real#/usr}"; } 2>/dev/null | sed 's/[:,].*//;q' || true)
    if [ -n "$package" ] && [ -f "/usr/share/doc/$package/copyright" ]; then
        cp -L "/usr/share/doc/$package/copyright" "$top/share/licenses/$package"
    fi
}
for tool in storescp storescu; do # used as PACS and modality by tests/gpu
    if file=$(command -v "$tool"); then
        cp -L "$file" "$top/tests/"
        licence "$file"
    else
        echo "bundle: $tool is not installed (Debian: dcmtk); tests/gpu of the bundle will need it on the target machine" >&2
    fi
done
strip "$top"/libexec/* "$top"/tests/* 2>/dev/null || true
for file in /usr/share/libdcmtk*/dicom.dic; do
    cp "$file" "$top/share/dcmtk/dicom.dic"
done

# All shared libraries, directly or indirectly needed, except the C library, the loader and drivers; libstdc++ and libgomp are included.
system='^(ld-linux.*|libc|libm|libdl|libpthread|librt|libresolv|libanl|libutil|libcuda|libnvidia-.*)\.so'
find "$top/libexec" "$top/tests" -maxdepth 1 -type f | while IFS= read -r file; do
    ldd "$file"
done | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u | while IFS= read -r library; do
    if [[ ! $(basename "$library") =~ $system ]]; then
        cp -L "$library" "$top/lib/"
        chmod 644 "$top/lib/$(basename "$library")"
        licence "$library"
    fi
done
for file in "$top"/libexec/* "$top"/tests/store*; do
    if ldd "$file" | grep 'not found' >&2; then
        echo "bundle: $(basename "$file") needs a library that is missing on this machine (see above)" >&2
        exit 1
    fi
done

cp "$root/tests/soak_kill.py" "$top/tests/"
cp "$root"/tests/quality_{run,report,pet,pet_figures,parallel,parallel_figures,dbt,dbt_voxels,dbt_figures}.py "$top/tests/" # for the command `run`, which needs numpy at most; `report` works only in the source tree

# The launcher makes the folder relocatable. exec keeps the process number, and the node starts its processes from /proc/self/exe, the real
# program, so the variables must stay set for them.
cat >"$top/bin/tomonode" <<'LAUNCHER'
#!/bin/sh
top=$(CDPATH='' cd -- "$(dirname -- "$(readlink -f -- "$0")")/.." && pwd)
LD_LIBRARY_PATH=$top/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
DCMDICTPATH=$top/share/dcmtk/dicom.dic
export LD_LIBRARY_PATH DCMDICTPATH
exec "$top/libexec/tomonode" "$@"
LAUNCHER
[ -z "$old" ] || sed 's|libexec/tomonode|libexec/tomonode-old|' "$top/bin/tomonode" >"$top/bin/tomonode-old"
cat >"$top/tests/run.sh" <<'TESTS'
#!/bin/sh
# Run the unit tests of the bundle; exit code 77 of a test: skipped.
top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
LD_LIBRARY_PATH=$top/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
DCMDICTPATH=$top/share/dcmtk/dicom.dic
export LD_LIBRARY_PATH DCMDICTPATH
failed=0
for test in "$top"/tests/*_test_*; do
    "$test" >"${TMPDIR:-/tmp}/tomonode-test.$$" 2>&1
    code=$?
    case $code in
    0) echo "passed  $(basename "$test")" ;;
    77) echo "skipped $(basename "$test"): $(sed -n 's/^skipped: //p' "${TMPDIR:-/tmp}/tomonode-test.$$" | tail -n 1)" ;;
    *)
        echo "FAILED  $(basename "$test")"
        cat "${TMPDIR:-/tmp}/tomonode-test.$$"
        failed=1
        ;;
    esac
done
rm -f "${TMPDIR:-/tmp}/tomonode-test.$$"
exit $failed
TESTS
chmod 755 "$top"/bin/* "$top/tests/run.sh"

# Test the launcher with an empty environment.
env -i PATH=/usr/bin:/bin "$top/bin/tomonode" --version >/dev/null
tar -C "$work" --owner=0 --group=0 --sort=name -czf "$out" "$name"
echo "$out: $(du -m "$out" | cut -f1) MiB, $(find "$top/lib" -type f | wc -l) libraries"
