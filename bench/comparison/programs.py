"""Programs of the machine at the socket service of a lab: set-up and release of calls, and PDUs."""

import json
import re
import socket
import sys
import threading

from . import guest
from .aerostat import Lab
from .machine import ROOT, Died, Missing, before_others, cpus, ends_with_parent, pin, pinned, run
from .rounds import Goal, Row

sys.path.insert(0, str(ROOT / "python"))
from aerostat_socket import Service  # noqa: E402

LAB = """
switches: {{ s: {{}} }}
clip: {{ lis: {{ subnet: 10.1.0.0/24, server: far }} }}
hosts:
  near: {{ on: s, elan: lis, ip: 10.1.0.1, link: {{ rate: {rate} }} }}
  far:  {{ on: s, elan: lis, ip: 10.1.0.2, link: {{ rate: {rate} }} }}
"""
SIZES = (48, 9180)


def service_of(lab, host):
    """The path of the socket service of a host."""
    paths = list(lab.folder.glob(f"**/atm/{host}.sock"))
    if len(paths) != 1:
        raise Died(f"the lab has no socket service for {host}")
    return paths[0]


class Calls:
    """Calls one after another from a program to a program: both and the lab are on one CPU."""

    def __init__(self, context, *options):
        self.context, self.cpu = context, cpus()[-1]
        self.lab = Lab(context, "programs.atm.yml", "-q", "--embedded", *options, text=LAB.format(rate="oc3"))
        pin([self.lab.process.pid], {self.cpu})
        self.called = self.start(context, "far", "serve")
        self.releases, self.late = [], []

    def start(self, context, host, *words):
        settings = {"env": dict(self.lab.environment, AEROSTAT_ATM=str(service_of(self.lab, host)))}
        return context.processes.serve(pinned(self.cpu, [context.calls, *words]), "\n", **settings)

    def median(self):
        """Set-up as the caller sees it: the median, µs. The median of releases is kept."""
        count = 500 if self.context.quick else 3000
        environment = dict(self.lab.environment, AEROSTAT_ATM=str(service_of(self.lab, "near")))
        told = run(pinned(self.cpu, [self.context.calls, "far", count]), env=environment)
        found = {what: (float(p50), float(p99)) for what, p50, p99 in re.findall(r"^(set-up|release): p50 (\d+) us, p99 (\d+) us", told, re.M)}
        self.releases.append(found["release"][0])
        self.late.append(found["set-up"][1])
        return found["set-up"][0]


KINDS = {"one process": ((), 150, 80), "--split": (("--split",), None, None)}


def calls(context):
    """Set-up and release of calls between programs in processes of their own, through a switch."""
    contenders, skipped, labs = {}, {}, {}
    for name, (options, _, _) in KINDS.items():
        try:
            labs[name] = Calls(context, *options)
            contenders[name] = labs[name].median
        except (Missing, Died) as reason:
            skipped[name] = str(reason)
    values = context.rounds.measure("calls of programs", contenders, skipped)
    releases = {name: lab.releases for name, lab in labs.items()}
    late = {name: lab.late for name, lab in labs.items()}
    context.keep("calls of programs", values, skipped, releases=releases, p99=late)
    for name, (_, setup, release) in KINDS.items():
        goal = Goal(setup, at_most=True, unit="µs") if setup else None
        yield Row(f"call from program to program through a switch, live, on one CPU, {name}: set-up p50", name, "µs",
                  [(None, goal)], True, 0).fill(values, skipped)
        yield Row("... set-up p99", name, "µs", [(None, None)], True, 0).fill(late, skipped)
        goal = Goal(release, at_most=True, unit="µs") if release else None
        yield Row("... release p50", name, "µs", [(None, goal)], True, 0).fill(releases, skipped)


