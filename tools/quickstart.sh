#!/usr/bin/env bash
# From a fresh Debian 12 to a first answer: installs what is missing, builds the release, and lets a trained network read a
# handwritten seven: the answer, which node runs where and why, and a trace.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

./tools/setup.sh
echo "quickstart: building build/release/thalweg"
cmake --preset release > /dev/null
quiet=(--quiet)
[[ -t 1 ]] && quiet=()
ninja -C build/release "${quiet[@]}" thalweg_program

digits=tests/golden/digits
show() {
  printf '\n$ %s\n' "$*"
  "$@"
}
PATH=$root/build/release:$root/tools:$PATH
show thalweg run $digits/digits.pb -i image=@$digits/digit_7.png:f32,nhwc,0..1 -f digit -f prob --print --trace build/digits_trace.json
show trace_summary.py build/digits_trace.json 5
show thalweg place $digits/digits.pb -d CPU:0,GPU:0=sim -f digit
printf '\nThe whole trace is build/digits_trace.json: open it in ui.perfetto.dev or chrome://tracing.\n'
printf 'Next: ./tools/test.sh runs all tests.\n'
