"""Labs in real time: what an idle lab costs, and how fast calls are set up."""

import json
import socket
import time

from .aerostat import Lab
from .machine import Died, Missing, cpu_time, cpus, need_root, pin, pinned, ports, run
from .rounds import Goal, Row

HOSTS = 50


def idle_lab(kernel):
    hosts = "\n".join(f"  h{n}: {{ on: s1, elan: a, ip: 10.1.0.{n}, kernel: {str(kernel).lower()} }}" for n in range(1, HOSTS + 1))
    return f"switches: {{ s1: {{}} }}\nlane: {{ on: s1, elans: {{ a: {{ subnet: 10.1.0.0/24 }} }} }}\nhosts:\n{hosts}\n"


def idle(context):
    """Share of a core that a lab of 50 hosts takes without traffic."""
    kinds = {"kernel hosts": (), "kernel hosts, --split": ("--split",), "embedded hosts": ("--embedded",)}
    labs, skipped = {}, {}
    for name, options in kinds.items():
        try:
            if "--embedded" not in options:
                need_root()
            labs[name] = Lab(context, "idle.atm.yml", "-q", *options, text=idle_lab("--embedded" not in options))
        except (Missing, Died) as reason:
            skipped[name] = str(reason)
    # All have joined, and the first timers are over.
    time.sleep(3 if context.quick else 10)
    seconds = 5 if context.quick else 30
    values = {name: [] for name in labs}
    rounds = 1 if context.quick else min(2, context.rounds.count)
    for number in range(rounds):
        before = {name: cpu_time([lab.process.pid]) for name, lab in labs.items()}
        start = time.monotonic()
        time.sleep(seconds)
        took = time.monotonic() - start
        for name, lab in labs.items():
            used = cpu_time([lab.process.pid]) - before[name]
            values[name].append(100 * used / took)
            context.say(f"  idle lab of {HOSTS} hosts, {number + 1} of {rounds}: {name}: {values[name][-1]:.3f} % of a core")
    context.keep("idle lab", values, skipped)
    work = f"idle lab of {HOSTS} hosts over {seconds} s: "
    for name in kinds:
        goal = Goal(1, at_most=True, unit="% of a core") if "split" not in name else None
        yield Row(work + name, name, "%", [(None, goal)], True).fill(values, skipped)
        work = "... "


CALLS = """
switches: {{ s1: {{}} }}
lane: {{ on: s1, elans: {{ a: {{ subnet: 10.1.0.0/24 }} }} }}
links:
  - [s1, {{ atmtcp: {{ listen: 127.0.0.1:{port} }}, address: 47.0005.80FFE1000000F21A26D8.0020EA000001.00, uni: 3.1 }}]
hosts:
  called:
    on: s1
    elan: a
    ip: 10.1.0.1
    sockets: [{{ name: sink, listen: sink, sap: any }}]
"""
CALLED = "47.0091.81.000000.02a7.0000.0100.02a703000100.e0"


class Called:
    """A lab with a host that takes calls, and a way into its switch by ATM over TCP. All of it is on one CPU."""

    def __init__(self, context, *options):
        self.context, self.port = context, ports(1, socket.SOCK_STREAM)[0]
        self.lab = Lab(context, "calls.atm.yml", "-q", "--embedded", *options, text=CALLS.format(port=self.port))
        self.cpu = cpus()[-1]
        pin([self.lab.process.pid], {self.cpu})
        self.p99, self.used = [], []
        time.sleep(1)

    def median(self):
        """Set-up time as the caller sees it, from `Connect` to `Connected`: the median, µs."""
        seconds = 2 * self.context.seconds
        before = cpu_time([self.lab.process.pid])
        command = [self.context.probe, "calls", f"127.0.0.1:{self.port}", CALLED, "--seconds", seconds]
        told = json.loads(run(pinned(self.cpu, command)))
        if told["failed"] or told["calls"] < 20:
            raise Died(f"{told['calls']} calls, {told['failed']} failed")
        self.p99.append(told["p99_us"])
        # The first tenth of the time is not counted.
        self.used.append((cpu_time([self.lab.process.pid]) - before) * 0.9 / told["calls"] * 1e6)
        return told["p50_us"]


def inside(context, *options):
    """Set-up time as a program in the lab sees it, on the clock of the machine: p50 and p99, µs."""
    told = json.loads(run(pinned(cpus()[-1], [context.setup, "--json", "--calls", "1000", *options])))
    return told["setup_p50_us"], told["setup_p99_us"]


KINDS = {"one process": ((), 60), "--split": (("--split",), 150)}


def calls(context):
    """Set-up of calls through a switch, seen by a caller outside, and by programs in the lab if `setup` is built."""
    contenders, skipped, outside, p99 = {}, {}, {}, {}
    for name, (options, _) in KINDS.items():
        try:
            outside[name] = Called(context, *options)
            contenders[f"{name}, caller outside"] = outside[name].median
        except (Missing, Died) as reason:
            skipped[f"{name}, caller outside"] = str(reason)

        def once(name=name, options=options):
            p50, late = inside(context, *options)
            p99.setdefault(name, []).append(late)
            return p50
        if context.setup.exists():
            contenders[name] = once
    title = "set-up of a call through a switch"
    values = context.rounds.measure(title, contenders, skipped)
    p99 |= {f"{name}, caller outside": lab.p99 for name, lab in outside.items()}
    used = {f"{name}, caller outside": lab.used for name, lab in outside.items()}
    context.keep(title, values, skipped, p99=p99, used=used)
    for name, (_, limit) in KINDS.items():
        goal = Goal(limit, at_most=True, unit="µs")
        work = "SVC set-up through a switch, live, on one CPU, "
        for kind in (name, f"{name}, caller outside"):
            if kind == name and kind not in contenders:
                continue
            yield Row(f"{work}{kind}: p50", kind, "µs", [(None, goal)], True, 0).fill(values, skipped)
            goal, work = None, "... "
            yield Row("... p99", kind, "µs", [(None, None)], True, 0).fill(p99, skipped)
        yield Row("... processor time of the lab for a call, with its release", kind, "µs", [(None, None)], True, 0
                  ).fill(used, skipped)
