#!/bin/sh
# Build each shim with its stress program three times (plain, AddressSanitizer with UBSan, ThreadSanitizer) and run it.
# Every warning is an error. Needs a C compiler only.
set -eu
cd "$(dirname "$0")/.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cc=${CC:-cc}
flags="-std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -g -O1 -Inative/include -Inative/shim"

# stress KIND PROGRAM LIBRARY SHIM: the files without folder and ending.
stress() {
    sanitizer=""
    [ "$1" = plain ] || sanitizer="-fsanitize=$1 -fno-sanitize-recover=all"
    # shellcheck disable=SC2086  # flags are words
    $cc $flags $sanitizer -shared -fPIC -fvisibility=hidden "tests/native/$3.c" -o "$out/$3.so" -pthread
    # shellcheck disable=SC2086
    $cc $flags $sanitizer "tests/native/$2.c" native/shim/ring.c native/shim/shim_common.c "native/shim/$4.c" \
        -o "$out/$2" -pthread -ldl
    printf '%-18s %-12s ' "$1" "$2"
    # ThreadSanitizer cannot map its shadow with the randomisation of some kernels.
    if [ "$1" = thread ] && command -v setarch >/dev/null; then
        setarch "$(uname -m)" -R "$out/$2" "$out/$3.so"
    else
        "$out/$2" "$out/$3.so"
    fi
}

for kind in plain address,undefined thread; do
    stress "$kind" shim_stress burst_library dcmi_shim
    stress "$kind" lq_stress lq_burst_library lq_shim
done
