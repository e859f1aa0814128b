"""Rows of papers. The program makes them, so they are those of `aerostat reproduce`."""

import json

from ._program import of_this_version, said
from ._sweep import seed_text


class Reproduced:
    """Rows of papers beside those of the labs."""

    def __init__(self, document, warnings, ok):
        self.document = document
        self.warnings = warnings
        self.ok = ok

    def __repr__(self):
        return f"<aerostat.Reproduced: {len(self.rows)} rows, {'ok' if self.ok else 'with misses'}>"

    @property
    def rows(self):
        return self._of("rows")

    @property
    def parameters(self):
        return self._of("parameters")

    @property
    def summary(self):
        return self._of("summary")

    def _of(self, table):
        rows = (row for row in self.document["rows"] if row["table"] == table)
        return [{key: value for key, value in row.items() if key != "table"} for row in rows]


def reproduce(*entries, seeds=None, jobs=None):
    if not entries or "list" in entries:
        raise ValueError("give entries, such as 'sara/4' or 'quick': 'aerostat reproduce list' shows them")
    words = ["reproduce", "--quiet", "-o", "json"]
    if seeds is not None:
        words += ["--seeds", seed_text(seeds)]
    if jobs is not None:
        words += ["--jobs", str(jobs)]
    # Exit code 3: a row is a miss.
    ended = said(of_this_version(), [*words, "--", *entries], good=(0, 3))
    return Reproduced(json.loads(ended.stdout), ended.stderr.splitlines(), ended.returncode == 0)
