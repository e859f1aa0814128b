#!/usr/bin/env bash
# Runs the examples of the library crates and compares what they print with the file beside each:
#   ./examples.sh          says what differs
#   ./examples.sh --keep   keeps what they print now, after a change that is meant to change it
# Needs target/release/aerostat (cargo build --release), or another binary in AEROSTAT.
set -euo pipefail
cd "$(dirname "$0")"
aerostat=${AEROSTAT:-target/release/aerostat}
captures=target/examples
case ${1:-} in
    "") keep= ;;
    --keep) keep=yes ;;
    *) sed -n '2,5p' "$0" >&2; exit 2 ;;
esac

# example CRATE NAME ARGUMENTS...
example() {
    local expected="crates/$1/examples/$2.txt" crate=$1 name=$2
    shift 2
    if [ -n "$keep" ]; then
        cargo run --quiet -p "aerostat-$crate" --example "$name" -- "$@" > "$expected"
    else
        cargo run --quiet -p "aerostat-$crate" --example "$name" -- "$@" | diff -u "$expected" -
    fi
    echo "$name: ok"
}

# Two captures of the same run: whole SDUs, and single cells, which must make the same SDUs.
capture() { "$aerostat" run labs/two-hosts.atm.yml --quiet --until 2200ms --pcap "$captures/$1" "${@:2}" > /dev/null; }
capture sdus
capture cells --cells
example wire decode "$captures/sdus/urku.pcapng"
# The time of a PDU of single cells is that of its last cell: leave times out.
cargo run --quiet -p aerostat-wire --example decode -- "$captures/cells/urku.pcapng" | cut -d ' ' -f 2- |
    diff -u <(cut -d ' ' -f 2- crates/wire/examples/decode.txt) -
example proto elan
example sim by_hand
