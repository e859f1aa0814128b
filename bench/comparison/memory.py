"""What happens in memory: the fabric, and AAL5. Criterion measures; each round is a run of its own."""

import json
import re

from .machine import ROOT, Died, run
from .rounds import Goal, Row

RATE = re.compile(r"thrpt:\s*\[\S+ \S+ (\S+) (\S+) \S+ \S+\]")
RATES = {"elem/s": 1, "Kelem/s": 1e3, "Melem/s": 1e6, "Gelem/s": 1e9,
         "B/s": 1, "KiB/s": 2**10, "MiB/s": 2**20, "GiB/s": 2**30, "TiB/s": 2**40}


def benches(name):
    """The program of a file in bench/benches, built."""
    # The compiler need not run before other programs.
    command = ["chrt", "-o", "0", "cargo", "bench", "--quiet", "-p", "aerostat-bench", "--bench", name, "--no-run", "--message-format=json"]
    found = None
    for line in run(command, 3600, cwd=ROOT).splitlines():
        told = json.loads(line)
        if told.get("executable") and told.get("target", {}).get("name") == name:
            found = told["executable"]
    if not found:
        raise Died(f"cargo built no bench {name}")
    return found


def rate(program, entry):
    """Elements or octets a second of one entry of criterion."""
    text = run([program, "--bench", "--noplot", "--exact", entry], 300, cwd=ROOT)
    found = RATE.search(text)
    if not found:
        raise Died(f"no result for {entry}: {text.strip()[-200:] or 'nothing'}")
    return float(found.group(1)) * RATES[found.group(2)]


def measured(context, title, entries, factor):
    """Rates of entries: names for people with criterion's."""
    program, skipped = benches("parts"), {}
    contenders = {name: lambda entry=entry: rate(program, entry) * factor for name, entry in entries.items()}
    values = context.rounds.measure(title, contenders, skipped)
    context.keep(title, values, skipped)
    return values, skipped


def fabric(context):
    """Policed cells through a fabric with 1024 connections, one at a time and in runs of 32; and with more connections."""
    group = "fabric-1024-vcs"
    entries = {"cell by cell": f"{group}/cell by cell, policed, raw, in order",
               "at random": f"{group}/cell by cell, policed, raw, at random",
               "runs of 32": f"{group}/runs of 32, policed, raw, in order",
               "look-up and queue": f"{group}/anchor: BTreeMap and VecDeque"}
    values, skipped = measured(context, "fabric in memory, 1024 VCs, policed", entries, 1e-6)
    for work in ("cell by cell", "at random"):
        yield Row(f"fabric in memory, 1024 VCs, {work}", work, "Mcell/s",
                  [(None, Goal(25, unit="Mcell/s")), ("look-up and queue", None)], digits=1).fill(values, skipped)
    yield Row("... in runs of 32", "runs of 32", "Mcell/s", [(None, Goal(200, unit="Mcell/s"))], digits=0).fill(values, skipped)
    group = "fabric-connections"
    sizes = (100, 10000, 1000000)
    entries = {f"{name}, {size}": f"{group}/{entry}/{size}" for size in sizes
               for name, entry in (("ahead", "look ahead"), ("one by one", "one by one"), ("lines", "anchor: four lines"))}
    values, skipped = measured(context, "fabric in memory, connections at random", entries, 1e-6)
    for size in sizes:
        few = [(f"ahead, {sizes[0]}", Goal(1 / 3, True))] if size != sizes[0] else []
        yield Row(f"fabric in memory, {size} VCs at random, with a look ahead", f"ahead, {size}", "Mcell/s",
                  few + [(f"one by one, {size}", None), (f"lines, {size}", None)], digits=1).fill(values, skipped)


def aal5(context):
    """AAL5 of 9180 octets, both ways, with CRC-32."""
    entries = {"segmentation": "aal5-octets/segment/9180", "reassembly": "aal5-octets/reassemble/9180",
               "single raw cells": "aal5-octets/reassemble single raw cells/9180",
               "one copy": "aal5-octets/anchor: copy/9180"}
    values, skipped = measured(context, "AAL5, 9180 octets", entries, 8e-9)
    for work in ("segmentation", "reassembly", "single raw cells"):
        yield Row(f"AAL5 of 9180 octets: {work}", work, "Gb/s",
                  [(None, Goal(40, unit="Gb/s")), ("one copy", None)], digits=1).fill(values, skipped)
