#!/bin/sh
# Build the shim with its stress program three times (plain, AddressSanitizer with UBSan, ThreadSanitizer) and run it.
# Every warning is an error. Needs a C compiler only.
set -eu
cd "$(dirname "$0")/.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cc=${CC:-cc}
flags="-std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -g -O1 -Inative/include -Inative/shim"
for kind in plain address,undefined thread; do
    sanitizer=""
    [ "$kind" = plain ] || sanitizer="-fsanitize=$kind -fno-sanitize-recover=all"
    # shellcheck disable=SC2086  # flags are words
    $cc $flags $sanitizer -shared -fPIC -fvisibility=hidden tests/native/burst_library.c -o "$out/libburst.so" -pthread
    # shellcheck disable=SC2086
    $cc $flags $sanitizer tests/native/shim_stress.c native/shim/ring.c native/shim/dcmi_shim.c -o "$out/stress" -pthread -ldl
    printf '%-18s ' "$kind"
    # ThreadSanitizer cannot map its shadow with the randomisation of some kernels.
    if [ "$kind" = thread ] && command -v setarch >/dev/null; then
        setarch "$(uname -m)" -R "$out/stress" "$out/libburst.so"
    else
        "$out/stress" "$out/libburst.so"
    fi
done
