#!/bin/bash
# What a GPU machine is asked about the kernels and the reconstruction, in one go: do the devices agree, is memory used rightly, how fast is it.
#
# usage: tests/gpu/kernels.sh [--sanitizer] [FOLDER]     FOLDER: where recon_test_cuda*, bench_* lie (default: the
#        folder above, as in the bundle). Libraries are looked for in FOLDER and in FOLDER/../lib. Needs a CUDA device; with
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
full=2816x3584x60
failed=0

step() {
    echo "== $*"
    "$@" || { echo "FAILED: $*"; failed=1; }
}

step ./recon_test_cuda
step ./recon_test_cuda_pet
step ./recon_test_cuda_parallel
if [ $sanitizer = yes ]; then
    for tool in memcheck racecheck initcheck; do for program in recon_test_cuda recon_test_cuda_pet 'recon_test_cuda_parallel --small'; do
        echo "== compute-sanitizer $tool $program"
        # shellcheck disable=SC2086  # program and its option
        compute-sanitizer --tool $tool --error-exitcode 9 ./$program 2>&1 | grep -E 'ERROR SUMMARY|RACECHECK SUMMARY|FAILED|=========     at' | head -20
        [ "${PIPESTATUS[0]}" = 0 ] || { echo "FAILED: $tool $program"; failed=1; }
    done; done
fi
for model in slices exact; do # CPU against CUDA after OSEM-25
    step ./bench_agree --model $model
    step ./bench_agree --model $model --deterministic --no-gap
    step ./bench_agree --model $model --tile 88x56 --no-gap
    step ./bench_agree --model $model --size 705x897x61 --views 9
done
step ./bench_agree --size $full
step ./bench_agree --size $full --model exact --views 3
step ./bench_agree --devices cuda,cuda --no-gap --size $full --tile 88x56
step ./bench_agree --devices cuda,cuda --no-gap --size $full --memory-limit 1000000000
step ./bench_agree --devices cuda,cuda --no-gap --size $full --memory-limit 1000000000 --algorithm mlem
step ./recon_test_bench
step ./bench_all --device cuda
step ./bench_dbt --device cuda --repeat 15
step ./bench_dbt --device cuda --repeat 15 --tile 88x56
step ./bench_dbt --device cuda --size $full --repeat 7
step ./bench_dbt --device cuda --size $full --views-per-subset 25
step ./bench_dbt --device cuda --size $full --rule transmission
step ./bench_dbt --device cuda --model exact
step ./bench_dbt --device cuda --model exact --size $full --repeat 3
for matrix in 256 128; do
    step ./bench_pet --device cuda --matrix $matrix --repeat 15
    step ./bench_pet --device cuda --matrix $matrix --repeat 5 --check --deterministic
    step ./bench_pet --device cuda --matrix $matrix --repeat 5 --model joseph
done
step ./bench_pet --device cuda --matrix 256 --fov 200 --repeat 15 --check
for work in radon bp fbp filter art; do
    step ./bench_parallel --device cuda --work $work
    step ./bench_parallel --device cuda --work $work --slices 256
done
step ./bench_parallel --device cuda --work fbp --size 2048 --angles 2048
step ./bench_parallel --device cuda --work art --size 2048 --angles 2048 --repeat 3
exit $failed
