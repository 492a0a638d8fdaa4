#!/bin/bash
# Layer lint: the arrows of the house, read off the #includes, and a few things that must not be in the tree.
#
#   node -> dicom, recon;  recon -> kernels;  dicom -> kernels/err.h only;  kernels -> nothing
#   DCMTK only in dicom/*.cc and dicom/*.hh (which nobody else includes), OpenSSL's TLS only in dicom/tls*.cc, CUDA only in
#   kernels/*.cu, libconfig only in node/config*.c, SQLite only in node/journal*.[ch], syslog only in node/log.[ch],
#   libmicrohttpd only in node/status_http.c, seccomp and Landlock only in node/sandbox*.c
#
# usage: tests/lint.sh ROOT     exit 0: clean, 1: findings (printed as file:line: why)
# It first proves on a made-up tree that each rule finds what it is there for.
set -euo pipefail
export LC_ALL=C

# rule FILES PATTERN EXCEPT WHY: lines of FILES (names on lines of their own) that match PATTERN, but not EXCEPT, are findings.
# Works in the current folder; EXCEPT is matched against "file:line:text".
findings=0
rule() {
    local names=$1 pattern=$2 except=$3 why=$4 hits
    local files=()
    mapfile -t files < <(grep . <<<"$names" || true)
    [ ${#files[@]} -gt 0 ] || return 0
    hits=$(grep -nHE -- "$pattern" "${files[@]}" || true)
    [ -z "$except" ] || hits=$(echo "$hits" | grep -vE -- "$except" || true)
    [ -n "$hits" ] || return 0
    while IFS= read -r hit; do
        echo "$(echo "$hit" | cut -d: -f1,2): $why: $(echo "$hit" | cut -d: -f3- | sed 's/^[[:space:]]*//')"
        findings=$((findings + 1))
    done <<<"$hits"
}

# sources FOLDER...: every source below them, at whatever level.
sources() {
    local folder
    for folder in "$@"; do
        [ ! -d "$folder" ] || find "$folder" -type f '(' -name '*.c' -o -name '*.h' -o -name '*.cc' -o -name '*.hh' -o -name '*.cu' -o -name '*.cuh' ')'
    done | sort
}
# files GLOB...: those that are there.
files() {
    local file
    for file in "$@"; do
        [ ! -f "$file" ] || echo "$file"
    done
}
include='^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"]'

lint() ( # lint ROOT: a subshell, so that the caller stays where it is
    cd "$1"
    all=$(sources kernels recon dicom node tests)
    # the arrows
    rule "$(sources kernels)" "$include(recon|dicom|node)/" "" "kernels/ includes nothing above it"
    rule "$(sources recon)" "$include(dicom|node)/" "" "recon/ includes recon/ and kernels/ alone"
    rule "$(sources dicom)" "$include(recon|node)/" "" "dicom/ includes dicom/ and kernels/err.h alone"
    rule "$(sources dicom)" "${include}kernels/" "[<\"]kernels/err\.h[>\"]" "of kernels/, dicom/ may use err.h alone"
    # who may know which library
    rule "$all" "${include}dcmtk/" '^dicom/([a-z]+/)?[^/]*\.(cc|hh):' "DCMTK stays in dicom/*.cc (and the .hh that only these include)"
    rule "$all" "${include}[^>\"]*\.hh" '^dicom/([a-z]+/)?[^/]*\.(cc|hh):' "a .hh is for dicom/*.cc alone"
    rule "$all" "$include(cuda|cooperative_groups|cub/|thrust/|nvtx|texture_)" '^kernels/([a-z]+/)?[^/]*\.cuh?:' "CUDA stays in kernels/*.cu"
    rule "$all" "${include}libconfig" '^node/([a-z]+/)?config[^/]*\.c:' "libconfig stays in node/config*.c"
    rule "$all" "${include}sqlite3" '^node/([a-z]+/)?journal(_[a-z]+)?\.[ch]:|^tests/node/' "SQLite stays in node/journal*.[ch]"
    rule "$all" "${include}openssl/(ssl|err|x509|pem|bio)" '^dicom/([a-z]+/)?tls[^/]*\.(cc|hh):' "TLS stays in dicom/tls*.cc"
    rule "$all" "${include}seccomp\.h|${include}linux/landlock" '^node/([a-z]+/)?sandbox[^/]*\.c:' "seccomp and Landlock stay in node/sandbox*.c"
    rule "$all" "$include(sys/)?syslog\.h" '^node/([a-z]+/)?log\.[ch]:' "syslog stays in node/log.c"
    rule "$all" "${include}microhttpd" '^node/([a-z]+/)?status_http\.c:' "libmicrohttpd stays in node/status_http.c"
    # an include starts at the root
    rule "$all" "${include}\.\.?/" "" "includes start at the root"
    # things that do not belong into the tree
    rule "$(sources kernels recon dicom node; files conf/* docs/*.md deploy/* tests/*.sh tests/system/* *.md *.txt .ci/*)" \
        "/(home|Users)/[A-Za-z0-9]" '^tests/lint\.sh:' "a path of one machine"
    rule "$all
$(files conf/* deploy/* tests/system/* CMakeLists.txt */CMakeLists.txt)" \
        '(^|[^A-Za-z0-9_])(TODO|FIXME|XXX)([^A-Za-z0-9_]|$)' '' "unfinished work belongs into an issue"
    [ "$findings" -eq 0 ]
)

# Each line: a file of the made-up tree, its text, and whether the rules must object.
self_test() {
    local tree file text want got failed=0
    tree=$(mktemp -d)
    while IFS='|' read -r want file text; do
        [ -n "$file" ] || continue
        mkdir -p "$tree/$(dirname "$file")"
        printf '%s\n' "$text" >"$tree/$file"
        got=clean
        lint "$tree" >/dev/null || got=found
        if [ "$got" != "$want" ]; then
            echo "lint: self-test: \"$text\" in $file: expected $want, got $got" >&2
            failed=1
        fi
        rm "$tree/$file"
    done <<'CASES'
clean|kernels/a.c|#include "kernels/err.h"
found|kernels/a.c|#include "recon/scan.h"
found|kernels/a.cu|#include "node/log.h"
found|kernels/cuda/a.cuh|#include "recon/scan.h"
found|recon/core/a.c|#include "dicom/dataset.h"
found|dicom/network/a.cc|#include "kernels/device.h"
found|tests/node/store/a.c|#include <libconfig.h>
clean|node/config/config_file.c|#include <libconfig.h>
clean|recon/a.c|#include "kernels/device.h"
found|recon/a.h|#include "dicom/dataset.h"
clean|dicom/a.cc|#include "kernels/err.h"
found|dicom/a.cc|#include "kernels/device.h"
found|dicom/a.h|#include "recon/scan.h"
clean|node/a.c|#include "recon/dbt.h"
clean|dicom/a.cc|#include "dcmtk/dcmdata/dctk.h"
clean|dicom/a.hh|#include "dcmtk/dcmdata/dctk.h"
clean|dicom/a.cc|#include "dicom/internal.hh"
found|dicom/a.h|#include "dicom/internal.hh"
found|node/a.c|#include "dicom/internal.hh"
found|dicom/a.h|#include "dcmtk/dcmdata/dctk.h"
found|node/a.c|#include <dcmtk/config/osconfig.h>
clean|kernels/a.cu|#include <cuda_runtime.h>
found|kernels/a.c|#  include <cuda_runtime.h>
found|recon/a.c|#include <cuda.h>
clean|node/config_file.c|#include <libconfig.h>
found|node/serve.c|#include <libconfig.h>
clean|node/journal_events.c|#include <sqlite3.h>
found|node/spool.c|#include <sqlite3.h>
clean|node/log.h|#include <syslog.h>
found|node/serve.c|#include <syslog.h>
clean|dicom/tls.cc|#include <openssl/ssl.h>
clean|node/a.c|#include <openssl/evp.h>
found|dicom/association.cc|#include <openssl/ssl.h>
found|node/receiver.c|#include <openssl/err.h>
clean|node/status_http.c|#include <microhttpd.h>
found|node/status_page.c|#include <microhttpd.h>
clean|node/sandbox_calls.c|#include <seccomp.h>
found|node/serve.c|#include <seccomp.h>
found|recon/a.c|#include "../kernels/err.h"
found|conf/a.conf|spool = "/home/someone/spool";
found|node/a.c|	/* TODO: the rest */
clean|node/a.c|	/* the method of the other */
CASES
    rm -rf "$tree"
    return $failed
}

root=${1:?usage: tests/lint.sh ROOT}
if [ ! -f "$root/kernels/err.h" ]; then
    echo "lint: $root is not the root of the source tree" >&2
    exit 2
fi
self_test || exit 1
if lint "$root"; then
    echo "lint: clean"
else
    echo "lint: findings, see above" >&2
    exit 1
fi
