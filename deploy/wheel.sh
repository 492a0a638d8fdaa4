#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Make the Python package of libtomonode: one wheel for every version of Python 3.9 and later, which needs no other package.
#
# usage: deploy/wheel.sh [--build DIR] [--no-cuda] OUT
#
# writes tomonode-VERSION-py3-none-linux_ARCH.whl to the folder OUT: the Python files of recon/python, libtomonode.so.0, and the
# libraries that it needs beside the C library (kissfft, OpenMP's). With nvcc the library has the CUDA device, and runs without a GPU, too.
# --build DIR   take the library of this finished build; else it is built, without DICOM
# --no-cuda     build it without CUDA
# The wheel runs where the C library is at least as new as here. Install it with: pip install OUT/tomonode-*.whl
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

fail() { echo "wheel: $*" >&2; exit 1; }
build="" cuda=AUTO out=""
while [ $# -gt 0 ]; do
    case "$1" in
    -h | --help)
        sed -n '3,13s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    --build)
        [ $# -ge 2 ] || fail "$1 needs an argument"
        build=$(realpath -e "$2")
        shift
        ;;
    --no-cuda) cuda=OFF ;;
    -*) fail "unknown option $1 (see --help)" ;;
    *)
        [ -z "$out" ] || fail "more than one folder: $out, $1"
        out=$1
        ;;
    esac
    shift
done
[ -n "$out" ] || fail "the folder for the wheel is missing (see --help)"
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -z "$build" ]; then
    build=$work/build
    cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTOMONODE_DICOM=OFF -DTOMONODE_TESTS=OFF -DTOMONODE_CUDA=$cuda \
        >"$work/log" || { tail -n 20 "$work/log" >&2; fail "cmake failed"; }
    cmake --build "$build" --target libtomonode >"$work/log" || { tail -n 40 "$work/log" >&2; fail "the build failed"; }
fi
library=$build/libtomonode.so.0
[ -f "$library" ] || fail "$library is missing (target libtomonode)"
package=$work/wheel/tomonode
mkdir -p "$package"
cp "$root"/recon/python/tomonode/{*.py,py.typed} "$package"
strip --strip-unneeded -o "$package/libtomonode.so.0" "$library"
ldd "$library" | sed -n 's/^[[:space:]]*\(libkissfft[^ ]*\|libgomp[^ ]*\|libomp[^ ]*\) => \([^ ]*\) .*/\2/p' | xargs -r cp -Lt "$package"
python3 - "$root" "$work/wheel" "$out" "$(uname -m)" <<'EOF'
import base64, hashlib, pathlib, re, sys, zipfile
root, folder, out, arch = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), sys.argv[4]
version = re.search(r"^project\(.* VERSION ([0-9.]+)", (root / "CMakeLists.txt").read_text(), re.M)[1]
tag, info = f"py3-none-linux_{arch}", f"tomonode-{version}.dist-info"
summary = "Projectors and reconstructions of PET, list mode, tomosynthesis and parallel beams on processors and GPUs"
files = {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
files[f"{info}/METADATA"] = (f"Metadata-Version: 2.1\nName: tomonode\nVersion: {version}\nSummary: {summary}\nLicense: Apache-2.0\n"
                             "Requires-Python: >=3.9\nDescription-Content-Type: text/markdown\n\n" + (root / "docs/library.md").read_text()).encode()
files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: deploy/wheel.sh\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
files[f"{info}/LICENSE"] = (root / "LICENSE").read_bytes()
rows = [f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}" for name, data in files.items()]
files[f"{info}/RECORD"] = "\n".join(rows + [f"{info}/RECORD,,", ""]).encode()
path = out / f"tomonode-{version}-{tag}.whl"
with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
    for name, data in files.items():
        member = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
        member.compress_type, member.external_attr = zipfile.ZIP_DEFLATED, (0o755 if ".so" in name else 0o644) << 16
        wheel.writestr(member, data)
print(f"{path}: {path.stat().st_size // 1024} KiB")
EOF
