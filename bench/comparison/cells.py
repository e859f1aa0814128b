"""Cells over UDP, switched: Aerostat, Dynamips, and relays that can do no less."""

import json
import pathlib
import socket
import tempfile
import time

from .aerostat import Lab
from .machine import Died, Missing, cpu_time, cpus, pin, pinned, ports, run
from .rounds import Goal, Row

LAB = """
switches: {{ s1: {{}} }}
links:
  - [s1, {{ name: west, rate: 40Gbps, udp: {{ local: '{incoming}', peer: '{source}' {form} }} {police} }}]
  - [s1, {{ name: east, rate: 40Gbps, udp: {{ local: '{outgoing}', peer: '{sink}' {form} }} }}]
pvcs:
"""
PVC = '  - {{ from: west, vc: "1.{}", to: east, to_vc: "2.{}" {} }}\n'
# A contract that the cells of all rows fulfil: the work of the policer is measured, and not the loss.
CONTRACT, POLICE = ', qos: "ubr:max_pcr=10000000"', ", police: all, cdvt: 250ms"


class Switch:
    """A switch between two addresses of the generator."""

    def __init__(self, context):
        self.context = context
        names = ("source", "incoming", "outgoing", "sink")
        self.ends = {name: f"127.0.0.1:{port}" for name, port in zip(names, ports(4))}
        self.pids = []

    def relay(self, way, *options):
        ends = [self.ends[name] for name in ("incoming", "source", "outgoing", "sink")]
        process = self.context.processes.serve([self.context.probe, "relay", way, *ends, *options], "ready")
        self.pids = [process.pid]
        return self

    def aerostat(self, form="", vcs=1, police=False):
        text = LAB.format(form=form, police=POLICE if police else "", **self.ends)
        text += "".join(PVC.format(100 + n, 200 + n, CONTRACT if police else "") for n in range(vcs))
        lab = Lab(self.context, "cells.atm.yml", "-q", "--embedded", text=text)
        self.pids = [lab.process.pid]
        return self

    def dynamips(self):
        program = self.context.dynamips
        control = ports(1, socket.SOCK_STREAM)[0]
        folder = tempfile.mkdtemp(prefix="dynamips.", dir=self.context.scratch)
        process = self.context.processes.start([program, "-H", f"127.0.0.1:{control}"], cwd=folder)
        self.pids = [process.pid]
        port = {name: end.rpartition(":")[2] for name, end in self.ends.items()}
        commands = (f"nio create_udp in {port['incoming']} 127.0.0.1 {port['source']}",
                    f"nio create_udp out {port['outgoing']} 127.0.0.1 {port['sink']}",
                    "atmsw create s1", "atmsw create_vcc s1 in 1 100 out 2 200")
        with connect(control) as line, line.makefile("rw") as text:
            for command in commands:
                text.write(command + "\n")
                text.flush()
                answer = text.readline()
                if not answer.startswith("100"):
                    raise Died(f"dynamips: {command}: {answer.strip()}")
        return self

    def measure(self, mode, *options, seconds=None):
        """What the generator says; it is on the first CPU, the switch on the last."""
        here = cpus()
        pin(self.pids, {here[-1]})
        ends = [self.ends[name] for name in ("source", "incoming", "sink", "outgoing")]
        seconds = seconds or self.context.seconds
        command = [self.context.probe, "cells", mode, *ends, "--seconds", str(seconds), *options]
        before = cpu_time(self.pids)
        told = json.loads(run(pinned(here[0], command)))
        # The generator first waits 100 ms for late cells; the switch sleeps then.
        told["cells_per_cpu_second"] = told["cells_per_second"] * seconds / max(1e-9, cpu_time(self.pids) - before)
        if told["wrong"] or told["disordered"]:
            raise Died(f"{told['wrong']} cells are wrong, {told['disordered']} out of order")
        if not told["cells_per_second"]:
            raise Died("no cell comes out")
        return told


def connect(port):
    for _ in range(100):
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=10)
        except OSError:
            time.sleep(0.05)
    raise Died("dynamips does not listen")


def find_dynamips(context):
    if not context.dynamips:
        raise Missing("Dynamips: bench/peers dynamips, or --dynamips PATH")
    if not pathlib.Path(context.dynamips).is_file():
        raise Missing(f"{context.dynamips} is not there")


def build(context, makers):
    """Starts the contenders; those that cannot be started are named."""
    made, skipped = {}, {}
    for name, maker in makers.items():
        try:
            made[name] = maker(Switch(context))
        except (Missing, Died) as reason:
            skipped[name] = str(reason)
    return made, skipped


def rates(context, title, made, skipped, mode, options):
    """Thousands of cells of each contender a second, and for each second of the switch's processor time."""
    efficiency = {name: [] for name in made}

    def one(name):
        def once():
            told = made[name].measure(mode, *options.get(name, ()))
            efficiency[name].append(told["cells_per_cpu_second"] / 1e3)
            return told["cells_per_second"] / 1e3
        return once
    values = context.rounds.measure(title, {name: one(name) for name in made}, skipped)
    context.keep(title, values, skipped, per_cpu_second=efficiency)
    return values, efficiency, skipped


def rows(work, unit, peers, values, efficiency, skipped, ours="Aerostat"):
    """The row, and the same for each second of the switch's processor time, which load from outside hardly changes."""
    yield Row(work, ours, unit, peers, digits=0).fill(values, skipped)
    yield Row("... for each second of the switch's processor time", ours, unit, [(name, None) for name, _ in peers],
              digits=0).fill(efficiency, skipped)


def dynamips(switch):
    find_dynamips(switch.context)
    return switch.dynamips()


