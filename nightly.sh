#!/usr/bin/env bash
# What takes too long for ./check --all: fuzz targets for minutes each with a kept corpus, mutants of the labs, random
# schedules, the long variants of tests, peers with every version of the UNI, the README's first command from nothing. Exit code 0 only if all hold; what fails does not stop the rest.
set -uo pipefail
cd "$(dirname "$0")"

usage() {
    cat <<'TEXT'
usage: ./nightly.sh [--short] [--only PART,...] [--fuzz-seconds N] [--mutants N] [--schedules N] [--seeds N]
                    [--from SEED] [--corpus DIR]

Parts: fuzz, mutants, schedules, tests, papers, busy, worlds, tabs, page, peers, packages, first, python. Without options each fuzz target
runs 300 s (machine_tcp 10 million inputs, at most 40 times as long), then 100000 mutants, 10000 schedules, tests with 20
seeds, an hour in which busy loops take all cores and no healthy daemon may be replaced, 40 random labs beside Linux
kernels (root), all labs in a browser's tab and the page of a lab for eight hours of its time (chromium), the virtual machines of interop/ with every version of the UNI,
packages built twice and tried on a new Debian (cargo-deb, debootstrap), the README's first command in a clone without
a build, the wheel in each Python, and its module on workers of Dask: a night. --short takes about fifteen minutes: 10 s, 2000,
100, 2, one minute, 2 labs.
--from is the first seed of mutants and schedules (default: the number of today, so that each night tries others).
--corpus is where inputs of the fuzz targets are kept from night to night (default: fuzz/corpus), and what failed
(in DIR/failed).
TEXT
}

fuzz_seconds=300 mutants=100000 schedules=10000 seeds=20 busy_seconds=3600 worlds=40
from=$(($(date +%s) / 86400 * 1000000)) corpus=fuzz/corpus parts=fuzz,mutants,schedules,tests,papers,busy,worlds,tabs,page,peers,packages,first,python
# A target that is known to fail, and the words of its failure; other words are a failure like any other. Empty: no target is known to fail.
known_target="" known_words="${NIGHTLY_KNOWN_WORDS:-}"

while [ $# -gt 0 ]; do
    case $1 in
        --short) fuzz_seconds=10 mutants=2000 schedules=100 seeds=2 busy_seconds=60 worlds=2 ;;
        --only) parts=${2:?$(usage)}; shift ;;
        --fuzz-seconds) fuzz_seconds=${2:?$(usage)}; shift ;;
        --mutants) mutants=${2:?$(usage)}; shift ;;
        --schedules) schedules=${2:?$(usage)}; shift ;;
        --seeds) seeds=${2:?$(usage)}; shift ;;
        --from) from=${2:?$(usage)}; shift ;;
        --corpus) corpus=${2:?$(usage)}; shift ;;
        -h | --help) usage; exit 0 ;;
        *) usage >&2; exit 2 ;;
    esac
    shift
done
case ,$parts, in
    *,fuzz,* | *,mutants,* | *,schedules,* | *,tests,* | *,papers,* | *,busy,* | *,worlds,* | *,tabs,* | *,page,* | *,peers,* | *,packages,* | *,first,* | *,python,*) ;;
    *) usage >&2; exit 2 ;;
esac
mkdir -p "$corpus/failed"
corpus=$(cd "$corpus" && pwd)
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
summary=() failed=0

wanted() { case ,$parts, in *,"$1",*) return 0 ;; esac; return 1; }
say() { printf '%s %s\n' "$(date +%H:%M:%S)" "$*"; }
# result NAME WORD TEXT: one line of the summary.
result() {
    summary+=("$(printf '%-28s %-14s %s' "$1" "$2" "$3")")
    say "$1: $2 $3"
    if [ "$2" = FAILED ]; then failed=$((failed + 1)); fi
}
# attempt NAME COMMAND...: its output goes to a log, of which the end is shown if it fails.
attempt() {
    local name=$1 log="$logs/$1" begin=$SECONDS
    shift
    say "$name: $*"
    if "$@" > >(tee "$log" | grep --line-buffered -E ' of [0-9]+ (mutants|schedules)|^#[0-9]+.*pulse|FAILED|PANIC' || true) 2>&1; then
        result "$name" ok "$((SECONDS - begin)) s"
        return 0
    fi
    wait
    tail -n 25 "$log"
    cp "$log" "$corpus/failed/$name.log"
    result "$name" FAILED "$((SECONDS - begin)) s; all of its output: $corpus/failed/$name.log"
    return 1
}

