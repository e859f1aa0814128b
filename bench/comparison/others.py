"""Scenarios and small parts that have no goal, and event queues of others."""

import heapq
import json
import platform
import statistics
import subprocess
import sys
import time

from .machine import ROOT, Died


def lines_of(command, keep):
    """Runs a benchmark and keeps what it prints."""
    print("$", " ".join(command), file=sys.stderr)
    with open(keep.with_suffix(".err"), "w", encoding="utf-8") as errors:
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True)
    keep.write_text(done.stdout)
    if done.returncode:
        raise Died(f"{' '.join(command)} failed with {done.returncode}; see {keep.with_suffix('.err')}")
    return done.stdout.splitlines()


def scenarios(context):
    """`cargo bench --bench whole`: signalling, SSCOP, simulated cells, the campus lab."""
    command = ["cargo", "bench", "--quiet", "-p", "aerostat-bench", "--bench", "whole", "--", "--json"]
    for line in lines_of(command, context.folder / "whole.jsonl"):
        if line.startswith("{"):
            row = json.loads(line)
            context.plain(row["name"], row["value"], row["unit"], row["beside"])
    return
    yield


def parts(context):
    """`cargo bench --bench parts`: criterion's text, name, then `time: [low middle high]`."""
    scale, name = {"ps": 1e-3, "ns": 1, "µs": 1e3, "us": 1e3, "ms": 1e6, "s": 1e9}, ""
    command = ["cargo", "bench", "--quiet", "-p", "aerostat-bench", "--bench", "parts", "--", "--noplot"]
    for line in lines_of(command, context.folder / "parts.txt"):
        head, found, times = line.partition("time:")
        if "%" in line:  # Changes against an earlier run.
            continue
        if not found:
            if line.strip() and not line.startswith(" "):
                name = line.strip()
            continue
        _, _, middle, unit, *_ = times.strip().strip("[]").split()
        context.plain(head.strip() or name, float(middle) * scale[unit], "ns", "median of 20 samples")
    return
    yield


def simpy_cells():
    """SimPy: cells of 64 sources over three store-and-forward stages, as the chain of `whole`; cell-links/s."""
    import simpy  # pylint: disable=import-outside-toplevel

    def once():
        env = simpy.Environment()
        line = [simpy.Resource(env, 1) for _ in range(2)]
        cells = 0

        def cell():
            nonlocal cells
            for stage in (None, line[0], line[1], None):
                if stage is None:
                    yield env.timeout(2.83)
                else:
                    with stage.request() as turn:
                        yield turn
                        yield env.timeout(0.71)
                cells += 1

        def source(first):
            yield env.timeout(first)
            while True:
                env.process(cell())
                yield env.timeout(50.0)

        for n in range(64):
            env.process(source(n * 0.7))
        start = time.perf_counter()
        env.run(until=10_000)
        return cells / (time.perf_counter() - start)

    return f"SimPy {simpy.__version__}", statistics.median(once() for _ in range(5))


def heapq_events():
    """The event queue of Python's library: take the earliest of 256, put one later; operations/s."""

    def once():
        heap = [(n, n) for n in range(256)]
        start = time.perf_counter()
        for number in range(200_000):
            at, _ = heap[0]
            heapq.heapreplace(heap, (at + number * 7919 % 4096, number))
        return 200_000 / (time.perf_counter() - start)

    return f"heapq of Python {platform.python_version()}", statistics.median(once() for _ in range(5))


def queues(context):
    """Peers of simulated cells and of event queues."""
    for name, peer, unit, how in (
        ("simulated cells, 64 sources, 1 cell a PDU", simpy_cells, "cell-links/s", "pip install simpy"),
        ("event queue of 256", heapq_events, "operations/s", "part of Python"),
    ):
        try:
            version, value = peer()
        except ImportError:
            context.plain(f"peer: {name}", None, "", f"skipped; {how}")
        else:
            context.plain(f"peer: {name}", value, unit, version)
    return
    yield
