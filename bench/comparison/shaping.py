"""A shaped VC at a link out of the lab beside the kernel's token bucket, judged by the kernel's receive time stamps."""

import pathlib
import time

from . import stamps
from .aerostat import Lab
from .machine import Died, Missing, Namespace, cpu_time, cpus, need, need_root, pin, pinned, run
from .rounds import Goal, Row

LAB = """
switches: {{ s: {{}} }}
lane: {{ on: s, elans: {{ a: {{ subnet: 10.1.0.0/24 }} }} }}
links: [[s, {{ name: peer, rate: oc12, udp: {{ local: '{here}:7001', peer: '{there}:7002' }} }}]]
hosts:
  h: {{ on: s, link: {{ rate: oc12 }}, elan: a, ip: 10.1.0.10, sockets: [{{ name: w, vc: "0.100", size: 9180, pdus: {pdus}, rate: {pps}pps, start: 0s }}] }}
pvcs: [{{ from: h, vc: "0.100", to: peer, to_vc: "0.100", qos: "cbr,aal5:pcr={pcr}{cdvt}" }}]
"""
HERE, THERE, PORT, VCI = "192.0.2.1", "192.0.2.2", 7002, 100
# Mb/s of cells with their headers, and cells/s.
RATES = [(2, 4716), (25.4, 59_905), (35, 82_547), (100, 235_849), (149, 351_415)]
# Octets of a datagram with one cell, with its Ethernet header, as a queueing discipline counts them.
FRAME = 14 + 20 + 8 + 53
# The credit of the two shapers after a wait, s: the tolerance of a contract that gives none (docs/traffic.md).
TOLERANCE = 1e-3


class Wire:
    """Two network namespaces with a pair of interfaces between them."""

    def __init__(self, context):
        need_root()
        need("tc", "apt-get install iproute2")
        self.context = context
        self.near, self.far = (Namespace.create(context.processes) for _ in range(2))
        self.near.ip("link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", f"/proc/{self.far.pid}/ns/net")
        for space, address in ((self.near, HERE), (self.far, THERE)):
            space.address("wire", f"{address}/24", 1500)
        self.script = pathlib.Path(stamps.__file__)
        self.record = context.scratch / "stamps"

    def tc(self, *words):
        run(self.near.inside(["tc", "qdisc", *words]))

    def receiver(self):
        command = self.far.inside(["python3", self.script, "receive", THERE, PORT, VCI, self.record])
        process = self.context.processes.serve(command, "ready\n")
        process.stdout.close()
        pin([process.pid], {cpus()[0]})
        return process

    def times(self, receiver):
        """The time of every cell that has come."""
        self.context.processes.stop(receiver)
        times = stamps.read(self.record)
        self.record.unlink()
        return times

    def token_bucket(self, pcr, seconds):
        """Cells through `tc tbf`: bit rate and bucket of as many frames as the contract has cells."""
        burst = max(1, int(TOLERANCE * pcr)) * FRAME
        self.tc("replace", "dev", "wire", "root", "tbf", "rate", f"{pcr * FRAME * 8}bit", "burst", str(burst), "limit", str(64 << 20))
        try:
            receiver = self.receiver()
            run(pinned(cpus()[-1], self.near.inside(["python3", str(self.script), "send", THERE, str(PORT), str(seconds + 0.2)])))
        finally:
            self.tc("del", "dev", "wire", "root")
        times = self.times(receiver)
        # The full bucket of the beginning is not judged, and the queue of the end is as long as the sender lets it be.
        first = 2 * int(TOLERANCE * pcr) + 10
        return judged(times[first:first + int(pcr * seconds)], pcr)

    def aerostat(self, pcr, seconds, contract=""):
        receiver = self.receiver()
        pps = int(1.25 * pcr / 192) + 2
        text = LAB.format(here=HERE, there=THERE, pcr=pcr, pps=pps, pdus=int(pps * (seconds + 30)), cdvt=contract)
        lab = Lab(self.context, "shaping.atm.yml", "-q", "--embedded", text=text, inside=self.near)
        pin([lab.process.pid], {cpus()[-1]})
        time.sleep(0.7)
        first, cpu = shaper(lab), cpu_time([lab.process.pid])
        time.sleep(seconds)
        last, cpu = shaper(lab), cpu_time([lab.process.pid]) - cpu
        lab.stop()
        times = self.times(receiver)
        if len(times) <= last[0]:
            raise Died(f"{len(times)} cells have come of {last[0]}")
        told = judged(times[first[0]:last[0]], pcr)
        lost = last[1] - first[1]
        took = times[last[0]] - times[first[0]]
        told["lost"] = 100 * lost / took
        told["accounted"] = 100 * (((last[0] - first[0]) * 1e9 / pcr + lost) / took - 1)
        told["cpu"] = 100 * cpu * 1e9 / took
        return told


