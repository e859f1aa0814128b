from os import PathLike

Value = str | bool | int | float

__version__: str

class LabError(Exception):
    """A mistake in a lab. Line and column count from 1."""
    file: str
    line: int
    column: int
    message: str
    hint: str | None

class Lab:
    """The text of a lab file, with changes of it."""
    warnings: list[str]
    def __init__(self, path: str | PathLike[str], *, set: dict[str, Value] | None = None) -> None: ...
    @staticmethod
    def from_text(text: str, *, name: str = "lab", set: dict[str, Value] | None = None) -> Lab: ...
    def run(
        self, seed: int | None = None, until: str | None = None, set: dict[str, Value] | None = None
    ) -> Results: ...

class Results:
    """The results of a run."""
    def tables(self) -> list[str]: ...
    def table(self, name: str) -> list[dict[str, str | bool | int | float | None]]: ...
    def json(self) -> str: ...
