"""Interleaved rounds, medians and ratios, goals, and the table."""

import statistics
import subprocess
import sys

from .machine import Died, Missing, busy_cores


def say(text):
    print(text, file=sys.stderr, flush=True)


class Goal:
    """What a row should reach: against a peer of the same run, or an absolute value."""

    def __init__(self, limit, beside=None, at_most=False, unit=""):
        self.limit, self.beside, self.at_most, self.unit = limit, beside, at_most, unit

    def text(self):
        sign = "≤" if self.at_most else "≥"
        return f"{sign} {self.limit:g} ×" if self.beside else f"{sign} {self.limit:g} {self.unit}".rstrip()

    def met(self, value):
        return value <= self.limit if self.at_most else value >= self.limit


class Row:
    """One row of the table of goals: ours, and what stands beside it in the same rounds.

    `peers` are pairs of a name in `values` and a goal or None; an absolute goal has the name None.
    """

    def __init__(self, work, ours, unit, peers, less_is_better=False, digits=2):
        self.work, self.ours, self.unit, self.peers = work, ours, unit, peers
        self.less_is_better, self.digits = less_is_better, digits
        self.values, self.skipped = {}, {}

    def fill(self, values, skipped):
        names = [self.ours] + [name for name, _ in self.peers if name]
        self.values = {name: values[name] for name in names if name in values}
        self.skipped = {name: skipped[name] for name in names if name in skipped}
        return self

    def number(self, name):
        seen = [value for value in self.values.get(name, []) if value is not None]
        if not seen:
            return None
        return statistics.median(seen), min(seen), max(seen)

    def ratio(self, name):
        """Median, least and greatest of the ratios ours / theirs, each within one round."""
        pairs = zip(self.values.get(self.ours, []), self.values.get(name, []))
        ratios = [ours / theirs for ours, theirs in pairs if ours is not None and theirs]
        if not ratios:
            return None
        return statistics.median(ratios), min(ratios), max(ratios)

    def shown(self, numbers):
        if numbers is None:
            return "–"
        middle, least, most = (f"{value:.{self.digits}f}" for value in numbers)
        return f"{middle} [{least}..{most}] {self.unit}" if least != most else f"{middle} {self.unit}"

    def judged(self):
        """One entry for each peer or absolute goal."""
        ours = self.number(self.ours)
        for name, goal in self.peers:
            against = self.number(name) if name else None
            ratio = self.ratio(name) if name else None
            value = ratio[0] if ratio else (ours[0] if ours and not name else None)
            met = None if goal is None or value is None else goal.met(value)
            yield {"work": self.work, "aerostat": ours, "unit": self.unit, "peer": name, "peer_value": against,
                   "ratio": ratio, "goal": goal.text() if goal else None, "met": met,
                   "skipped": self.skipped.get(name) if name else None, "ours_skipped": self.skipped.get(self.ours)}

    def lines(self):
        """Lines of the table in Markdown."""
        ours = self.shown(self.number(self.ours))
        if self.ours in self.skipped:
            ours = f"skipped: {self.skipped[self.ours]}"
        work = self.work
        for entry in self.judged():
            name, ratio = entry["peer"], entry["ratio"]
            beside = "–" if name is None else f"{name}: {self.shown(entry['peer_value'])}"
            if entry["skipped"]:
                beside = f"{name}: skipped, {entry['skipped']}"
            shown = f"{ratio[0]:.2f} [{ratio[1]:.2f}..{ratio[2]:.2f}]" if ratio else ""
            met = {None: "", True: "yes", False: "**no**"}[entry["met"]]
            if entry["goal"] and entry["met"] is None:
                met = "not measured"
            yield f"| {work} | {ours} | {beside} | {shown} | {entry['goal'] or ''} | {met} |"
            work, ours = "", ""


HEAD = ["| work | Aerostat | beside it | ratio | goal | met |", "|---|---|---|---|---|---|"]


class Rounds:
    """Measures contenders in turn, round after round, backwards in every second one."""

    def __init__(self, count):
        self.count = count
        self.busy = []

    def measure(self, title, contenders, skipped):
        """`contenders`: names with functions that measure once. A contender that fails is not tried again."""
        values = {name: [] for name in contenders}
        gone = set()
        for number in range(self.count):
            order = list(contenders.items())
            for name, once in order if number % 2 == 0 else reversed(order):
                if name in gone:
                    values[name].append(None)
                    continue
                self.busy.append(busy_cores())
                try:
                    value = once()
                except (Died, Missing, OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
                    gone.add(name)
                    skipped[name] = f"failed: {error or type(error).__name__}"
                    value = None
                values[name].append(value)
                shown = "failed: " + skipped[name][:300] if value is None else f"{value:.6g}"
                say(f"  {title}, round {number + 1} of {self.count}: {name}: {shown}")
        for name in gone:
            if any(value is not None for value in values[name]):
                say(f"  {title}: {name} is incomplete: {skipped.pop(name)}")
        return values