def shaper(lab):
    """Cells sent and time lost, ns, at the same moment."""
    rows = lab.table("h", "vc")["rows"]
    row = next(row for row in rows if row.get("vc") == f"0.{VCI}")
    return row["cells_sent"], row["shaper_lost_ns"]


def judged(times, pcr):
    """What a recording shows: errors of the rate in %, tolerances in µs.

    Between stalls: a stall is a gap longer than the credit makes up for. Each piece between two stalls is a line through
    number and time of its cells, all with the same slope, by least squares. It begins when the cells that the credit lets
    through after the stall have gone.
    """
    if len(times) < 1000:
        raise Died(f"only {len(times)} cells have come")
    step, credit = 1e9 / pcr, TOLERANCE * 1e9
    # A float counts nanoseconds exactly from the first cell on, and not from 1970 on.
    origin = times[0]
    times = [at - origin for at in times]
    early, expected = [], 0.0
    up = across = stalls = 0
    count = ats = numbers = squares = products = 0
    begin, first, previous = 0, 0, 0
    for number, now in enumerate([*times, None]):
        if now is None or now - previous > step + credit:
            # The sums of a piece: deviations from its own means.
            if count > 1:
                up += products - numbers * ats / count
                across += squares - numbers * numbers / count
            count = ats = numbers = squares = products = 0
            begin, first = now, number
            if now is None:
                break
            stalls += 1
        at = now - begin
        if at >= credit or not stalls:
            place = number - first
            count += 1
            ats += at
            numbers += place
            squares += place * place
            products += place * at
        previous = now
        early.append(expected - now)
        expected = max(expected, now) + step
    early.sort()
    return {
        "between": 100 * (step * across / up - 1),
        "total": 100 * ((len(times) - 1) * step / (times[-1] - times[0]) - 1),
        "most": max(0, early[int(0.999 * len(early))]) / 1e3,
        "all": max(0, early[-1]) / 1e3,
        "stalls": stalls,
    }


COLUMNS = [
    ("mean error between stalls", "between", "%", 4),
    ("mean error of the time without what is counted as lost", "accounted", "%", 4),
    ("error of the whole", "total", "%", 3),
    ("time counted as lost", "lost", "%", 3),
    ("stalls", "stalls", "", 0),
    ("tolerance for 99.9 % of the cells", "most", "µs", 0),
    ("tolerance for all cells", "all", "µs", 0),
    ("processor", "cpu", "% of a CPU", 0),
]


def shaping(context):
    """A greedy CBR VC of each rate, through a switch and out of the lab."""
    seconds = 2 * context.seconds
    wire = Wire(context)
    for megabits, pcr in RATES:
        seen = {}

        def once(name, measure):
            def measured():
                first = len(context.processes.all)
                try:
                    told = measure(pcr, seconds)
                finally:
                    for process in reversed(context.processes.all[first:]):
                        context.processes.stop(process)
                for key, value in told.items():
                    seen.setdefault(key, {}).setdefault(name, []).append(value)
                return told["between"]
            return measured
        title = f"shaping, {megabits} Mb/s"
        skipped = {}
        context.rounds.measure(title, {"Aerostat": once("Aerostat", wire.aerostat), "tc tbf": once("tc tbf", wire.token_bucket)}, skipped)
        context.keep(title, seen, skipped)
        work = f"CBR of {megabits} Mb/s out of the lab: "
        for text, key, unit, digits in COLUMNS:
            values = seen.get(key, {})
            goal = None
            if key in ("between", "accounted"):
                values = {name: [abs(value) for value in each] for name, each in values.items()}
                goal = Goal(0.1, at_most=True, unit="%")
            peers = [(None, goal)] if goal else []
            if "tc tbf" in values or "tc tbf" in skipped:
                peers.append(("tc tbf", None))
            yield Shown(work + text, "Aerostat", unit, peers or [(None, None)], True, digits).fill(values, skipped)
            work = "... "


class Shown(Row):
    """A row whose ratios mean nothing: errors are near zero."""

    def ratio(self, name):
        return None
