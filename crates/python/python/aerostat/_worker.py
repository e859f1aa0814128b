"""What a worker of a sweep does. It needs this package and nothing else."""

import os
import platform
import time

from ._aerostat import LabError, LimitError, __version__, point


class VersionError(RuntimeError):
    """A worker has another version of the module than the sweep."""


def work(common, runs):
    """Makes runs: number, record or None, what went wrong, and real time in seconds of each.

    `common` holds for all runs of the sweep, a run is its number, changes and seed."""
    if common["version"] != __version__:
        place = f"process {os.getpid()} on {platform.node()}"
        raise VersionError(f"a worker ({place}) has aerostat {__version__}, and the sweep {common['version']}")
    return [_one(common, *run) for run in runs]


def _one(common, number, changes, seed):
    began = time.perf_counter()
    record = wrong = None
    try:
        record = point(
            common["lab"], changes, seed, common["until"], common["table"], common["limit"], common["token"]
        )
    except (LabError, LimitError) as error:
        wrong = f"{type(error).__name__}: {error}"
    return number, record, wrong, time.perf_counter() - began
