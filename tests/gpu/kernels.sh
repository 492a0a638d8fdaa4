#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Test the kernels and the reconstruction on a GPU machine: do the devices agree, is memory used correctly, how fast are they.
#
# usage: tests/gpu/kernels.sh [--sanitizer] [FOLDER]     FOLDER: the folder of recon_test_cuda*, bench (default: the
#        folder above, as in the bundle). Libraries are searched in FOLDER and in FOLDER/../lib. Needs a CUDA device; with
#        --sanitizer also compute-sanitizer.
set -u
sanitizer=no
if [ "${1:-}" = --sanitizer ]; then
    sanitizer=yes
    shift
fi
folder=$(cd "${1:-$(dirname "$0")/..}" && pwd)
export LD_LIBRARY_PATH=$folder:$folder/../lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
cd "$folder" || exit 1
failed=0

step() {
    echo "== $*"
    "$@" || { echo "FAILED: $*"; failed=1; }
}

check() { # check TOOL PROGRAM OPTION...
    echo "== compute-sanitizer $*"
    compute-sanitizer --tool "$1" --error-exitcode 9 "./$2" "${@:3}" 2>&1 | grep -E 'SUMMARY|FAILED|=========     (at|and)' | head -20
    [ "${PIPESTATUS[0]}" = 0 ] || { echo "FAILED: $*"; failed=1; }
}

programs=(kernels_test_cuda_events recon_test_cuda recon_test_cuda_pet recon_test_cuda_list recon_test_cuda_scatter recon_test_cuda_parallel)
for program in "${programs[@]}"; do step "./$program"; done
if [ $sanitizer = yes ]; then
    # Few voxels, but small bins: boxes in shared memory, for one view, several views, many bins, pairs of views. racecheck of
    # CUDA 13.0 reports what the lanes of a warp write or read before one of them arrives at a barrier for all
    # (back_view_kernel: the weights of a stage); if every lane arrives, it does not.
    for tool in memcheck racecheck initcheck synccheck; do
        check $tool bench agree --no-gap --work dbt-osem --voxels 704x100x6 --views 3
        check $tool bench agree --no-gap --work dbt-mlem --voxels 704x100x6 --views 4
        check $tool bench agree --no-gap --work dbt-mlem --voxels 2816x900x3 --views 2
        check $tool bench agree --no-gap --work dbt-mlem --voxels 2816x100x3 --views 25
    done
    for tool in memcheck racecheck initcheck; do for program in "${programs[@]/%parallel/parallel --small}"; do
        # shellcheck disable=SC2086  # program and its option
        check $tool $program
    done; done
fi
for model in slices exact; do # CPU against CUDA after OSEM-25
    step ./bench agree --model $model
    step ./bench agree --model $model --deterministic --no-gap
    step ./bench agree --model $model --tile 88x56 --no-gap
    step ./bench agree --model $model --voxels 705x897x61 --views 9
done
step ./bench agree --size full
step ./bench agree --size full --model exact --views 3
step ./bench agree --device cuda --device cuda --no-gap --size full --tile 88x56
step ./bench agree --device cuda --device cuda --no-gap --size full --memory-limit 1000000000
step ./bench agree --device cuda --device cuda --no-gap --size full --memory-limit 1000000000 --work dbt-mlem
step ./recon_test_bench
measure() { # measure WORK OPTION...
    step ./bench time --device cuda --work "$@"
}
step ./bench time --device cuda
measure dbt-osem --repeat 15
measure dbt-osem --repeat 15 --tile 88x56
measure dbt-osem --size full --repeat 7
measure dbt-mlem --size full --repeat 5
measure dbt-osem --size full --repeat 5 --rule transmission
measure dbt-osem --repeat 5 --model exact
measure dbt-osem --size full --repeat 3 --model exact
for voxels in 256 128; do
    measure pet-mlem --stages --voxels $voxels --repeat 15
    measure pet-mlem --stages --voxels $voxels --repeat 5 --deterministic
    measure pet-mlem --stages --voxels $voxels --repeat 5 --model joseph
    step ./bench accuracy --device cuda --voxels $voxels --deterministic
done
measure pet-mlem --stages --voxels 256 --fov 200 --repeat 15
step ./bench accuracy --device cuda --voxels 256 --fov 200
for work in radon bp art; do
    measure $work --repeat 11
    measure $work-stack --repeat 11
done
measure fbp-convolution --stages --repeat 11
measure fbp-convolution-stack --stages --repeat 11
measure fbp-convolution --size full --repeat 11
measure art --size full --repeat 3
exit $failed
