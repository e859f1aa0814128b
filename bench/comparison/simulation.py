"""Virtual time: four TCP flows over an OC-3, beside ns-3."""

import json
import pathlib
import shutil

from .aerostat import run_in_virtual_time
from .machine import ROOT, Died, Missing, run, timed_run
from .rounds import Goal, Row

SOURCE = ROOT / "bench" / "ns3" / "dumbbell.cc"
MODULES = ("core", "network", "internet", "point-to-point", "applications")


def compiled(context, name, command):
    """The program, compiled anew if its source is newer."""
    program = context.cache / name
    if not program.exists() or program.stat().st_mtime < SOURCE.stat().st_mtime:
        context.cache.mkdir(parents=True, exist_ok=True)
        run([*command, "-o", program], seconds=600)
    return program


def debian(context):
    if not pathlib.Path("/usr/include/ns3/core-module.h").exists():
        raise Missing("ns-3: apt-get install libns3-dev g++")
    if not shutil.which("g++"):
        raise Missing("ns-3: apt-get install g++")
    return compiled(context, "ns3-debian", ["g++", "-O2", "-std=c++17", SOURCE, *(f"-lns3-{name}" for name in MODULES)])


def optimised(context):
    if not context.ns3_optimised:
        raise Missing("an optimised ns-3: --ns3-optimised PREFIX (configured with --build-profile=optimized, installed there)")
    prefix = pathlib.Path(context.ns3_optimised)
    libraries = []
    for name in MODULES:
        found = [path for part in ("lib", "lib64") for path in sorted((prefix / part).glob(f"libns3*-{name}*.so"))]
        if not found:
            raise Missing(f"an optimised ns-3: {prefix} has no library of {name}")
        libraries.append(found[0])
    return compiled(context, "ns3-optimised", ["g++", "-O3", "-march=native", "-std=c++17", f"-I{prefix / 'include'}", SOURCE,
                                               *libraries, f"-Wl,--disable-new-dtags,-rpath,{libraries[0].parent}"])


def goodput(text, seconds):
    """What all flows of a run of Aerostat delivered, Mb/s."""
    flows = json.loads(text)["flows"]
    return sum(flow["delivered_octets"] for flow in flows) * 8 / seconds / 1e6


def four_tcp(context):
    seconds = 10 if context.quick else 60
    carried = {}

    def ours():
        time, text = run_in_virtual_time(context, "four-tcp.atm.yml", "--until", f"{seconds + 1}s")
        carried["Aerostat"] = goodput(text, seconds)
        return time

    def theirs(name, program):
        def once():
            time, text = timed_run([program, str(seconds)], context.scratch)
            carried[name] = json.loads(text)["goodput_mbps"]
            return time
        return once

    contenders, skipped = {"Aerostat": ours}, {}
    for name, find in (("ns-3, Debian's build", debian), ("ns-3, optimised", optimised)):
        try:
            contenders[name] = theirs(name, find(context))
        except (Missing, Died) as reason:
            skipped[name] = str(reason)
    values = context.rounds.measure("four TCP flows in virtual time", contenders, skipped)
    context.keep("four TCP flows in virtual time", values, skipped, goodput_mbps=carried)
    rates = {name: [value and seconds / value for value in all_of] for name, all_of in values.items()}
    yield Row(f"four TCP flows, {seconds} s, OC-3, MTU 1500, virtual time", "Aerostat", "s/s",
              [("ns-3, Debian's build", Goal(5, True)), ("ns-3, optimised", Goal(3.5, True))], digits=1).fill(rates, skipped)
    megabits = {name: [value and carried[name] * seconds / value for value in all_of] for name, all_of in values.items()}
    yield Row("... megabits delivered for each second of processor time", "Aerostat", "Mb/s",
              [("ns-3, Debian's build", None), ("ns-3, optimised", None)], digits=0).fill(megabits, skipped)