def single(context):
    """One cell in a datagram: window of 64, with super-datagrams, open loop, one at a time."""
    made, skipped = build(context, {
        "Aerostat": Switch.aerostat,
        "Dynamips": dynamips,
        "relay (select)": lambda switch: switch.relay("select"),
        "relay (recv, send)": lambda switch: switch.relay("single"),
        "relay (mmsg)": lambda switch: switch.relay("mmsg"),
        "relay (GSO, GRO)": lambda switch: switch.relay("gso"),
    })
    plain = {name: switch for name, switch in made.items() if "GSO" not in name}
    yield from rows("cells switched, 1 per datagram, window of 64", "kcell/s",
                    [("Dynamips", Goal(1.5, True)), ("relay (mmsg)", Goal(0.95, True)), ("relay (recv, send)", None),
                     ("relay (select)", None)],
                    *rates(context, "cells, window of 64", plain, dict(skipped), "window", {}))
    for window in (64, 1024):
        # A window of 64 is a single super-datagram: an end that sleeps until it comes back would measure wake-ups.
        gso = ("--gso", "--spin", "--window", str(window))
        some = {name: switch for name, switch in made.items() if name in ("Aerostat", "relay (mmsg)", "relay (GSO, GRO)")}
        options = {"Aerostat": gso, "relay (GSO, GRO)": gso, "relay (mmsg)": ("--spin", "--window", str(window))}
        yield from rows(f"... GSO and GRO at both ends of Aerostat, window of {window}", "kcell/s",
                        [("relay (mmsg)", Goal(5, True)), ("relay (GSO, GRO)", None)],
                        *rates(context, f"cells, GSO and GRO, window of {window}", some, dict(skipped), "window", options))
    if context.quick:
        return
    for rate in (100_000, 200_000):
        def lost(name):
            return lambda: 100 * plain[name].measure("open", "--rate", str(rate))["loss"]
        missing = dict(skipped)
        values = context.rounds.measure(f"cells, open loop, {rate // 1000} kcell/s", {name: lost(name) for name in plain}, missing)
        context.keep(f"cells, open loop {rate}", values, missing)
        yield Row(f"... lost of {rate // 1000} kcell/s offered", "Aerostat", "%",
                  [("Dynamips", None), ("relay (mmsg)", None)]).fill(values, missing)


def many(context):
    """27 cells in a datagram, window of 64 datagrams. Aerostat's form has 52 octets for a cell."""
    options = ("--form", "52", "--cells", "27")
    made, skipped = build(context, {
        "Aerostat": lambda switch: switch.aerostat(", cells: 27"),
        "relay (mmsg)": lambda switch: switch.relay("mmsg", "--form", "52"),
        "relay (mmsg), 53 octets": lambda switch: switch.relay("mmsg"),
        "relay (GSO, GRO)": lambda switch: switch.relay("gso", *options),
    })
    own = {name: options for name in made}
    own["relay (mmsg), 53 octets"] = ("--cells", "27")
    plain = {name: switch for name, switch in made.items() if "GSO" not in name}
    yield from rows("cells switched, 27 per datagram, window of 64", "kcell/s",
                    [("relay (mmsg)", Goal(1.3, True)), ("relay (mmsg), 53 octets", None)],
                    *rates(context, "cells, 27 per datagram", plain, dict(skipped), "window", own))
    # Here the generator is as expensive as a relay, so its CPU limits both. GSO takes that limit away.
    own = {name: (*options, "--gso", "--spin", "--window", "256") for name in own}
    own["relay (mmsg)"] = (*options, "--spin", "--window", "256")
    some = {name: switch for name, switch in made.items() if "53" not in name}
    yield from rows("... GSO and GRO at both ends of Aerostat, window of 256", "kcell/s",
                    [("relay (mmsg)", Goal(1.3, True)), ("relay (GSO, GRO)", None)],
                    *rates(context, "cells, 27 per datagram, GSO and GRO", some, dict(skipped), "window", own))


# Cells of the PDUs of each connection, one PDU after another. The mix: half 2 cells, a quarter 12, a quarter 32.
PDUS = {"1 cell": "1", "2 cells": "2", "3 cells": "3", "12 cells": "12", "32 cells": "32", "192 cells": "192", "a mix": "2,12,2,32"}


def pdus(context):
    """27 cells in a datagram, with the ends of PDUs among them, of 1 connection and of many that alternate cell by cell."""
    made, skipped = build(context, {
        "Aerostat": lambda switch: switch.aerostat(", cells: 27", vcs=1024),
        "relay (mmsg)": lambda switch: switch.relay("mmsg", "--form", "52"),
        "Aerostat, policed": lambda switch: switch.aerostat(", cells: 27", vcs=1024, police=True),
    })

    def measure(name, lengths, vcs, ours, goal):
        options = ("--form", "52", "--cells", "27", "--pdus", lengths, "--vcs", str(vcs))
        some = {who: switch for who, switch in made.items() if who in (ours, "relay (mmsg)")}
        own = {who: options for who in some}
        work = f"27 cells per datagram, PDUs of {name}, {vcs} VC{'s' if vcs > 1 else ''}{', policed' if ours != 'Aerostat' else ''}"
        measured = rates(context, work, some, dict(skipped), "window", own)
        return rows(work, "kcell/s", [("relay (mmsg)", goal)], *measured, ours=ours)

    for name, lengths in PDUS.items():
        for vcs in (1, 16):
            yield from measure(name, lengths, vcs, "Aerostat", Goal(0.8, True) if (name, vcs) == ("1 cell", 1) else None)
    yield from measure("a mix", PDUS["a mix"], 1024, "Aerostat", None)
    for vcs in (1, 16, 1024):
        yield from measure("a mix", PDUS["a mix"], vcs, "Aerostat, policed", Goal(0.7, True) if vcs == 16 else None)
