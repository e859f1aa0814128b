"""Running labs. The program runs them: its namespaces, its rights and what confines them never reach this process."""

import contextlib
import json
import signal
import subprocess
import tempfile
import threading
from pathlib import Path

from ._aerostat import Lab, value_text
from ._program import CommandError, of_this_version, program, said

# Longest time in which a capture begins, seconds.
BEGIN_SECONDS = 10


class Up:
    """A running lab."""

    def __init__(self, lab, *, set=None, name=None, embedded=False, split=False):
        lab = lab if isinstance(lab, Lab) else Lab(lab)
        self.lab = lab
        self.name = name or lab.name
        self.results = None
        self.warnings = []
        self._program = program()
        self._ends = threading.Lock()
        self._changes = [*lab.changes, *(f"{path}={value_text(value)}" for path, value in (set or {}).items())]
        self._options = ["--embedded"] * embedded + ["--split"] * split

    def __repr__(self):
        return f"<aerostat.Up {self.name}>"

    def __enter__(self):
        self._program = of_this_version()
        if any(row["lab"] == self.name for row in self._rows(["ls"])):
            words = ["up", self.name]
            raise CommandError(words, 1, f"a lab '{self.name}' is running; give this one another name")
        changes = [word for change in (*self._changes, f"name={self.name}") for word in ("--set", change)]
        words = ["up", "--detach", "--quiet", *self._options, *changes]
        # A file may name others beside it. All other labs are text.
        file = Path(self.lab.file)
        if file.is_file() and file.read_text(encoding="utf-8") == self.lab.text:
            said = self._said([*words, "--", str(file)])
        else:
            said = self._said([*words, "--", "-"], input=self.lab.text)
        self.warnings = self._lines(said.stderr)
        return self

    def __exit__(self, kind, error, trace):
        self.down()

    def down(self):
        """Ends the lab; its results are in `results` then."""
        with self._ends:
            if self.results is None:
                said = self._said(["down", "--quiet", "-o", "json", self.name], good=(0, 3))
                self.warnings += self._lines(said.stderr)
                self.results = json.loads(said.stdout)
        return self.results

    def exec(self, node, *command, input=None, timeout=None, check=False):
        """Runs a command in a host, and gives a subprocess.CompletedProcess with text."""
        words = [self._program, "exec", "--lab", self.name, node, "--", *map(str, command)]
        return subprocess.run(
            words, input=input, timeout=timeout, check=check, capture_output=True, text=True,
            stdin=subprocess.DEVNULL if input is None else None,
        )

    def inspect(self, *words, table=None):
        """Rows of the present state: of nodes and kinds of state, such as `inspect("s1", "port")`."""
        only = ["--table", table] if table else []
        return self._rows(["inspect", *words, *only], lab=True)

    def fault(self, action, what):
        """Does "crash", "restart", "link-down" or "link-up" to a node, a service (NODE/SERVICE) or a link."""
        self._said(["fault", "--lab", self.name, action, what])

    def link(self, name=None, **values):
        """Gives a link new values, such as `link("s1-s2", delay="5ms")`, and shows it; without a name all links."""
        if values:
            if name is None:
                raise TypeError("values are those of one link: give its name")
            changes = (f"{key.replace('__', '.')}={value_text(value)}" for key, value in values.items())
            self._said(["link", "--lab", self.name, "set", name, *changes])
        return self._rows(["link", "show", *([name] if name else [])], lab=True)

    def reset_link(self, name):
        """Gives a link the values of the lab file again."""
        self._said(["link", "--lab", self.name, "reset", name])

    @contextlib.contextmanager
    def capture(self, path, *links, cells=False, both_ends=False):
        """Records links, all if none is named, into a pcapng file while the context lasts."""
        words = ["capture", "--lab", self.name, "--write", str(path), *links]
        words += ["--cells"] * cells + ["--both-ends"] * both_ends
        with subprocess.Popen([self._program, *words], stderr=subprocess.PIPE, text=True) as process:
            late = threading.Timer(BEGIN_SECONDS, process.kill)
            late.start()
            first = process.stderr.readline()
            late.cancel()
            if not first.startswith("writing"):
                message = first + process.stderr.read()
                raise CommandError(words, process.wait(), message or f"no capture within {BEGIN_SECONDS} s")
            # The pipe stays empty enough to be written.
            reader = threading.Thread(target=process.stderr.read, daemon=True)
            reader.start()
            try:
                yield Path(path)
            finally:
                process.send_signal(signal.SIGINT)
                process.wait()
                reader.join()

    def events(self, follow=True):
        """What happens, as dictionaries: first what has happened, then with `follow` what comes, until the lab ends."""
        words = [self._program, "events", "--lab", self.name, "-o", "json"] + ["--follow"] * follow
        # Words of the program have a file, which no reader has to empty.
        with tempfile.TemporaryFile("w+") as said, subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=said, text=True
        ) as process:
            try:
                for line in process.stdout:
                    yield json.loads(line)
                code = process.wait()
                if code not in (0, 3) and self.results is None:
                    said.seek(0)
                    raise CommandError(words[1:], code, said.read())
            finally:
                process.terminate()

    def _rows(self, words, lab=False):
        own = ["--lab", self.name] if lab else []
        return json.loads(self._said([words[0], *own, *words[1:], "-o", "json"]).stdout)["rows"]

    def _said(self, words, **options):
        return said(self._program, words, **options)

    @staticmethod
    def _lines(text):
        return [line for line in text.splitlines() if not line.startswith("ready;")]


def up(lab, *, set=None, name=None, embedded=False, split=False):
    return Up(lab, set=set, name=name, embedded=embedded, split=split)
