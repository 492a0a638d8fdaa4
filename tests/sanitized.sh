#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run one test of a build with sanitizers; fail if any process that it started wrote a report, however that process ended.
#
# usage: tests/sanitized.sh FOLDER NAME COMMAND [ARGUMENT...]     (called by CTest, see tests/CMakeLists.txt)
#        tests/sanitized.sh --options FOLDER                      print the environment that sends reports to FOLDER (for tests/conftest.py)
# Reports are written to FOLDER/NAME/report.PROCESS: on standard error they would be lost in the log of a node that the test removes, and
# the exit code of a process that the test kills, or whose crash the node survives, is not checked. Every process can write there,
# because a build with sanitizers has no sandbox. The files of a failed test are kept.
# Exit code: the command's; 66 if it passed or was skipped, and there are reports.
set -uo pipefail
if [ "${1:-}" = --options ]; then
    folder=$2
else
    [ $# -ge 3 ] || { sed -n '3,11s/^# \{0,1\}//p' "$0"; exit 2; }
    folder=$1/${2//\//_}
    rm -rf "$folder"
    mkdir -p "$folder" || exit 1
    chmod 1777 "$folder" # the processes of a node can run as a different user
fi
tests=$(cd "$(dirname "$0")" && pwd)
log="log_path='$folder/report'"
# libarcher recommends ignore_noninstrumented_modules=1 on standard error; not set, so that accesses of DCMTK and SQLite to this program's memory are checked.
tsan="suppressions='$tests/tsan.supp':exitcode=66:second_deadlock_stack=1"
export TSAN_OPTIONS="$tsan:${TSAN_OPTIONS:-}:$log" ASAN_OPTIONS="${ASAN_OPTIONS:-}:$log" UBSAN_OPTIONS="print_stacktrace=1:${UBSAN_OPTIONS:-}:$log"
export LSAN_OPTIONS="print_suppressions=0:${LSAN_OPTIONS:-}" # suppressed findings are not reports
if [ "$1" = --options ]; then
    env | grep -E '^(TSAN|ASAN|UBSAN|LSAN)_OPTIONS='
    exit
fi
shift 2

"$@"
code=$?
reports=("$folder"/*)
if [ -e "${reports[0]}" ]; then
    echo "sanitizers: ${#reports[@]} processes of this test wrote reports, see $folder"
    for report in "${reports[@]:0:5}"; do
        echo "---- $report"
        head -n 80 "$report"
    done
    [ "$code" -ne 0 ] && [ "$code" -ne 77 ] || code=66
else
    rmdir "$folder"
fi
exit "$code"
