#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Check that all sources are formatted according to .clang-format. Needs clang-format 14 (of Debian 12), because other versions format
# differently; skipped (77) with another version.
#
# usage: tests/format.sh [ROOT]
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"
for program in clang-format-14 clang-format; do
    if "$program" --version 2>/dev/null | grep -q 'version 14\.'; then
        find kernels recon dicom node tests -name '*.c' -o -name '*.h' -o -name '*.cc' -o -name '*.hh' -o -name '*.cu' -o -name '*.cuh' |
            sort | xargs "$program" --dry-run -Werror
        echo "format: clean"
        exit 0
    fi
done
echo "skipped: clang-format 14 is not installed (Debian 12: clang-format)"
exit 77
