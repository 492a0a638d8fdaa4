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

step ./recon_test_cuda
step ./recon_test_cuda_pet
step ./recon_test_cuda_scatter
step ./recon_test_cuda_parallel
if [ $sanitizer = yes ]; then
    # racecheck reports the weights and positions in the stages of forward_boxes_kernel as hazards (compute-sanitizer of CUDA 13.0).
    # Their writers and readers are ordered by a pair of mbarriers, which one lane of a warp waits for or arrives at for all.
    for tool in memcheck racecheck initcheck; do for program in recon_test_cuda recon_test_cuda_pet recon_test_cuda_scatter 'recon_test_cuda_parallel --small'; do
        echo "== compute-sanitizer $tool $program"
        # shellcheck disable=SC2086  # program and its option
        compute-sanitizer --tool $tool --error-exitcode 9 ./$program 2>&1 | grep -E 'ERROR SUMMARY|RACECHECK SUMMARY|FAILED|=========     at' | head -20
        [ "${PIPESTATUS[0]}" = 0 ] || { echo "FAILED: $tool $program"; failed=1; }
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
