"""Sweeps: one lab with other values and seeds, on any executor."""

import concurrent.futures
import itertools
import os
import queue as queues
import secrets
import tempfile
import warnings
from collections import deque
from collections.abc import Mapping
from pathlib import Path

from ._aerostat import SweepError, __version__, _Sweep, value_text
from ._worker import VersionError, work

# A task is worth its way to a worker and back.
TASK_SECONDS = 1.0
# A signal that comes as a wait begins is seen at its end.
LOOK_SECONDS = 0.05


class Sweep:
    """The runs of a sweep that are done, as one table."""

    def __init__(self, table, failed, runs, new, path):
        self.table = table
        self.failed = failed
        self.runs = runs
        self.new = new
        self.path = path

    def __repr__(self):
        return f"<aerostat.Sweep of {self.runs} runs, {self.new} of them new, {len(self.failed)} failed: {self.table}>"

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self):
        return self.table.__arrow_c_schema__()


def sweep(
    lab,
    grid=None,
    seeds=None,
    executor=None,
    directory=None,
    *,
    until=None,
    per="flow",
    table=None,
    mean=False,
    form="csv",
    limit=None,
    again=False,
    workers=None,
    progress=None,
):
    if form not in ("csv", "jsonl", "parquet"):
        raise ValueError(f"form is 'csv', 'jsonl' or 'parquet', and not {form!r}")
    if per == "run" and table is not None:
        raise ValueError("per='run' is of flows: leave out table")
    token = secrets.randbits(63)
    until = _time(until)
    asked = _Sweep(lab, _points(grid), seed_text(seeds), until, table or "flows", per, mean, token)
    common = {
        "version": __version__, "lab": lab, "until": until, "table": table or "flows", "limit": limit, "token": token,
    }
    if directory is None:
        with tempfile.TemporaryDirectory(prefix="aerostat-sweep-") as scratch:
            return _run(asked, common, Path(scratch) / "runs", None, executor, again, workers, progress)
    directory = Path(directory)
    name = table or {"flow": "flows", "run": "runs"}[per]
    path = directory / f"{name}{'-mean' if mean else ''}.{form}"
    directory.mkdir(parents=True, exist_ok=True)
    # A manifest of the command says nothing about these results.
    (directory / "manifest.json").unlink(missing_ok=True)
    return _run(asked, common, directory / "runs", path, executor, again, workers, progress)


def _time(value):
    return value if value is None or isinstance(value, str) else f"{value_text(value)}s"


def _points(grid):
    """The points of a grid: lists of keys with their values."""
    if grid is None:
        return [[]]
    if isinstance(grid, Mapping):
        for path, values in grid.items():
            if isinstance(values, (str, bytes, Mapping)):
                raise TypeError(f"{path}: the values of a key are a list")
        paths, values = list(grid), [list(values) for values in grid.values()]
        grid = (dict(zip(paths, one)) for one in itertools.product(*values))
    points = [[(path, value_text(value)) for path, value in point.items()] for point in grid]
    if not points:
        raise ValueError("the grid has no point")
    return points


def seed_text(seeds):
    """Seeds as the command has them."""
    if seeds is None or isinstance(seeds, str):
        return seeds
    numbers = [seeds] if isinstance(seeds, int) else list(seeds)
    if any(isinstance(seed, bool) or not isinstance(seed, int) for seed in numbers):
        raise TypeError("seeds are whole numbers, or a text such as '1-20'")
    return ",".join(map(str, numbers))


def _run(asked, common, runs, path, executor, again, workers, progress):
    todo = asked.open(runs, again)
    try:
        if asked.stale():
            warnings.warn(f"{runs}: {asked.stale()} of another lab, other options or another version: done anew",
                          stacklevel=4)
        if asked.bad():
            warnings.warn(f"{runs}: {asked.bad()}: done anew", stacklevel=4)
        failed = {}
        if todo:
            if executor is None:
                workers = workers or os.cpu_count() or 1
                with concurrent.futures.ThreadPoolExecutor(workers) as threads:
                    _all(asked, common, todo, threads, workers, failed, progress, path)
            else:
                workers = workers or getattr(executor, "_max_workers", None) or os.cpu_count() or 1
                _all(asked, common, todo, executor, workers, failed, progress, path)
        if len(failed) == len(asked):
            name, wrong = next(iter(failed.items()))
            raise SweepError(f"no run has results: {name or 'the lab'}: {wrong}")
        if path is not None:
            asked.write(path)
        return Sweep(asked.table(), failed, len(asked), len(todo) - len(failed), path)
    finally:
        asked.close()


def _all(asked, common, todo, executor, workers, failed, progress, path):
    """Makes runs, and keeps each as soon as its task has ended."""
    queue, pending, ended = deque(todo), set(), 0
    done = queues.SimpleQueue()
    seconds = None  # Mean real time of a run.

    def take(future):
        nonlocal ended, seconds
        for number, record, wrong, took in future.result():
            if record is None:
                failed[asked.name(number)] = wrong
            else:
                asked.add(number, record)
            ended += 1
            seconds = took if seconds is None else 0.9 * seconds + 0.1 * took
        if progress is not None:
            progress(ended, len(todo))

    def size():
        if seconds is None:
            return 1
        # Tasks get smaller to the end, so that all workers end at about the same time.
        fair = len(queue) // (2 * workers) + 1
        return max(1, min(int(TASK_SECONDS / max(seconds, 1e-6)), fair))

    def loop():
        while queue or pending:
            while queue and len(pending) < 2 * workers:
                numbers = [queue.popleft() for _ in range(min(size(), len(queue)))]
                task = [(number, *asked.run(number)) for number in numbers]
                future = executor.submit(work, common, task)
                pending.add(future)
                future.add_done_callback(done.put)
            try:
                future = done.get(timeout=LOOK_SECONDS)
            except queues.Empty:
                continue
            pending.discard(future)
            take(future)

    try:
        # A function of its own: a signal that comes at its `continue` is not seen by a `try` around it in CPython 3.11,
        # and the runs would never end.
        loop()
    except BaseException as error:
        asked.end()
        _rescue(pending, take)
        if isinstance(error, Exception) and not isinstance(error, (SweepError, VersionError)):
            kept = f"{ended - len(failed)} of {len(todo)} runs"
            rest = f"are kept in {path.parent}; the same call does the rest" if path else "had ended"
            raise SweepError(f"{_why(error)}; {kept} {rest}") from error
        raise


def _rescue(pending, take):
    """Keeps what has ended although the sweep does not go on."""
    for future in pending:
        future.cancel()
    for future in pending:
        try:
            if future.done() and not future.cancelled() and future.exception() is None:
                take(future)
        except Exception:  # The first error counts.
            return


def _why(error):
    if isinstance(error, concurrent.futures.BrokenExecutor):
        return f"a worker has ended before its runs ({error})"
    return f"{type(error).__name__}: {error}"
