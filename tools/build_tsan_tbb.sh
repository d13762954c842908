#!/usr/bin/env bash
# Builds Debian's oneTBB with the thread sanitizer into build/deps/tsan, where the preset tsan looks for it.
#
# Debian's own library is not instrumented: the sanitizer would see no order between a task and whoever waits for it, and
# would report races that are none. The source is Debian's package of the same version, fetched by apt; a build that is
# there already is kept. Fails if the source cannot be had.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
prefix=$root/build/deps/tsan
work=$root/build/deps/tsan-work

installed_version() { dpkg-query -W -f '${source:Version}' libtbb-dev; }

# apt's own sources with source packages switched on, in a list that only this script reads.
enable_source_packages() {
  local lists=$work/apt
  mkdir -p "$lists/parts" "$lists/state/partial"
  : > "$lists/sources.list"
  local file
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [[ -f $file ]] && sed -nE 's/^deb[[:space:]]/deb-src /p' "$file" >> "$lists/sources.list"
  done
  for file in /etc/apt/sources.list.d/*.sources; do
    [[ -f $file ]] && sed -E 's/^Types:.*/Types: deb-src/' "$file" > "$lists/parts/$(basename "$file")"
  done
  apt_options=(-o "Dir::Etc::SourceList=$lists/sources.list" -o "Dir::Etc::SourceParts=$lists/parts"
               -o "Dir::State::Lists=$lists/state" -o "APT::Sandbox::User=root" -o "Acquire::Languages=none")
  # A repository without source packages (a third party's) is an error to apt, but no reason to stop.
  apt-get -qq "${apt_options[@]}" update || true
}

fetch_source() {
  local version=$1
  cd "$work"
  apt_options=()
  apt-get -qq source --download-only "onetbb=$version" 2> /dev/null && return
  enable_source_packages
  apt-get -qq "${apt_options[@]}" source --download-only "onetbb=$version" && return
  echo "build_tsan_tbb: no source package onetbb $version from the configured apt sources." >&2
  echo "build_tsan_tbb: the thread sanitizer cannot be trusted without it; check /etc/apt/sources.list*." >&2
  exit 1
}

version=$(installed_version)
if [[ -f $prefix/version && $(< "$prefix/version") == "$version" ]]; then
  echo "build_tsan_tbb: $version is built already"
  exit 0
fi

rm -rf "$work" "$prefix"
mkdir -p "$work"
fetch_source "$version"
# apt has checked the hashes; the uploader's signature would need a keyring.
dpkg-source --no-check -x "$work"/onetbb_*.dsc "$work/source" > /dev/null
cmake -S "$work/source" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_INSTALL_PREFIX="$prefix" \
  -DCMAKE_INSTALL_LIBDIR=lib -DTBB_SANITIZE=thread -DTBB_TEST=OFF -DTBB_STRICT=OFF -DTBBMALLOC_BUILD=OFF \
  -DTBB_DISABLE_HWLOC_AUTOMATIC_SEARCH=ON > "$work/configure.log"
ninja -C "$work/build" --quiet install > "$work/build.log" 2>&1 || { tail -n 40 "$work/build.log" >&2; exit 1; }
echo "$version" > "$prefix/version"
rm -rf "$work"
echo "build_tsan_tbb: built $version into build/deps/tsan"
