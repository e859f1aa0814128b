"""The program `aerostat` beside this module, and its commands."""

import contextlib
import importlib.metadata
import os
import shutil
import subprocess

from ._aerostat import __version__
from ._worker import VersionError


class CommandError(Exception):
    """A command of the program has failed."""

    def __init__(self, words, code, message):
        self.words = words
        self.code = code
        self.message = message.strip()
        super().__init__(f"aerostat {' '.join(words)}: exit code {code}: {self.message}")


def program():
    """The path of the program: AEROSTAT, the one of this package, or the first on PATH."""
    for path in (os.environ.get("AEROSTAT"), _installed(), shutil.which("aerostat")):
        if path:
            return path
    raise FileNotFoundError("there is no program 'aerostat': neither in this package nor on PATH, nor named by AEROSTAT")


def _installed():
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        for file in importlib.metadata.files("aerostat") or []:
            if file.name == "aerostat" and file.parent.name == "bin":
                return str(file.locate().resolve())
    return None


def of_this_version():
    """The path of the program, which is of the version of this module."""
    path = program()
    words = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout.split()
    if words[1:2] != [__version__]:
        raise VersionError(f"{path} is aerostat {' '.join(words[1:2])}, and the module {__version__}")
    return path


def said(path, words, input=None, good=(0,)):
    """A command that has ended with one of the good exit codes, and its text."""
    ended = subprocess.run(
        [path, *words], input=input, capture_output=True, text=True,
        stdin=subprocess.DEVNULL if input is None else None,
    )
    if ended.returncode not in good:
        raise CommandError(words, ended.returncode, ended.stderr)
    return ended
