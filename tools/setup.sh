#!/usr/bin/env bash
# Installs the Debian packages of tools/packages.txt that are missing, from the package sources the system is set up with.
# Needs root, or sudo, only if something is missing.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

is_installed() { [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }

as_root() {
  if [[ $(id -u) == 0 ]]; then env DEBIAN_FRONTEND=noninteractive "$@"
  else sudo env DEBIAN_FRONTEND=noninteractive "$@"; fi
}

missing=()
read -r -d '' -a wanted < <(sed 's/#.*//' "$root/tools/packages.txt") || true
for package in "${wanted[@]}"; do
  is_installed "$package" || missing+=("$package")
done
if [[ ${#missing[@]} == 0 ]]; then
  echo "setup: all packages are installed"
  exit 0
fi

echo "setup: installing ${missing[*]}"
log=$(mktemp)
as_root apt-get -qq update
as_root apt-get -qq -o Dpkg::Use-Pty=0 install -y --no-install-recommends "${missing[@]}" > "$log" 2>&1 ||
  { tail -n 30 "$log" >&2; exit 1; }
rm -f "$log"
echo "setup: installed ${#missing[@]} packages"
