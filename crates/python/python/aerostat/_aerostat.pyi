from collections.abc import Iterator, Mapping
from os import PathLike
from typing import Any

from .sections import Sections

Scalar = str | bool | int | float
Value = Scalar | list[Any] | dict[str, Any]
Row = dict[str, str | bool | int | float | None]

__version__: str

def labs() -> list[str]:
    """Names of the labs that are part of the module."""

class LabError(Exception):
    """A mistake in a lab. If the lab has several, this is the first."""

    file: str
    """The file, or the change, such as `set until=never`."""
    line: int
    """Line, from 1."""
    column: int
    """Column in characters, from 1."""
    message: str
    hint: str | None
    key: str | None
    """Path of the key, such as `links.0.rate`, in a lab from `Lab.from_dict`; otherwise None."""

class LimitError(TimeoutError):
    """A run took longer than its limit of real time."""

class SweepError(Exception):
    """A sweep that did not come to its end."""

class Lab:
    """The text of a lab file, with changes of it. A Lab can be pickled."""

    warnings: list[str]
    """Warnings about the lab, one a line each."""
    name: str
    """Its key `name`, or the name of its file without the ending."""
    file: str
    """The file, or what stands for it in messages."""
    text: str
    """The text, without the changes."""
    changes: list[str]
    """The changes, each as `PATH=VALUE`."""

    def __init__(self, path: str | PathLike[str], *, set: Mapping[str, Value] | None = None) -> None:
        """The lab of a file, or of a name from `labs()`. `set` has values by the paths of keys, as `--set`.

        Raises LabError, or FileNotFoundError if there is neither."""
    @staticmethod
    def from_text(text: str, *, name: str = "lab", set: Mapping[str, Value] | None = None) -> Lab:
        """The lab of the text of a lab file; `name` stands for the file in messages."""
    @staticmethod
    def from_dict(
        sections: Sections, *, name: str = "lab", set: Mapping[str, Value] | None = None
    ) -> Lab:
        """The lab of the sections of a lab file, with the same keys and values: `{"links": [...], ...}`.

        LabError.key names the key of a mistake."""
    def run(
        self,
        seed: int | None = None,
        until: str | float | None = None,
        set: Mapping[str, Value] | None = None,
        *,
        limit: float | None = None,
    ) -> Results:
        """Runs the lab in virtual time.

        `seed` is from 0 to 2**64 - 1. `until` is seconds of virtual time, or text with a unit such as "200ms".
        `limit` is the longest real time of the run, seconds; LimitError ends it."""

    def check(
        self,
        checks: list[dict[str, Any]] | None = None,
        seed: int | None = None,
        until: str | float | None = None,
        set: Mapping[str, Value] | None = None,
        *,
        limit: float | None = None,
    ) -> list[dict[str, Any]]:
        """Judges the lab by checks of docs/checks.md, those of its file or others, in virtual time.

        Each has `title`, `stage`, `level`, `verdict` ("pass", "fail", "warning", "unjudged" or "skipped"), `points`,
        `of`, `text` and `details`. `limit` is in seconds of real time."""

class Results:
    """The results of a run. `results.flows` and `results["mpc.ingress"]` are tables. Results can be pickled."""

    warnings: list[str]
    """Warnings of the run; `Lab.warnings` has those about the lab."""
    exit: int
    """Exit code of `aerostat run`: 3 if the run or its lab has warnings, otherwise 0."""

    def tables(self) -> list[str]:
        """Names of the tables of this lab."""
    def table(self, name: str) -> Table:
        """A table; it has no rows if this lab lacks it. Raises KeyError if no lab has it."""
    def json(self) -> str:
        """The document of results, as `aerostat run -o json` writes it."""
    def __getitem__(self, name: str) -> Table: ...
    def __getattr__(self, name: str) -> Table: ...

class Table:
    """A table of the results. pyarrow, polars, pandas and duckdb read it by the Arrow PyCapsule interface."""

    name: str
    columns: list[str]
    types: dict[str, str]
    """Types of the columns in Arrow's words: "uint64", "float64", "bool" or "large_utf8"."""

    def rows(self) -> list[Row]:
        """The rows as dictionaries."""
    def __iter__(self) -> Iterator[Row]: ...
    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
