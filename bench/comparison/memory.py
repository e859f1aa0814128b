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
    """Cells through a fabric with 1024 connections, one at a time and in runs of 32."""
    entries = {"cell by cell": "fabric-1024-vcs/cell by cell", "runs of 32": "fabric-1024-vcs/runs of 32",
               "look-up and queue": "fabric-1024-vcs/anchor: BTreeMap and VecDeque"}
    values, skipped = measured(context, "fabric in memory, 1024 VCs", entries, 1e-6)
    yield Row("fabric in memory, 1024 VCs, cell by cell", "cell by cell", "Mcell/s",
              [(None, Goal(25, unit="Mcell/s")), ("look-up and queue", None)], digits=1).fill(values, skipped)
    yield Row("... in runs of 32", "runs of 32", "Mcell/s", [(None, Goal(200, unit="Mcell/s"))], digits=0).fill(values, skipped)


def aal5(context):
    """AAL5 of 9180 octets, both ways, with CRC-32."""
    entries = {"segmentation": "aal5-octets/segment/9180", "reassembly": "aal5-octets/reassemble/9180",
               "one copy": "aal5-octets/anchor: copy/9180"}
    values, skipped = measured(context, "AAL5, 9180 octets", entries, 8e-9)
    for work in ("segmentation", "reassembly"):
        yield Row(f"AAL5 of 9180 octets: {work}", work, "Gb/s",
                  [(None, Goal(40, unit="Gb/s")), ("one copy", None)], digits=1).fill(values, skipped)
