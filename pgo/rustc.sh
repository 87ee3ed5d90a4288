#!/usr/bin/env bash
# Runs the compiler for cargo, and has it use what is known of where the front-end's time goes (profile-guided optimization).
#
# Usage: pgo/rustc.sh RUSTC ARGUMENT...      cargo's `build.rustc-wrapper`, see ../.cargo/config.toml
#
# Only for those crates of a release that pgo/crates lists: a profile says something of these very sources, dependencies, features and
# compiler, all of which are in a crate's `-C metadata` and in the hash of its sources. Of others it would say that nothing ever runs. So
# a crate that was changed is compiled as without this script, until `make pgo` makes the profile anew (docs/development.md).
#
# PGO_TRAINING=DIRECTORY has the crates that pgo/trained names count where their time goes instead, and lists them in DIRECTORY/crates.
# Bash, because dash would not pass on the variables that cargo names after programs with `-` in their names.
set -eu

directory=${0%/*}
name='' metadata='' optimized='' has_own='' out='' source='' previous=''
for argument; do
  case $previous in
    --crate-name) name=$argument ;;
    --out-dir) out=$argument ;;
    -C)
      case $argument in
        metadata=*) metadata=${argument#metadata=} ;;
        opt-level=3) optimized=yes ;;
      esac
      ;;
  esac
  case $argument in
    *.rs) source=$argument ;;
    *profile-use* | *profile-generate* | *instrument-coverage*) has_own=yes ;;
  esac
  previous=$argument
done

# Somebody makes a profile of their own, or uses one.
[ -z "$has_own" ] || exec "$@"
# The program itself counts nothing, but brings what writes the counts.
if [ -n "${PGO_TRAINING-}" ] && [ "$name" = plimsoll ]; then
  exec "$@" "-Cprofile-generate=$PGO_TRAINING/counts"
fi
# Build scripts and macros are not optimized.
case $optimized$out in
  yes*/release/deps) ;;
  *) exec "$@" ;;
esac
grep -qx "$name" "$directory/trained" || exec "$@"

# Those of other workspaces are named from the root, and never change.
sources=-
case $source in
  /*) ;;
  *) sources=$("$directory/sources.sh" "${source%/*}") ;;
esac
crate="$name $metadata $sources"

if [ -n "${PGO_TRAINING-}" ]; then
  echo "$crate" >>"$PGO_TRAINING/crates"
  exec "$@" "-Cprofile-generate=$PGO_TRAINING/counts"
fi
if [ -r "$directory/release.profdata" ] && grep -qxF "$crate" "$directory/crates"; then
  exec "$@" "-Cprofile-use=$directory/release.profdata"
fi
exec "$@"
