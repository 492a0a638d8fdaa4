#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Test the kernels and the reconstruction on a GPU machine: do the devices agree, is memory used correctly, how fast are they.
#
# usage: tests/gpu/kernels.sh [--sanitizer] [FOLDER]     FOLDER: the folder of the test programs and bench (default: the folder above,
#        as in a bundle with unit tests). Libraries are searched in FOLDER and in FOLDER/../lib. Needs a CUDA device (without one the
#        tests fail). With --sanitizer also compute-sanitizer, which takes long: racecheck of recon_test_cuda alone more than 7
#        minutes on an H200.
set -u
sanitizer=no
if [ "${1:-}" = --sanitizer ]; then
    sanitizer=yes
    shift
    command -v compute-sanitizer >/dev/null || { echo "kernels.sh: compute-sanitizer is not in PATH" >&2; exit 2; }
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
    local log code
    echo "== compute-sanitizer $*"
    log=$(compute-sanitizer --tool "$1" --error-exitcode 9 "./$2" "${@:3}" 2>&1)
    code=$?
    grep SUMMARY <<<"$log"
    [ $code = 0 ] || { grep -E '^=========|FAILED|bench:' <<<"$log" | sed 40q; echo "FAILED ($code): $*"; failed=1; }
}

# Tests that hold on every device, and those that compare CUDA with the CPU: all sizes, under the sanitizer those of tier 1.
programs=(kernels_test_device kernels_test_events recon_test_cuda recon_test_cuda_pet recon_test_cuda_list recon_test_cuda_scatter recon_test_cuda_parallel)
for program in "${programs[@]}"; do step env TOMONODE_TIER=2 "./$program"; done
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
if [ $sanitizer = yes ]; then
    for tool in memcheck racecheck initcheck synccheck; do
        check $tool bench agree --no-gap --work dbt-osem --voxels 704x100x12 --views 3    # the update from one view: back_view_kernel
        check $tool bench agree --no-gap --work dbt-osem --voxels 704x99x5 --views 3      # one slice more than stages; odd rows
        check $tool bench agree --no-gap --work dbt-osem --voxels 700x131x61 --views 2    # several blocks along z, the last one shorter
        check $tool bench agree --no-gap --work dbt-mlem --voxels 704x100x6 --views 4     # the update from several views
        check $tool bench agree --no-gap --work dbt-mlem --voxels 2816x900x3 --views 2    # many bins: a thread computes two along x
        check $tool bench agree --no-gap --work dbt-mlem --voxels 2816x100x3 --views 25   # and a box of voxels serves two views
    done
    for tool in memcheck racecheck initcheck; do for program in "${programs[@]}"; do check $tool "$program"; done; done
fi
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
