"""Frames between kernel hosts: TCP and round trips, beside copiers of TAPs, VDE2, and the kernel's bridge and router."""

import json
import time

from .aerostat import Lab
from .machine import Died, Missing, Namespace, cpu_time, cpus, need, need_root, pin, pinned, run
from .rounds import Goal, Row

LANE, MPOA, CLIP = "Aerostat, LANE", "Aerostat, MPOA shortcut", "Aerostat, Classical IP 9180"
# A lab's cables have a delay of 5 µs each unless it says otherwise: 20 µs of a round trip over one switch.
CABLES = "Aerostat, LANE, cables of 5 µs"
NO_DELAY = [word for host in ("near", "far") for word in ("--set", f"hosts.{host}.link.delay=0s")]
VDE, COPIER, VNET = "VDE2", "TAP copier", "TAP copier, vnet headers"
BRIDGE, ROUTER = "kernel's bridge", "kernel's router"


class Path:
    """Two namespaces with a way between them. `helpers` are the processes on the way."""

    def __init__(self, context, near, far, address, helpers=()):
        self.context, self.near, self.far, self.address, self.helpers = context, near, far, address, list(helpers)
        self.efficiency = []

    def tcp(self):
        """iperf3 from near to far: what arrives, Gb/s."""
        here = set(cpus())
        pin(self.helpers, here)
        server = self.context.processes.serve(self.far.inside(["iperf3", "-s", "-1", "-p", "5301", "--forceflush"]), "listening")
        seconds = max(1, round(2 * self.context.seconds))
        before = cpu_time(self.helpers)
        try:
            text = run(self.near.inside(["iperf3", "-c", self.address, "-p", "5301", "-t", str(seconds), "-J"]), seconds + 30)
        finally:
            self.context.processes.stop(server)
        told = json.loads(text)["end"]["sum_received"]
        if self.helpers:
            self.efficiency.append(told["bytes"] * 8e-9 / max(1e-9, cpu_time(self.helpers) - before))
        return told["bits_per_second"] / 1e9

    def round_trip(self, host_cpu, helper_cpu):
        """A datagram of UDP there and back, again and again: the median, µs."""
        pin(self.helpers, {helper_cpu})
        at = f"{self.address}:5302"
        server = self.context.processes.serve(pinned(host_cpu, self.far.inside([self.context.probe, "echo", at])), "ready")
        command = [self.context.probe, "roundtrip", at, "--seconds", self.context.seconds]
        try:
            told = json.loads(run(pinned(host_cpu, self.near.inside(command))))
        finally:
            self.context.processes.stop(server)
        if not told["p50_us"]:
            raise Died("no datagram comes back")
        return told["p50_us"]


def wait_for(seconds, what, done):
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            raise Died(f"{what} after {seconds} s")
        time.sleep(0.05)


def two_hosts(context, middle, devices, helper, mtu, net):
    """Moves both TAPs of a helper from its namespace into namespaces of hosts."""
    wait_for(10, "no TAPs", lambda: all(middle.has(device) for device in devices))
    hosts = []
    for number, device in enumerate(devices, 1):
        host = Namespace.create(context.processes)
        middle.ip("link", "set", device, "netns", str(host.pid))
        host.address(device, f"{net}.{number}/24", mtu)
        hosts.append(host)
    return Path(context, *hosts, f"{net}.2", [helper.pid])


def copier(context, mtu, *options):
    middle = Namespace.create(context.processes)
    devices = ("copy0", "copy1")
    helper = context.processes.serve(middle.inside([context.probe, "copier", *devices, *options]), "ready")
    return two_hosts(context, middle, devices, helper, mtu, "10.77.1")


def vde(context, mtu):
    program = need("vde_switch", "bench/peers vde2, or apt-get install vde2")
    middle = Namespace.create(context.processes)
    devices = ("vde0", "vde1")
    taps = [word for device in devices for word in ("-tap", device)]
    # It ends at the end of its input, and goes to the background with -d only.
    helper = context.processes.start(middle.inside([program, "-s", str(context.scratch / f"vde{mtu}"), *taps]),
                                     stdin=-1)
    return two_hosts(context, middle, devices, helper, mtu, "10.77.2")


def cable(host, middle, name, mtu):
    """A veth pair: `eth0` at the host, `name` in the middle."""
    host.ip("link", "add", "eth0", "type", "veth", "peer", "name", name, "netns", str(middle.pid))
    middle.ip("link", "set", name, "mtu", str(mtu), "up")


def bridge(context, mtu):
    middle = Namespace.create(context.processes)
    middle.ip("link", "add", "br0", "type", "bridge")
    middle.ip("link", "set", "br0", "mtu", str(mtu), "up")
    hosts = []
    for number in (1, 2):
        host = Namespace.create(context.processes)
        cable(host, middle, f"port{number}", mtu)
        middle.ip("link", "set", f"port{number}", "master", "br0")
        host.address("eth0", f"10.77.3.{number}/24", mtu)
        hosts.append(host)
    return Path(context, *hosts, "10.77.3.2")


def router(context, mtu):
    middle = Namespace.create(context.processes)
    run(middle.inside(["sysctl", "-qw", "net.ipv4.ip_forward=1"]))
    hosts = []
    for number in (4, 5):
        host = Namespace.create(context.processes)
        cable(host, middle, f"port{number}", mtu)
        middle.address(f"port{number}", f"10.77.{number}.1/24", mtu)
        host.address("eth0", f"10.77.{number}.2/24", mtu)
        host.ip("route", "add", "default", "via", f"10.77.{number}.1")
        hosts.append(host)
    return Path(context, *hosts, "10.77.5.2")