fuzz() {
    if ! cargo +nightly --version > /dev/null 2>&1 || ! cargo fuzz --version > /dev/null 2>&1; then
        result fuzz FAILED "needs a nightly toolchain and cargo-fuzz (see fuzz/README.md)"
        return
    fi
    (cd fuzz && cargo +nightly fuzz build --sanitizer none) || { result fuzz FAILED "does not build"; return; }
    local target begin log words limits
    for target in $(cd fuzz && cargo +nightly fuzz list); do
        mkdir -p "$corpus/$target" "$corpus/failed/$target"
        begin=$SECONDS log="$logs/fuzz-$target"
        limits=(-max_total_time="$fuzz_seconds")
        # The TCP of hosts meets ten million sequences, or what three hours have: 40 times the time of the others.
        [ "$target" = machine_tcp ] && limits=(-runs=10000000 -max_total_time="$((40 * fuzz_seconds))")
        say "fuzz target $target: ${limits[*]}"
        (
            cd fuzz && cargo +nightly fuzz run --sanitizer none "$target" "$corpus/$target" "seeds/$target" -- \
                "${limits[@]}" -rss_limit_mb=2048 -timeout=60 -print_final_stats=1 \
                -artifact_prefix="$corpus/failed/$target/"
        ) > "$log" 2>&1
        local code=$? runs
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)
        runs="${runs:-?} inputs, $((SECONDS - begin)) s"
        words=$(grep -m 1 'panicked at' "$log" || true)
        if [ $code -eq 0 ]; then
            result "fuzz-$target" ok "$runs"
        elif [ -n "$known_target" ] && [ "$target" = "$known_target" ] && [[ $words == *"$known_words"* ]]; then
            result "fuzz-$target" "known failure" "$runs; $words"
        else
            tail -n 25 "$log"
            cp "$log" "$corpus/failed/$target.log"
            result "fuzz-$target" FAILED "$runs; $words; inputs in $corpus/failed/$target"
        fi
    done
}

# Checks of overflow and debug assertions, at the speed of a release.
export CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true
wanted fuzz && fuzz
wanted mutants && attempt mutants cargo run -q --release -p aerostat-sim --example mutants -- \
    --from "$from" --count "$mutants" --keep "$corpus/failed/mutants"
wanted schedules && attempt schedules cargo run -q --release -p aerostat-sim --example schedules -- \
    --from "$from" --count "$schedules"
if wanted tests; then
    # Tests that take more seeds, or more cases, if these variables say so.
    AEROSTAT_SEEDS=$seeds AEROSTAT_SEED=$from AEROSTAT_CASES=$((seeds * 50)) PROPTEST_CASES=$((seeds * 200)) \
        AEROSTAT_TRAINS=$((seeds * 500)) AEROSTAT_DRAWS=$seeds AEROSTAT_OVERLOADS=$((seeds * 25)) \
        AEROSTAT_CALL_SCHEDULES=$((seeds * 500)) \
        attempt tests cargo test -q --release --workspace --exclude aerostat-cli --exclude aerostat-live
    # Each time one schedule that nobody has tried.
    for n in $(seq "$seeds"); do
        AEROSTAT_SEED=$((from + n)) attempt "seed-$((from + n))" \
            cargo test -q --release -p aerostat-sim --test it one_seed || break
    done
    # The machine of TCP beside the kernel's: 1000 transfers with 20 seeds, throughputs as medians of five.
    AEROSTAT_TCP_TRANSFERS=$((seeds * 50)) AEROSTAT_TCP_RUNS=5 \
        attempt tcp cargo test -q --release -p aerostat-live --test real
    # A thousand packets of each of four whole labs.
    AEROSTAT_SEED=$from attempt follow cargo test -q --release -p aerostat-sim --test it follow:: -- --ignored
