#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Link a test program of a build of the preset `kernels` with the CUDA kernels compiled for the host: a block is an OS thread, its threads
# are fibers. New memory and shared memory have NaN in them; a box that is not aligned and a collective of the wrong lanes abort. All copies
# are instantaneous and memory is sequentially consistent, so it shows no missing fence.
#
# usage: tests/cuda_host/build.sh BUILD TEST OUT [FLAGS]     for example: build/kernels recon_test_cuda /tmp/host "-O2 -march=native"
#        FLAGS with -fsanitize=address: run with ASAN_OPTIONS=detect_stack_use_after_return=0:detect_leaks=0; set OMP_WAIT_POLICY=passive
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && pwd)
build=$(cd "$1" && pwd) test=$2 out=$3 flags=${4:--O2 -march=native}
mkdir -p "$out"
out=$(cd "$out" && pwd)
python3 "$here/convert.py" "$source/kernels/cuda" "$out/gen/kernels/cuda"
compile() { # shellcheck disable=SC2086
    g++ -std=c++20 $flags -g1 -w -fpermissive -ffp-contract=fast -fno-strict-aliasing "-I$here/include" "-I$out/gen" "-I$source" -c "$1" -o "$2"; }
for f in "$out"/gen/kernels/cuda/*.cpp; do
    [ "${f%.cpp}.o" -nt "$f" ] || compile "$f" "${f%.cpp}.o"
done
compile "$here/emulate.cpp" "$out/emulate.o"
cd "$build"
command=$(ninja -t commands "tests/$test" | tail -1)
objects=$(grep -o 'tests/CMakeFiles/[^ ]*\.o' <<<"$command")
libraries=$(grep -oE '(recon|kernels)/lib[a-z_]*\.a' <<<"$command" | grep -v kernels_cuda | sort -u)
# shellcheck disable=SC2086
ninja $objects $libraries
# shellcheck disable=SC2086
g++ $flags $objects "$out"/gen/kernels/cuda/*.o "$out/emulate.o" -o "$out/$test" -Wl,--start-group $libraries -Wl,--end-group \
    -lcmocka -ldl -lrt -lkissfft-float -lm -lgomp -lpthread
