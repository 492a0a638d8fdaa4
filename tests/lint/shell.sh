#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# No shell script has a warning or an error of shellcheck; --help prints the description. Skipped (77) where it is not installed.
#
# usage: tests/lint/shell.sh [ROOT]
set -euo pipefail
cd "${1:-$(dirname "$0")/../..}"
if ! command -v shellcheck >/dev/null; then
    echo "shell: shellcheck is not installed (deploy/install-deps.sh checks): skipped"
    exit 77
fi
if shellcheck --severity=warning --shell=bash - <<<'rm -f $1/*; cd x' >/dev/null; then
    echo "shell: a planted mistake was not found" >&2
    exit 1
fi
find .ci/run deploy tests -name '*.sh' -o -path .ci/run | sort | xargs shellcheck --severity=warning
for script in deploy/bundle.sh deploy/demo.sh deploy/package.sh tests/run.sh; do
    help=$("$script" --help)
    if [[ $help != *usage:* || $help == *SPDX* ]]; then
        echo "shell: $script --help prints other lines than its description" >&2
        exit 1
    fi
done
echo "shell: clean"