def lab(context, name, address, *options):
    running = Lab(context, name, "-q", *options)
    hosts = [running.namespace(host) for host in ("near", "far")]
    path = Path(context, *hosts, address, [running.process.pid])
    # Connections and shortcuts are there before anything is measured.
    wait_for(30, f"{name}: {address} does not answer", lambda: answers(path))
    return running, path


def answers(path):
    try:
        run(path.near.inside(["ping", "-c", "1", "-W", "1", path.address]), 10)
    except Died:
        return False
    return True


def mpoa(context, *options):
    running, path = lab(context, "tcp-mpoa.atm.yml", "10.2.0.2", *options)
    def shortcut():
        run(path.near.inside(["ping", "-q", "-c", "50", "-i", "0.01", "-W", "1", path.address]), 20)
        rows = running.table("near", "mpc")["rows"]
        return any(row["table"] == "ingress" and row["vci"] for row in rows)
    wait_for(40, "no shortcut", shortcut)
    return path


def setups(context, mtu, wanted, *options):
    """The paths of these names. The options are those of `aerostat up`."""
    makers = {
        LANE: lambda: lab(context, "tcp-lane.atm.yml", "10.1.0.2", *options)[1],
        CABLES: lambda: lab(context, "tcp-lane.atm.yml", "10.1.0.2")[1],
        MPOA: lambda: mpoa(context, *options),
        CLIP: lambda: lab(context, "tcp-clip.atm.yml", "10.1.0.2", *options)[1],
        COPIER: lambda: copier(context, mtu),
        VNET: lambda: copier(context, mtu, "--vnet"),
        VDE: lambda: vde(context, min(mtu, 1500)),
        BRIDGE: lambda: bridge(context, mtu),
        ROUTER: lambda: router(context, mtu),
    }
    need_root()
    need("ping", "apt-get install iputils-ping")
    made, skipped = {}, {}
    for name in wanted:
        try:
            made[name] = makers[name]()
        except (Missing, Died) as reason:
            skipped[name] = str(reason)
    return made, skipped


def efficiency(work, ours, made, skipped):
    """Gigabits for each second of processor time of what is on the way; the kernel's own paths have no process."""
    values = {name: path.efficiency for name, path in made.items() if path.helpers}
    return Row(work, ours, "Gb/s", [(name, None) for name in (VNET, VDE, COPIER)]).fill(values, skipped)


def tcp(context):
    """TCP with an MTU of 1500: LANE and an MPOA shortcut."""
    need("iperf3", "bench/peers iperf3, or apt-get install iperf3")
    wanted = (LANE, MPOA, VNET, VDE, COPIER, BRIDGE, ROUTER)
    made, skipped = setups(context, 1500, wanted)
    title = "TCP, MTU 1500"
    values = context.rounds.measure(title, {name: path.tcp for name, path in made.items()}, skipped)
    context.keep(title, values, skipped)
    rest = [(COPIER, None), (BRIDGE, None), (ROUTER, None)]
    goals = [(VNET, Goal(0.6, True)), (VDE, Goal(4.5, True))]
    yield Row("TCP between kernel hosts, MTU 1500, 40 Gb/s links: LANE", LANE, "Gb/s", goals + rest).fill(values, skipped)
    yield Row("... MPOA shortcut", MPOA, "Gb/s", [*goals, (LANE, Goal(1, True))]).fill(values, skipped)
    for name in (LANE, MPOA):
        yield efficiency(f"... for each second of processor time on the way, {name}", name, made, skipped)


def tcp_clip(context):
    """TCP over Classical IP with an MTU of 9180. VDE2 takes frames of 1514 octets at most."""
    need("iperf3", "bench/peers iperf3, or apt-get install iperf3")
    made, skipped = setups(context, 9180, (CLIP, VNET, VDE, COPIER, BRIDGE, ROUTER))
    title = "TCP, MTU 9180"
    values = context.rounds.measure(title, {name: path.tcp for name, path in made.items()}, skipped)
    context.keep(title, values, skipped)
    yield Row("... Classical IP, MTU 9180 (VDE2: 1500)", CLIP, "Gb/s",
              [(VNET, Goal(0.6, True)), (VDE, Goal(4.5, True)), (COPIER, None), (BRIDGE, None), (ROUTER, None)]
              ).fill(values, skipped)
    yield efficiency("... for each second of processor time on the way", CLIP, made, skipped)


def round_trips(context):
    """Round trips: everything on one CPU; what is on the way on one CPU, both hosts on another.

    A copier has no cables. So the labs beside it have cables without delay, and one more lab has the usual cables.
    """
    wanted = (LANE, MPOA, CLIP, CABLES, COPIER, VNET, VDE)
    made, skipped = setups(context, 1500, wanted, *NO_DELAY)
    here = cpus()
    for title, host, helper, limit in (("pinned to one CPU", here[-1], here[-1], 1.5), ("across CPUs", here[-1], here[0], 1.3)):
        if host == helper and title == "across CPUs":
            continue
        missing = dict(skipped)
        def once(path, host=host, helper=helper):
            return lambda: path.round_trip(host, helper)
        values = context.rounds.measure(f"round trip, {title}", {name: once(path) for name, path in made.items()}, missing)
        context.keep(f"round trip, {title}", values, missing)
        goals = [(COPIER, Goal(limit, True, at_most=True))]
        yield Row(f"round trip between kernel hosts, {title}, cables without delay: LANE", LANE, "µs",
                  goals + [(VNET, None), (VDE, None)], True, 1).fill(values, missing)
        yield Row("... MPOA shortcut", MPOA, "µs", goals, True, 1).fill(values, missing)
        yield Row("... Classical IP 9180", CLIP, "µs", goals, True, 1).fill(values, missing)
        yield Row("... LANE, cables of 5 µs (20 µs of the time are theirs)", CABLES, "µs", goals, True, 1
                  ).fill(values, missing)
