"""Labs of ATM networks in virtual time.

Units stand in the names of columns (`_s` seconds, `_bps` bits per second); docs/results.md has their meanings.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from os import PathLike
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, Literal

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

class CommandError(Exception):
    """A command of the program has failed."""

    words: list[str]
    code: int
    """Exit code, as docs and `--help` list them: 1 failed, 2 wrong usage, 4 the lab does not run, 5 no right."""
    message: str

def program() -> str:
    """The path of the program that runs labs in real time: AEROSTAT, that of this package, or the first on PATH.

    Raises FileNotFoundError."""

class Up(AbstractContextManager[Up]):
    """A running lab."""

    lab: Lab
    name: str
    warnings: list[str]
    """What the program said as the lab began and ended."""
    results: dict[str, Any] | None
    """The document of results of docs/results.md, when the lab has ended."""

    def __exit__(self, kind: object, error: object, trace: object) -> None: ...
    def down(self) -> dict[str, Any]:
        """Ends the lab, and gives its results. The end of the context does the same."""
    def exec(
        self, node: str, *command: str, input: str | None = None, timeout: float | None = None, check: bool = False
    ) -> CompletedProcess[str]:
        """Runs a command in a kernel host. `timeout` is in seconds; all else is as for subprocess.run."""
    def inspect(self, *words: str, table: str | None = None) -> list[dict[str, Any]]:
        """Rows of the present state: of nodes and kinds of state, such as `inspect("s1", "port")`."""
    def fault(self, action: Literal["crash", "restart", "link-down", "link-up"], what: str) -> None:
        """Breaks or mends a node, a service (NODE/SERVICE) or a link."""
    def link(self, name: str | None = None, **values: Value) -> list[dict[str, Any]]:
        """Gives a link new values, such as `delay="5ms"`, and shows it; without a name shows all links.

        Names are those of `aerostat link set`; `rate__up` stands for `rate.up`."""
    def reset_link(self, name: str) -> None:
        """Gives a link the values of the lab file again."""
    def capture(
        self, path: str | PathLike[str], *links: str, cells: bool = False, both_ends: bool = False
    ) -> AbstractContextManager[Path]:
        """Records links, all if none is named, into a pcapng file while the context lasts."""
    def events(self, follow: bool = True) -> Iterator[dict[str, Any]]:
        """What happens: `time` in seconds from the start, `node`, `event`, `text`, `fields`.

        First comes what has happened, then with `follow` what happens, until the lab ends."""

def up(
    lab: Lab | str | PathLike[str],
    *,
    set: Mapping[str, Value] | None = None,
    name: str | None = None,
    embedded: bool = False,
    split: bool = False,
) -> Up:
    """A lab in real time: `with up("two-subnets") as lab:` starts it, waits until it is ready, and ends it.

    `set` and `name` change the lab. `embedded` and `split` are those of `aerostat up`; hosts with namespaces of their
    own need root. Raises CommandError, also if a lab of this name is running; VersionError for another program."""

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

class Reproduced:
    """Rows of papers beside those of the labs. pyarrow, polars and pandas read `rows` as a list of dictionaries."""

    rows: list[dict[str, Any]]
    """A row for each row of the papers; docs/reproduce.md has the columns."""
    parameters: list[dict[str, Any]]
    """The parameters that the rows use, and their origin."""
    summary: list[dict[str, Any]]
    """Counts of rows by tier and by weight as evidence."""
    document: dict[str, Any]
    """All of it: the document of `aerostat reproduce -o json`."""
    ok: bool
    """No row misses its rule."""
    warnings: list[str]
    """Each miss, with the rule that it misses."""

def reproduce(
    *entries: str, seeds: int | str | Iterable[int] | None = None, jobs: int | None = None
) -> Reproduced:
    """Runs tables and figures of five papers, such as "sara/4" or "quick", and sets them beside what is printed.

    The program makes the rows: they are those of `aerostat reproduce`. `seeds` are numbers, or a text such as "1-10";
    `jobs` is the number of runs at the same time, by default as many as there are processors. Ctrl-C ends it.

    Raises CommandError, also for a name that is no entry; VersionError; FileNotFoundError without the program."""
