#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The public library as others see it: only tn_* is exported, nothing global is writable, the header compiles as C99, C11 and C++11
# without a warning, functions and structs are those of recon/api/tomonode.abi, and the samples build against the installed files, with
# pkg-config and with CMake, and run.
#
# usage: tests/library.sh BUILD [CMAKE]     BUILD: a build folder with libtomonode. Exit 77: pkg-config or a compiler is missing
#        tests/library.sh --abi             write the binary interface of the header: the new content of recon/api/tomonode.abi
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
# Write what a program is compiled against: the declaration of each function, size and offset of each struct and member, constants.
print_abi() {
    local header=$root/recon/api/tomonode.h
    cc -E -P -DTN_API=TN_API "$header" | tr '\n\t' '  ' | grep -o 'TN_API [^;]*;' | sed 's/^TN_API //; s/  */ /g' | sort
    cc -g -c -fno-eliminate-unused-debug-types -o "$1/abi.o" -x c "$header"
    readelf --debug-dump=info "$1/abi.o" | awk '
        function say() { if (name && name !~ /^__/ && tag != "") print tag == "member" ? "  " value " " name : tag " " name " " value; tag = name = value = "" }
        /Abbrev Number/ { say(); if (/structure_type/) tag = "struct"; else if (/TAG_member/) tag = "member"; else if (/enumerator/) tag = "enum" }
        /DW_AT_name/ { name = $NF }
        /DW_AT_(byte_size|data_member_location|const_value)/ { value = $NF }
        END { say() }'
}

if [ "$1" = --abi ]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    print_abi "$work"
    exit
fi
build=$(realpath "$1") cmake=${2:-cmake}
for program in cc c++ pkg-config nm readelf; do
    command -v "$program" >/dev/null || { echo "skipped: $program is missing"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "library: $*" >&2; exit 1; }

print_abi "$work" >"$work/tomonode.abi"
diff "$root/recon/api/tomonode.abi" "$work/tomonode.abi" ||
    fail "the binary interface differs from recon/api/tomonode.abi. Members are only added at the end of a struct, constants only at the" \
        "end of their enum; nothing else changes without a new TN_ABI. Then: tests/library.sh --abi >recon/api/tomonode.abi"

"$cmake" --install "$build" --prefix "$work/usr" --component library >"$work/log"
"$cmake" --install "$build" --prefix "$work/usr" --component development >>"$work/log"
library=$(find "$work/usr" -name 'libtomonode.so.0')
export LD_LIBRARY_PATH=${library%/*} PKG_CONFIG_PATH=${library%/*}/pkgconfig

# Exported are the functions of the header, and only these.
nm -D --defined-only "$library" | sed -n 's/.* T \([a-z_0-9]*\)@@TOMONODE_0$/\1/p' | sort >"$work/exported"
sed -n 's/^TN_API [^(]*\b\(tn_[a-z_]*\)(.*/\1/p' "$work/usr/include/tomonode.h" | sort >"$work/declared"
diff "$work/declared" "$work/exported" || fail "the header and the exported symbols differ"
others=$(nm -D --defined-only "$library" | grep -cv '@@TOMONODE_0$\| A TOMONODE_0$' || true)
[ "$others" = 0 ] || fail "$others symbols are exported that are not tn_*"
[ "$(wc -l <"$work/exported")" -le 25 ] || fail "more than 25 functions"

# Objects in .data, .bss, .tdata, .tbss: those of the compiler's start files and of its test for instruction sets alone.
sections=$(readelf -SW "$library" | sed -n 's/^ *\[ *\([0-9]*\)\] \.\(data\|bss\|tdata\|tbss\) .*/\1/p' | paste -sd'|')
writable=$(readelf -sW "$library" | awk -v in_="^(${sections:-none})\$" '$4 ~ /OBJECT|TLS|COMMON/ && $7 ~ in_ {print $8}' |
    grep -vE '^(completed\.[0-9]+|__dso_handle|__TMC_END__|__cpu_model|__cpu_features2?)$' || true)
case " ${CHECK_CUDA:-} " in *" yes "*) writable="" ;; esac # cudart has its own
[ -z "$writable" ] || fail "writable global objects: $writable"

# One program in C and in C++: a ray through the middle of one voxel of 3 mm.
cat >"$work/header.c" <<'EOF'
#include <string.h>
#include <tomonode.h>

int main(void)
{
	float x[1] = {2}, y[1] = {0}, ends[6] = {-5, 0, 0, 5, 0, 0};
	int32_t pairs[2] = {0, 1};
	struct tn_grid grid = {{1, 1, 1}, {3, 3, 3}, {-1.5, -1.5, -1.5}};
	struct tn_device *dev = 0;
	struct tn_scan *scan = 0;
	struct tn_projector *a = 0;
	struct tn_lines lines;
	struct tn_err err;
	int good;

	memset(&lines, 0, sizeof(lines));
	TN_INIT(lines);
	lines.n_points = 2;
	lines.points = ends;
	lines.n = 1;
	lines.pairs = pairs;
	good = tn_device_open("cpu", &dev, &err) == 0 && tn_scan_lines(&lines, &scan, &err) == 0 &&
	       tn_projector_new(dev, scan, &grid, 0, &a, &err) == 0 &&
	       tn_forward(a, TN_FLOATS(x, 1, 1, 1), TN_FLOATS(y, 1), 0, &err) == 0 && y[0] > 5.999f && y[0] < 6.001f;
	tn_projector_free(a);
	tn_scan_free(scan);
	tn_device_close(dev);
	return good ? 0 : 1;
}
EOF
cp "$work/header.c" "$work/header.cc"
read -ra flags <<<"$(pkg-config --cflags --libs tomonode)"
for standard in c99 c11; do
    cc -std=$standard -Wall -Wextra -Wpedantic -Werror -o "$work/header" "$work/header.c" "${flags[@]}"
    "$work/header"
done
c++ -std=c++11 -Wall -Wextra -Wpedantic -Werror -o "$work/header" "$work/header.cc" "${flags[@]}"
"$work/header"

for source in "$root"/docs/samples/library/*.c; do
    name=$(basename "$source" .c)
    cc -std=c99 -O2 -Wall -Wextra -Wpedantic -Werror -o "$work/$name" "$source" "${flags[@]}" -lm
    echo "$name:"
    "$work/$name" || fail "$name failed"
done

mkdir "$work/cmake"
cat >"$work/cmake/CMakeLists.txt" <<EOF
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C)
find_package(tomonode REQUIRED)
add_executable(user $work/header.c)
target_link_libraries(user PRIVATE tomonode::tomonode)
EOF
"$cmake" -S "$work/cmake" -B "$work/cmake/build" -DCMAKE_PREFIX_PATH="$work/usr" >>"$work/log" 2>&1 || { cat "$work/log"; fail "find_package(tomonode)"; }
"$cmake" --build "$work/cmake/build" >>"$work/log" 2>&1 || { cat "$work/log"; fail "a program with find_package(tomonode)"; }
"$work/cmake/build/user" || fail "the program of CMake failed"
echo "library: $(wc -l <"$work/exported") functions, $(stat -Lc %s "$library") bytes"
