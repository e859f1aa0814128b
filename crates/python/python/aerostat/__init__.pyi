"""Labs of ATM networks in virtual time.

Units stand in the names of columns (`_s` seconds, `_bps` bits per second); docs/results.md has their meanings.
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from os import PathLike
from pathlib import Path
from typing import Literal

from ._aerostat import (
    Lab as Lab,
    LabError as LabError,
    LimitError as LimitError,
    Results as Results,
    SweepError as SweepError,
    Table as Table,
    Value as Value,
    __version__ as __version__,
    labs as labs,
)

class VersionError(RuntimeError):
    """A worker has another version of the module than the sweep; the message has both."""

class Sweep:
    """The runs of a sweep that are done, as one table. pyarrow and others read it as they read a Table."""

    table: Table
    """A row for each run, flow and phase: keys of the grid, `seed`, `exit`, then the columns of the table."""
    failed: dict[str, str]
    """Runs without results, and why; they have no rows, and the next call with the same directory does them again."""
    runs: int
    """Number of runs."""
    new: int
    """Number of runs that this call has made."""
    path: Path | None
    """The file of the table, if there is a directory."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

def sweep(
    lab: Lab,
    grid: Mapping[str, Iterable[Value]] | Iterable[Mapping[str, Value]] | None = None,
    seeds: int | str | Iterable[int] | None = None,
    executor: Executor | None = None,
    directory: str | PathLike[str] | None = None,
    *,
    until: str | float | None = None,
    per: Literal["flow", "run"] = "flow",
    table: str | None = None,
    mean: bool = False,
    form: Literal["csv", "jsonl", "parquet"] = "csv",
    limit: float | None = None,
    again: bool = False,
    workers: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Sweep:
    """Runs a lab for all points of a grid and all seeds, each once, and gives one table.

    `grid` has values by the paths of keys, of which all combinations are points, or is a list of points. `seeds` are
    numbers, or a text such as "1-20". `executor` is any executor of concurrent.futures; by default threads of this
    process, as many as there are processors. `workers` is the number of its workers, if it does not tell it.

    `directory` gets the table and keeps the runs that have ended: the same call does the rest. It is that of
    `aerostat sweep --out`, with the same octets. At most one sweep at a time uses a directory.

    `until` is the end of each run: seconds of virtual time, or text with a unit. `limit` is the longest real time of
    a run, seconds. `per`, `table` and `mean` are those of `aerostat sweep`. `again` does all runs anew. `progress` is
    called with the numbers of runs that have ended and of runs to do.

    Raises ValueError or LabError for a point that cannot run, before any run; VersionError; SweepError for what ends
    a sweep, such as a full disk or a worker that was killed. Ctrl-C ends it, and keeps what has ended."""
