"""A plugin of pytest: labs in tests.

`lab("two-subnets")` runs a lab in virtual time, `live_lab("two-subnets")` in real time. A test that fails shows the
flows of its labs with the places of their losses, and where the capture of a running lab is."""

import contextlib
import itertools
import json
import os
import shutil
from pathlib import Path

import pytest

from . import Lab, Up, program

_SHOWN = pytest.StashKey()
_NUMBERS = itertools.count(1)
# Most rows that a failed test shows of a lab.
_ROWS = 20


def pytest_addoption(parser):
    group = parser.getgroup("aerostat")
    group.addoption(
        "--lab-captures", metavar="DIR", help="directory for captures of failed tests (default: aerostat-captures)"
    )


def pytest_configure(config):
    config.addinivalue_line("markers", "lab_until(time): end of the labs of a test in virtual time, such as '5s'")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed:
        for title, text in item.stash.get(_SHOWN, []):
            report.sections.append((title, text() if callable(text) else text))
    return report


def _places(counts):
    """Counts by place, as a document or a table has them."""
    counts = json.loads(counts or "{}") if isinstance(counts, str) else counts
    return ", ".join(f"{count} at {place}" for place, count in counts.items())


def flow_text(row):
    """A flow on one line: its way, its packets, and where they were lost."""
    places = _places(row["lost_by"])
    way = f"{row['name']}: {row['from']} -> {row['to']}, {row['phase']}"
    packets = f"{row['offered']} offered, {row['delivered']} delivered, {row['lost']} lost"
    return f"{way}: {packets}{f' ({places})' if places else ''}, {row['under_way']} under way"


def _flows_text(rows, warnings):
    lines = [flow_text(row) for row in itertools.islice(rows, _ROWS)]
    more = len(rows) - len(lines)
    lines += [f"... and {more} more"] * (more > 0)
    return "\n".join([*lines, *(f"warning: {warning}" for warning in warnings)])


class LabRun:
    """A run of a lab in virtual time. Its results are attributes: `run.flows`."""

    def __init__(self, lab, options):
        self.lab = lab
        self.options = options
        self.results = lab.run(**options)

    def __getattr__(self, name):
        return getattr(self.results, name)

    def flow(self, name, phase=None):
        """The row of a flow; the phase tells apart those of several."""
        rows = [row for row in self.results.flows if row["name"] == name and phase in (None, row["phase"])]
        if len(rows) != 1:
            known = ", ".join(f"{row['name']} ({row['phase']})" for row in self.results.flows)
            raise KeyError(f"{len(rows)} rows are of flow {name!r}; flows are {known or 'none'}")
        return rows[0]

    def assert_checks(self, checks=None):
        """Asserts the checks of the lab file, or others, such as `[{"flow": "ping", "lost": 0}]`."""
        __tracebackhide__ = True
        judged = self.lab.check(checks, **self.options)
        wrong = [one for one in judged if one["verdict"] in ("fail", "unjudged") and one["level"] == "required"]
        if not judged:
            raise ValueError(f"{self.lab.name} has no checks")
        if wrong:
            lines = [f"{one['verdict']}: {one['title']}: {one['details'] or one['text']}" for one in wrong]
            raise AssertionError("\n".join([f"{len(wrong)} of {len(judged)} checks of {self.lab.name}:", *lines]))

    def assert_delivered(self, name, *, phase=None):
        """Asserts that a flow has lost nothing, and that something was delivered."""
        __tracebackhide__ = True
        row = self.flow(name, phase)
        assert row["delivered"] > 0 and row["lost"] == 0, flow_text(row)


@pytest.fixture
def lab(request):
    """Runs labs in virtual time: `lab("two-subnets", seed=3, until="5s", set={...}, limit=60)`, a name, file or Lab."""
    shown = request.node.stash.setdefault(_SHOWN, [])

    def run(given, **options):
        marker = request.node.get_closest_marker("lab_until")
        if marker is not None:
            options.setdefault("until", marker.args[0])
        given = given if isinstance(given, Lab) else Lab(given)
        ran = LabRun(given, options)
        text = _flows_text(ran.results.flows.rows(), [*given.warnings, *ran.results.warnings])
        shown.append((f"lab {given.name}", text))
        return ran

    return run


class _Live:
    """A running lab of a test, and its recording."""

    def __init__(self, running, path, kept):
        self.running, self.path, self.kept = running, path, kept
        self.open = contextlib.ExitStack()
        self.open.enter_context(running)
        if path is not None:
            try:
                self.open.enter_context(running.capture(path))
            except BaseException:
                self.open.close()
                raise

    def end(self):
        self.open.close()

    def failed(self):
        """What a failed test shows: flows, and where the capture stays."""
        self.end()
        text = _flows_text(self.running.results["flows"], self.running.warnings)
        if self.path is None:
            return text
        self.kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.path, self.kept)
        return f"{text}\ncapture: {self.kept}"


@pytest.fixture
def live_lab(request, tmp_path):
    """Starts labs in real time: `live_lab("two-subnets", embedded=True)` gives an aerostat.Up, which ends with the test.

    All links are recorded; the file stays if the test fails. `capture=False` records nothing. A test is skipped if
    there is no program."""
    try:
        program()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    shown = request.node.stash.setdefault(_SHOWN, [])
    folder = Path(request.config.getoption("--lab-captures") or request.config.rootpath / "aerostat-captures")
    test = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in request.node.name)
    with contextlib.ExitStack() as stack:

        def start(given, *, name=None, capture=True, **options):
            given = given if isinstance(given, Lab) else Lab(given)
            number = next(_NUMBERS)
            # Tests beside this one may run the same lab.
            running = Up(given, name=name or f"t{os.getpid()}-{number}", **options)
            path = tmp_path / f"{number}.pcapng" if capture else None
            live = _Live(running, path, folder / f"{test}-{given.name}-{number}.pcapng")
            stack.callback(live.end)
            shown.append((f"lab {given.name}", live.failed))
            return running

        yield start
