#!/usr/bin/env bash
# Installs a build to a folder of its own, builds the programs of this folder against it, and runs them.
#
#   tests/package/test_package.sh BUILD_DIR
#
# Checked besides: no header of the package names protobuf, Eigen, oneTBB, oneDNN or Highway, and every symbol that the
# library exports is one of thalweg's own.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(realpath "$1")
work=$build/package_test
others='protobuf|Eigen|\btbb\b|oneapi|dnnl|\bhwy\b'

fail() {
  echo "test_package: $*" >&2
  exit 1
}

expect() {  # expect TEXT COMMAND...
  local text=$1 output
  shift
  output=$("$@") || fail "$* ended with $?: $output"
  echo "$output"
  [[ $output == *"$text"* ]] || fail "$* should have printed '$text'"
}

rm -rf "$work"
cmake --install "$build" --prefix "$work/installed" > /dev/null
cmp "$root/LICENSE" "$work/installed/share/licenses/thalweg/LICENSE" || fail "the package lacks its licence"
if grep -rnE "^[^/]*($others)" "$work/installed/include"; then fail "a public header names another library"; fi
library=$(echo "$work"/installed/lib*/libthalweg.so "$work"/installed/lib/*/libthalweg.so | tr ' ' '\n' | grep -v '\*' | head -n 1)
if nm -DC --defined-only "$library" | cut -d ' ' -f 3- | grep -vE '^((typeinfo|typeinfo name|vtable) for )?thalweg::'; then
  fail "the library exports a symbol that is not thalweg's"
fi
echo "exported symbols: $(nm -D --defined-only "$library" | wc -l)"

cmake -S "$here" -B "$work/user" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$work/installed" > "$work/configure.log" ||
  { cat "$work/configure.log" >&2; fail "find_package(thalweg) failed"; }
ninja -C "$work/user" --quiet
expect 'digit int64[1] {1}' "$work/user/recognise" "$root/tests/golden/digits/digits.pb"
expect 'sum 3, crossings 2' "$work/user/neighbours"
