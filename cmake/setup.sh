#!/bin/sh
# Gets a Debian 12 machine ready to build and test: installs the Debian packages
# that are missing and makes a Python environment for the tests. Does nothing,
# in a fraction of a second and without the network, when all is there.
#
# usage: cmake/setup.sh [packages] [python]     (both when none is named)
set -eu
cd "$(dirname "$0")/.."

# What LLVM's CMake files look up (zlib, zstd, ...) comes with what we use.
packages="
  cmake ninja-build ccache clang-22 lld-22 clang-format-22 libclang-rt-22-dev
  llvm-22-dev llvm-22-tools libmlir-22-dev mlir-22-tools
  libzstd-dev zlib1g-dev libxml2-dev libedit-dev libcurl4-openssl-dev libffi-dev
  libdnnl-dev nlohmann-json3-dev libgtest-dev
  ca-certificates python3 python3-dev python3-venv xz-utils"

fail() {
  echo "setup: error: $*" >&2
  exit 1
}

is_installed() {
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

is_offered() {
  apt-cache show "$1" >/dev/null 2>&1
}

# Debian 12 has LLVM 22 in its security suite, which a machine made with
# debootstrap may lack.
add_security_suite() {
  is_offered libmlir-22-dev && return 0
  grep -qs '^VERSION_CODENAME=bookworm$' /etc/os-release || return 0
  list=/etc/apt/sources.list.d/debian-security.list
  echo "setup: adding Debian's security suite, where LLVM 22 is, in $list"
  echo "deb http://deb.debian.org/debian-security bookworm-security main" |
    $root tee "$list" >/dev/null
  $root apt-get update -q || fail "apt-get update failed"
}

install_packages() {
  command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
    fail "expected Debian 12 or a relative of it, but found no apt-get; install" \
      "what these packages hold by hand and build with cmake:" $packages
  missing=
  for package in $packages; do
    is_installed "$package" || missing="$missing $package"
  done
  [ -n "$missing" ] || return 0

  root=
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null ||
      fail "expected root or sudo to install packages; run as root:" \
        "apt-get install --no-install-recommends$missing"
    root=sudo
  fi
  echo "setup: installing Debian packages:$missing"
  $root apt-get update -q || fail "apt-get update failed"
  add_security_suite
  for package in $missing; do
    is_offered "$package" || fail \
      "no package '$package' in this machine's package sources; LLVM 22 is in" \
      "Debian 12's security suite, and for other releases at https://apt.llvm.org"
  done
  $root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends $missing ||
    fail "apt-get install failed"
}

make_python() {
  requirements=test/requirements.txt
  # The copy of the requirements is written last: it says that .venv is whole.
  cmp -s "$requirements" .venv/requirements.txt && return 0
  echo "setup: making the Python environment .venv"
  # Debian's own Python, the one that python3-venv belongs to.
  python=/usr/bin/python3
  [ -x "$python" ] || python=python3
  "$python" -m venv --clear .venv || fail "cannot make a Python environment in .venv"
  .venv/bin/python -m pip install -q --disable-pip-version-check -r "$requirements" ||
    fail "pip could not install $requirements"
  cp "$requirements" .venv/requirements.txt
}

[ $# -gt 0 ] || set -- packages python
for step; do
  case $step in
  packages) install_packages ;;
  python) make_python ;;
  *) fail "expected 'packages' or 'python', but got '$step'" ;;
  esac
done
