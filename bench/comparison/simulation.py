"""Virtual time: four TCP flows over an OC-3, beside ns-3; telephone calls, in virtual and in real time."""

import json
import os
import pathlib
import re
import shutil
import time

from .aerostat import LABS, Lab, run_in_virtual_time
from .machine import ROOT, Died, Missing, cpu_time, run, timed_run
from .peers import MODULES, ns3_libraries
from .rounds import Goal, Row

SOURCE = ROOT / "bench" / "ns3" / "dumbbell.cc"


def compiled(context, name, command, libraries):
    """The program, compiled anew if the command is another one, or its source or a library is newer."""
    program, kept = context.cache / name, context.cache / f"{name}.command"
    words = "\n".join(str(word) for word in command)
    same = program.exists() and kept.exists() and kept.read_text(encoding="utf-8") == words
    if not same or any(path.stat().st_mtime > program.stat().st_mtime for path in (SOURCE, *libraries)):
        context.cache.mkdir(parents=True, exist_ok=True)
        kept.unlink(missing_ok=True)
        run([*command, "-o", program], seconds=600)
        kept.write_text(words, encoding="utf-8")
    return program


def debian(context):
    if not pathlib.Path("/usr/include/ns3/core-module.h").exists():
        raise Missing("ns-3: bench/peers ns3-debian, or apt-get install libns3-dev g++")
    if not shutil.which("g++"):
        raise Missing("ns-3: apt-get install g++")
    return compiled(context, "ns3-debian", ["g++", "-O2", "-std=c++17", SOURCE, *(f"-lns3-{name}" for name in MODULES)], ())


def optimised(context):
    if not context.ns3_optimised:
        raise Missing("an optimised ns-3: bench/peers ns3-optimised, or --ns3-optimised PREFIX")
    prefix = pathlib.Path(context.ns3_optimised)
    found = ns3_libraries(prefix)
    for name, path in found.items():
        if path is None:
            raise Missing(f"an optimised ns-3: {prefix} has no library of {name}")
    libraries = list(found.values())
    return compiled(context, "ns3-optimised", ["g++", "-O3", "-march=native", "-std=c++17", f"-I{prefix / 'include'}", SOURCE,
                                               *libraries, f"-Wl,--disable-new-dtags,-rpath,{libraries[0].parent}"], libraries)


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


EXCHANGES, CALLS = 20, 50
EXCHANGE = re.compile(r"^  exchange:\n.*", re.MULTILINE | re.DOTALL)


def telephones(seconds):
    """bench/labs/voice.atm.yml with 20 exchanges that make 50 calls each, of so many seconds. Cells of all calls are
    spread over the 20 ms: each call begins 1.02 ms behind the one before."""
    text = (LABS / "voice.atm.yml").read_text(encoding="utf-8")
    head, call = EXCHANGE.search(text).group(0).split("sockets:\n")

    def calls(first):
        for number in range(first, first + CALLS):
            start = f"start: {1_000_000 + 1020 * number}us"
            yield call.replace("name: call", f"name: c{number}").replace("start: 1s", start)
    lines = []
    for number in range(EXCHANGES):
        own = head.replace("exchange", f"e{number}").replace("10.1.0.11", f"10.1.0.{11 + number}")
        lines += [own, "sockets:\n", *calls(number * CALLS)]
    return EXCHANGE.sub(lambda _: "".join(lines), text).replace("pdus: 500", f"pdus: {50 * seconds}")


def voice(context):
    """1000 telephone calls through three switches, a cell of each every 20 ms: in virtual time, and in real time."""
    talk, live = (5, 2) if context.quick else (20, 10)
    path = context.scratch / "voice.atm.yml"
    path.write_text(telephones(talk), encoding="utf-8")

    def simulated():
        command = [context.aerostat, "run", "-q", "-o", "json", path]
        took, text = timed_run(command, context.scratch, environment=dict(os.environ, NO_COLOR="1"))
        spoken = [program for program in json.loads(text)["programs"] if program["sent"]]
        came, sent = sum(program["delivered"] for program in spoken), EXCHANGES * CALLS * 50 * talk
        if came != sent:
            raise Died(f"{came} of {sent} cells came")
        return talk / took

    def real():
        lab = Lab(context, "voice.atm.yml", "-q", "--embedded", text=telephones(live + 10))
        try:
            # All calls are there.
            time.sleep(3)
            before, start = cpu_time([lab.process.pid]), time.monotonic()
            time.sleep(live)
            return 100 * (cpu_time([lab.process.pid]) - before) / (time.monotonic() - start)
        finally:
            lab.stop()

    title = f"{EXCHANGES * CALLS} telephone calls through three switches"
    contenders, skipped = {"virtual time": simulated, "real time": real}, {}
    values = context.rounds.measure(title, contenders, skipped)
    context.keep(title, values, skipped)
    yield Row(f"{title}, virtual time", "virtual time", "s/s", [(None, Goal(50, unit="s/s"))], digits=1).fill(values, skipped)
    yield Row("... real time", "real time", "%", [(None, Goal(15, at_most=True, unit="% of a core"))], True, 1
              ).fill(values, skipped)
