#!/usr/bin/env bash
# The whole check, the same here and in continuous integration. Needs Rust (rustup's stable) and, for the parts that
# need them, Debian's tshark, iperf3, iproute2 and iputils-ping; without root, /dev/net/tun or tshark those tests
# skip with a printed reason. With root and QEMU, Debian's own ATM stack joins as a peer (interop/README.md).
set -euo pipefail
cd "$(dirname "$0")"
# A check gives the same answer twice. `cargo test` alone draws fresh cases each time: that is where new ones are found.
export PROPTEST_RNG_SEED="${PROPTEST_RNG_SEED:-20261121}"
step() { printf '\n== %s\n' "$*"; }

step "format";  cargo fmt --all -- --check
step "lints";   cargo clippy --quiet --workspace --all-targets --test real -- -D warnings
step "tests";   cargo test --workspace --no-fail-fast
step "tests in real time"; cargo test -p aerostat-cli --test real --no-fail-fast
step "docs";    RUSTDOCFLAGS="-D warnings" cargo doc --quiet --workspace --no-deps
if cargo deny --version > /dev/null 2>&1; then
    step "licences, bans and sources of dependencies"
    cargo deny --offline --log-level error check licenses bans sources
else
    step "licences, bans and sources of dependencies skipped: needs cargo-deny"
fi
step "main command"
cargo build --quiet --release
for lab in labs/*.atm.yml; do
    printf '%s: ' "$lab"
    ./target/release/aerostat run "$lab" --quiet -o json > /dev/null
    echo ok
done
step "examples"; ./examples.sh
step "packages"; cargo package --quiet --workspace --no-verify --allow-dirty
if [ "$(id -u)" != 0 ] || ! command -v qemu-system-x86_64 > /dev/null; then
    step "peers in a virtual machine skipped: needs root and qemu-system-x86_64"
elif [ ! -e target/interop-vm/initrd.gz ] && ! interop/build-vm target/interop-vm; then
    step "peers in a virtual machine skipped: Debian bullseye's kernel is not to be had here"
else
    step "peers in a virtual machine"
    interop/run --aerostat target/release/aerostat --again 1
fi
if cargo +nightly --version > /dev/null 2>&1 && cargo fuzz --version > /dev/null 2>&1; then
    step "fuzzing, ${FUZZ_SECONDS:=5} s a target"
    (
        cd fuzz
        cargo fmt -- --check
        cargo +nightly fuzz build --sanitizer none
        for target in $(cargo +nightly fuzz list); do
            mkdir -p "corpus/$target"
            cargo +nightly fuzz run --sanitizer none "$target" "corpus/$target" "seeds/$target" -- \
                -max_total_time="$FUZZ_SECONDS" -rss_limit_mb=2048 -timeout=20 -verbosity=0
            echo "$target: ok"
        done
    )
else
    step "fuzzing skipped: needs a nightly toolchain and cargo-fuzz"
fi
step "all passed"