class Ends:
    """A sender and a receiver of packets at two descriptors; what is between them is somebody else's."""

    def __init__(self, context, octets):
        self.context, self.octets = context, octets

    def rate(self, sender, receiver):
        """Packets that the receiver reads in a second. Both descriptors are closed then.

        The receiver goes before the sender on their CPU: ATM has no flow control, and what a sender writes in its turn
        would be lost at a receiver that waits for its own.
        """
        cpu = cpus()[0]
        first, last = before_others()
        probe = [self.context.probe, "packets"]
        for end in (sender, receiver):
            end.setblocking(True)
        sending = self.context.processes.start(pinned(cpu, [*last, *probe, "send", sender.fileno(), "--octets", self.octets]),
                                               pass_fds=[sender.fileno()])
        sender.close()
        try:
            told = run(pinned(cpu, [*first, *probe, "receive", receiver.fileno(), "--seconds", self.context.seconds]),
                       pass_fds=[receiver.fileno()])
        finally:
            receiver.close()
            self.context.processes.stop(sending)
        return json.loads(told)["packets_per_second"]

    def pair(self):
        """Nothing is between them."""
        return self.rate(*socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET))

    def relay(self):
        """A process that only reads and writes is between them, on a CPU of its own if there are two."""
        sender, first = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        second, receiver = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = pinned(cpus()[-1], [self.context.probe, "packets", "relay", first.fileno(), second.fileno()])
        relay = self.context.processes.start(command, pass_fds=[first.fileno(), second.fileno()])
        first.close()
        second.close()
        try:
            return self.rate(sender, receiver)
        finally:
            self.context.processes.stop(relay)

    def lab(self, lab, listener, unread):
        """A call through a lab is between them. The share of PDUs that the reader did not take in time goes to `unread`."""
        caller = Service(str(service_of(lab, "near"))).socket()
        called, accepted = listener.status()["local"], []
        answer = threading.Thread(target=lambda: accepted.append(listener.accept()), daemon=True)
        answer.start()
        caller.connect(called, f"ubr:sdu={self.octets}")
        answer.join(10)
        if not accepted:
            raise Died("the call was not answered")
        rate = self.rate(caller, accepted[0])
        told = accepted[0].status()
        unread.append(100 * told["unread"] / max(1, told["unread"] + told["received_pdus"]))
        return rate


def pdus(context):
    """PDUs from program to program over a link of 40 Gb/s, beside a relay of packets and the bare pair."""
    skipped = {}
    lab = Lab(context, "programs.atm.yml", "-q", "--embedded", text=LAB.format(rate="40Gbps"))
    pin([lab.process.pid], {cpus()[-1]})
    listener = Service(str(service_of(lab, "far"))).listen()
    for octets in SIZES:
        ends, unread = Ends(context, octets), []
        contenders = {
            "aerostat": lambda ends=ends, unread=unread: ends.lab(lab, listener, unread),
            "relay": ends.relay,
            "bare pair": ends.pair,
        }
        title = f"PDUs of {octets} octets from program to program"
        values = context.rounds.measure(title, contenders, skipped)
        context.keep(title, values, skipped, unread=unread)
        yield Row(f"{title}, link of 40 Gb/s", "aerostat", "PDUs/s",
                  [("relay", Goal(0.7, "relay")), ("bare pair", None)], digits=0).fill(values, skipped)
        yield Row("... PDUs that the reader did not take in time", "aerostat", "%", [(None, None)], True, 1
                  ).fill({"aerostat": unread}, skipped)


def guest_calls(context):
    """`connect` and `close` of one program in C in the virtual machine: over the preload library, and over its kernel."""
    skipped = {}
    files = {"aerostat": context.aerostat, "libaerostat_preload.so": context.aerostat.parent / "libaerostat_preload.so",
             "connect": guest.compiled(ROOT / "bench" / "guest" / "connect.c", context.scratch)}
    lab = context.scratch / "programs.atm.yml"
    lab.write_text(LAB.format(rate="oc3"), encoding="utf-8")
    found = {}

    def once(name):
        # A run of the machine measures both, a round at a time; the second contender of a round has its result already.
        key = len(found.setdefault(name, []))
        if key >= len(found.get("both", [])):
            found.setdefault("both", []).append(measured_in_guest(files | {lab.name: lab}, context))
        result = found["both"][key][name]
        found[name].append(result)
        return result["connect_p50_us"]

    names = ("preload", "kernel")
    values = context.rounds.measure("connect and close in the VM", {name: lambda name=name: once(name) for name in names}, skipped)
    context.keep("connect and close in the VM", values, skipped, found=found)
    closes = {name: [result["close_p50_us"] for result in found.get(name, [])] for name in names}
    for what, data in (("connect", values), ("close", closes)):
        # Less is better, so the peer's time over ours is what the goal speaks of.
        yield Row(f"a program in C in the VM, {what}: p50, preload library and lab", "preload", "µs",
                  [("kernel", Goal(0.2, "kernel", at_most=True) if what == "connect" else None)], True, 0).fill(data, skipped)


def measured_in_guest(files, context):
    """What the program says over the preload library, and over the kernel with atmsigd."""
    said = guest.run([ROOT / "bench" / "guest" / "programs.sh"], files, {"COUNT": 60 if context.quick else 200}, context.scratch)
    results = {}
    for line in said.splitlines():
        word, what, text = (line.split(None, 2) + ["", ""])[:3]
        if word == "RESULT":
            results[what] = json.loads(text)
    if not {"preload", "kernel"} <= results.keys():
        raise Died(f"the virtual machine gave no result: {said[-1500:]}")
    return results