fi
if wanted papers; then
    # All entries of `aerostat reproduce` with noise in the place of the printed numbers; other seeds.
    attempt papers cargo test -q --release -p aerostat-cli --test it reproduce:: -- --ignored
    # Throughput, loss, jitter and cells again, from the packets.
    for lab in detken-router detken-trunk sara clip-nt tcp-clip; do
        attempt "recompute-$lab" bench/recompute target/release/aerostat "labs/papers/$lab.atm.yml" || break
    done
fi
if wanted busy; then
    AEROSTAT_BUSY_SECONDS=$busy_seconds attempt busy \
        cargo test -q --release -p aerostat-cli --test real no_healthy_daemon_is_replaced
fi
# Throughput of TCP in virtual time beside that between Linux kernels, in random labs.
worlds() { cargo build -q --release && bench/worlds --worlds "$worlds" --keep "$corpus/worlds"; }
wanted worlds && attempt worlds worlds
# All labs in a browser's tab beside the program, with a module that checks for overflow: a size has 32 bits there.
tabs() {
    cargo build -q --release && CARGO_PROFILE_WEB_OVERFLOW_CHECKS=true crates/web/build --out target/web/checked.js &&
        AEROSTAT_SITE_LABS=all AEROSTAT_BROWSER_SECONDS=7200 AEROSTAT_MODULE=target/web/checked.js \
            crates/cli/tests/browser/run --aerostat target/release/aerostat "to the octet"
}
wanted tabs && attempt tabs tabs
# The page of a running lab for eight hours of its time: it may take no more memory at the end.
page() {
    cargo build -q --release && AEROSTAT_LONG=8 crates/cli/tests/browser/run --aerostat target/release/aerostat
}
wanted page && attempt page page
# Every version of the UNI, and the slow tests; ./check --rest runs one version.
peers() { cargo build -q --release && interop/run --aerostat target/release/aerostat --slow --again 1; }
wanted peers && attempt peers peers
# What users get has no such assertions, and a wheel with them is larger than its bound.
unset CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS
# Packages of two clones in two directories have the same bytes; both builds give the same results in all labs; and
# all of it works on a new Debian.
packages() (
    set -e
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    # Both clones are of one commit, also if another one comes while the first is built.
    git clone -q . "$scratch/one"
    git clone -q "$scratch/one" "$scratch/another-name"
    for clone in one another-name; do
        "$scratch/$clone/packages/build" --out "$scratch/$clone.out"
        dynamic=$scratch/$clone/target/packages/tree/aerostat/usr/bin/aerostat
        cp "$dynamic" "$scratch/aerostat"
        rm -rf "${scratch:?}/$clone"
    done
    diff -r "$scratch/one.out" "$scratch/another-name.out"
    packages/compare "$scratch/aerostat" "$scratch"/one.out/aerostat-*-linux-static
    packages/try "$scratch/one.out" || [ $? = 77 ]
)
if wanted packages; then
    if ! command -v cargo-deb > /dev/null || ! command -v dpkg-shlibdeps > /dev/null; then
        result packages FAILED "needs cargo-deb and dpkg-dev (docs/install.md)"
    else
        attempt packages packages
    fi
fi
# The README's first command where nothing is built, with its time.
first() {
    local clone
    clone=$(mktemp -d)
    git clone -q . "$clone" && (cd "$clone" && cargo run --release -- run labs/campus.atm.yml)
    local code=$?
    rm -rf "$clone"
    return $code
}
wanted first && attempt first first
# The wheel in each Python that is here, and the module with Dask's workers, of which one is killed.
python_module() {
    local out=crates/python/target/wheels
    rm -rf "$out"
    crates/python/wheel && crates/python/try "$out"/aerostat-*.whl &&
        AEROSTAT=$PWD/crates/python/data/scripts/aerostat crates/python/test --nightly --wheel "$out"/aerostat-*.whl
}
wanted python && attempt python python_module

printf '\nSummary\n'
printf '  %s\n' "${summary[@]}"
if [ "$failed" -gt 0 ]; then
    echo "$failed failed"
    exit 1
fi
echo "all held"
