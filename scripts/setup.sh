#!/usr/bin/env bash
# Installs what is missing on a bare Debian 12 with Rust (rustup, cargo); does nothing, quickly, when all is there.
#
# Usage: scripts/setup.sh PURPOSE...      PURPOSE: build, lint, bench, pgo, fuzz or judge
#
# Debian packages need root. Without it the script names the command that root would have to run, and exits 1.
set -euo pipefail

readonly CARGO_DENY_VERSION=0.20.2
readonly CARGO_MACHETE_VERSION=0.9.2
readonly CARGO_FUZZ_VERSION=0.13.2
packages=()

say() { echo "setup: $*" >&2; }

die() {
  say "$@"
  exit 1
}

need_package() {
  local package=$1
  shift
  "$@" >/dev/null 2>&1 || packages+=("$package")
}

install_packages() {
  ((${#packages[@]})) || return 0
  if ((EUID != 0)); then
    say "missing Debian packages: ${packages[*]}. Run this as root, then repeat:"
    die "  apt-get update && apt-get install --yes --no-install-recommends ${packages[*]}"
  fi
  command -v apt-get >/dev/null || die "missing: ${packages[*]} (Debian names). Install them with your system's tools."
  say "installing ${packages[*]}"
  export DEBIAN_FRONTEND=noninteractive
  # The lists of a bare image are empty or old.
  apt-get update --quiet=2
  # A server that is installed for a test or a benchmark is not to be started as a service.
  RUNLEVEL=1 apt-get install --yes --no-install-recommends "${packages[@]}"
}

# Compiles and links one C program, because a compiler without libc's headers passes `cc --version`.
c_compiler_works() {
  local directory
  directory=$(mktemp -d)
  printf '#include <stdlib.h>\nint main(void) { return EXIT_SUCCESS; }\n' >"$directory/probe.c"
  local status=0
  cc -o "$directory/probe" "$directory/probe.c" || status=$?
  rm -r "$directory"
  return "$status"
}

need_rustup_component() {
  local component=$1
  shift
  "$@" >/dev/null 2>&1 && return
  command -v rustup >/dev/null || die "$component is missing, and there is no rustup to install it with."
  say "installing the $component component"
  rustup component add "$component"
}

# Builds a tool of Cargo's unless it is there in this version, which the given command prints, alone or after its name.
need_cargo_tool() {
  local tool=$1 version=$2
  shift 2
  [[ " $("$@" 2>/dev/null) " == *" $version "* ]] && return
  say "building $tool $version; this takes some minutes, once"
  # Not optimized: it runs for seconds.
  CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
    cargo install "$tool" --quiet --locked --force --version "$version"
}

need_cargo() {
  command -v cargo >/dev/null || die "cargo is missing. Install Rust with rustup first."
  cargo --version >/dev/null || die "cargo does not run. Install a Rust toolchain: rustup toolchain install stable"
}

setup_build() {
  need_cargo
  # Compressors (zstd, xz) are C and compiled from their crates; everything links with cc.
  need_package build-essential c_compiler_works
  need_package ca-certificates test -s /etc/ssl/certs/ca-certificates.crt
  # Real peers of the live front-end's tests.
  need_package nginx-light command -v nginx
  need_package curl command -v curl
  need_package wrk command -v wrk
  need_package apache2-bin command -v apache2
  need_package nodejs command -v node
  need_package python3-uvloop /usr/bin/python3 -c 'import uvloop'
  need_package lighttpd command -v lighttpd
  need_package varnish command -v varnishd
  need_package haproxy command -v haproxy
  need_package php8.2-fpm command -v php-fpm8.2
  need_package golang-go command -v go
  need_package caddy command -v caddy
  need_package tcpdump command -v tcpdump
  # The packet programs are C, compiled for eBPF, and loaded by libbpf, which reads them with libelf.
  need_package clang-14 command -v clang-14
  need_package libelf-dev test -e /usr/include/libelf.h
  need_package zlib1g-dev test -e /usr/include/zlib.h
  need_package pkg-config command -v pkg-config
  # The client of etcd compiles etcd's interface, and reads protoc's own definitions.
  need_package protobuf-compiler command -v protoc
  need_package libprotobuf-dev test -e /usr/include/google/protobuf/descriptor.proto
  # Networks of namespaces in tests of the mechanisms.
  need_package iproute2 command -v ip
  need_package nftables command -v nft
  need_package ethtool command -v ethtool
  # The directory of services in tests of discovery.
  need_package etcd-server command -v etcd
  # Moves the virtual address in tests of front-ends that take over.
  need_package keepalived command -v keepalived
}

setup_lint() {
  setup_build
  install_packages
  packages=()
  need_rustup_component rustfmt cargo fmt --version
  need_rustup_component clippy cargo clippy --version
  need_cargo_tool cargo-deny "$CARGO_DENY_VERSION" cargo deny --version
  need_cargo_tool cargo-machete "$CARGO_MACHETE_VERSION" cargo machete --version
  if command -v rustup >/dev/null && ! rustup target list --installed | grep -q '^wasm32-unknown-unknown$'; then
    say "installing the wasm32-unknown-unknown target"
    rustup target add wasm32-unknown-unknown || say "could not; make lint will skip the WebAssembly check"
  fi
}

setup_bench() {
  setup_build
  need_package python3-venv python3 -c 'import venv, ensurepip'
  need_package linux-perf command -v perf
  need_package nghttp2-client command -v h2load
}

setup_pgo() {
  setup_bench
  need_package openssl command -v openssl
  install_packages
  packages=()
  need_rustup_component llvm-tools test -x "$(rustc --print target-libdir)/../bin/llvm-profdata"
}

setup_fuzz() {
  setup_build
  install_packages
  packages=()
  need_cargo_tool cargo-fuzz "$CARGO_FUZZ_VERSION" cargo fuzz --version
  # Without a nightly compiler the stable one is told to take the options that fuzzing needs.
  command -v rustup >/dev/null && rustup toolchain list | grep -q '^nightly' ||
    say "no nightly compiler (rustup toolchain install nightly): RUSTC_BOOTSTRAP=1 is used with the stable one"
}

setup_judge() {
  setup_build
  need_package testssl.sh command -v testssl
  need_package openssl command -v openssl
}

(($#)) || die "give a purpose: build, lint, bench, pgo, fuzz or judge"
for purpose in "$@"; do
  case $purpose in
    build | lint | bench | pgo | fuzz | judge) "setup_$purpose" ;;
    *) die "unknown purpose '$purpose': give build, lint, bench, pgo, fuzz or judge" ;;
  esac
done
install_packages
