#!/usr/bin/env bash
# Builds and tests everything; the last lines are a table of what ran, how long it took, and what failed.
#
#   tools/test.sh [STAGE...]      default: rules to asan; `all` stands for every stage, in this order
#
#   rules         include directions, names quoted in documents
#   release       release build, unit tests, conformance
#   package       installs the release build elsewhere and builds a small program against it
#   headers       every header compiles alone, without the precompiled ones
#   asan          address and undefined-behaviour sanitizers, kernels that compute as in the release: unit tests, conformance
#   tsan          thread sanitizer (with an instrumented oneTBB), likewise: threads, stress, scattered conformance
#   asan-kernels  as asan, with all kernels (some 25 minutes on two cores)
#
# Conformance cases beyond tests/golden are looked for in $THALWEG_CONFORMANCE (default: ../shared/conformance); the table
# says if they are not there. JOBS sets the number of parallel jobs (default: one per core).
# Exit 1 if anything failed. Logs lie in build/logs.
# shellcheck disable=SC2317  # stages are called by name
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 1

jobs=${JOBS:-$(nproc)}
quiet=(--quiet)  # of ninja: a line per file helps only whoever watches
[[ -t 1 ]] && quiet=()
python=/usr/bin/python3  # Debian's, which has Debian's numpy
logs=$root/build/logs
mkdir -p "$logs"
rm -rf "${logs:?}"/*

# Threads of OpenMP are not instrumented; the engine holds OpenMP to one thread itself, but not before its first step.
export OMP_NUM_THREADS=1
export ASAN_OPTIONS=allocator_may_return_null=1:detect_stack_use_after_return=1:strict_string_checks=1
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=second_deadlock_stack=1:suppressions=$root/tests/tsan.supp

# ---- steps: a named command with a time, a log and a result ------------------------------------------------------------

rows=()     # "stage|step|seconds|result|note"
stage=
blocked=    # the step that makes the rest of its stage pointless
failed=0

note_row() { rows+=("$stage|$1|$2|$3|$4"); }

# step NAME COMMAND...: runs the command, keeps its output, shows the end of it if it fails.
step() {
  local name=$1 log="$logs/$stage-${1// /-}.log" started=$SECONDS result=ok
  shift
  if [[ -n $blocked ]]; then
    note_row "$name" 0 "not run" "after $blocked"
    return 1
  fi
  printf '== %s: %s\n' "$stage" "$name"
  "$@" 2>&1 | tee "$log"
  [[ ${PIPESTATUS[0]} == 0 ]] || result=FAILED
  note_row "$name" $((SECONDS - started)) "$result" "$(note_of "$log")"
  [[ $result == ok ]] && return 0
  failed=1
  printf '== %s: %s FAILED (see %s)\n' "$stage" "$name" "${log#"$root"/}"
  return 1
}

# The rest of the stage needs this step.
step_or_stop() { step "$@" || { [[ -n $blocked ]] || blocked=$1; return 1; }; }

# The last line of a log that sums it up: "NOTE: ...".
note_of() { sed -n 's/^NOTE: //p' "$1" | tail -n 1; }

# ---- what the steps run ------------------------------------------------------------------------------------------------

# build PRESET TARGET...
build() {
  local preset=$1
  shift
  cmake --preset "$preset" > "$logs/configure-$preset.log" 2>&1 || { tail -n 30 "$logs/configure-$preset.log"; return 1; }
  ninja -C "build/$preset" -j "$jobs" "${quiet[@]}" "$@"
}

# compile_times PRESET: the slowest files; what ccache knew took no time. The rule is 60 s for a file alone.
compile_times() {
  "$python" tools/compile_times.py "build/$1" --top 20 --limit 60
}

# unit_tests PRESET [FOLDER...]: the test programs of these folders, all without any.
unit_tests() {
  local preset=$1 report="$logs/gtest-$1" status=0
  shift
  local chosen=("$@")
  [[ $# -gt 0 ]] && chosen=(-R "^($(IFS='|'; echo "$*"))\$")
  rm -rf "$report"
  GTEST_OUTPUT=xml:$report/ ctest --test-dir "build/$preset" -j "$jobs" --output-on-failure --no-tests=error \
    "${chosen[@]}" || status=1
  sed -nE 's/^<testsuites tests="([0-9]+)" failures="([0-9]+)".*/\1 \2/p' "$report"/*.xml |
    awk '{ run += $1; bad += $2 } END { printf "NOTE: %d tests, %d failed\n", run, bad }'
  return "$status"
}

# conformance SUITE [PRESET]: the cases of tests/golden and of the conformance folder, in the modes of that suite.
conformance() {
  "$python" tests/conformance/run_conformance.py --suite "$1" --bin "build/${2:-$1}/thalweg" --jobs "$jobs"
}

# ---- stages ------------------------------------------------------------------------------------------------------------

stage_rules() {
  step "layers" "$python" tools/check_layers.py
  step "documents" "$python" tools/check_docs.py
}

stage_release() {
  step_or_stop "build" build release
  step "compile times" compile_times release
  step "unit tests" unit_tests release
  step "conformance" conformance release
}

stage_headers() {
  step "headers" build release check_headers
}

stage_package() {
  step_or_stop "build" build release
  step "program outside the tree" tests/package/test_package.sh build/release
}

stage_asan() { sanitized_addresses asan; }

stage_asan-kernels() { sanitized_addresses asan-kernels; }

sanitized_addresses() {
  step_or_stop "build" build "$1"
  step "unit tests" unit_tests "$1"
  step "conformance" conformance asan "$1"
}

stage_tsan() {
  step_or_stop "oneTBB" tools/build_tsan_tbb.sh
  step_or_stop "build" build tsan thalweg devices_tests runtime_tests stress_tests
  step "unit tests" unit_tests tsan devices runtime stress
  step "conformance" conformance tsan
}

# ---- the run -----------------------------------------------------------------------------------------------------------

print_table() {
  local row passed=0 bad=0 skipped=0
  printf '\n%-13s %-24s %9s  %-9s %s\n' stage step time result ''
  for row in "${rows[@]}"; do
    IFS='|' read -r s name seconds result note <<< "$row"
    printf '%-13s %-24s %4d:%02d  %-9s %s\n' "$s" "$name" $((seconds / 60)) $((seconds % 60)) "$result" "$note"
    case $result in
      ok) passed=$((passed + 1)) ;;
      FAILED) bad=$((bad + 1)) ;;
      *) skipped=$((skipped + 1)) ;;
    esac
  done
  printf '\nin all %d:%02d\n' $((SECONDS / 60)) $((SECONDS % 60))
  printf '%d passed, %d failed, %d skipped\n' "$passed" "$bad" "$skipped"
}

all_stages=(rules release package headers asan tsan asan-kernels)
chosen_stages=("$@")
[[ $# == 0 ]] && chosen_stages=("${all_stages[@]:0:5}")
[[ "$*" == all ]] && chosen_stages=("${all_stages[@]}")
for stage in "${chosen_stages[@]}"; do
  if ! declare -F "stage_$stage" > /dev/null; then
    echo "test.sh: no stage '$stage'; there are: ${all_stages[*]}" >&2
    exit 2
  fi
done
for stage in "${chosen_stages[@]}"; do
  blocked=
  "stage_$stage"
done
print_table
exit $failed
