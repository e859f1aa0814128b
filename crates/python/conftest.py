"""Things that several tests need."""

import os
import shutil
import subprocess
from pathlib import Path

import aerostat
import pytest

pytest_plugins = ["pytester"]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def command():
    """The command of this version, for comparisons."""
    found = [os.environ.get("AEROSTAT"), *(ROOT / "target" / profile / "aerostat" for profile in ("debug", "release"))]
    for program in [*filter(None, found), shutil.which("aerostat")]:
        if program and Path(program).is_file():
            said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
            if said.split()[1:2] == [aerostat.__version__]:
                return str(program)
    pytest.skip("needs the command: cargo build, or its path as AEROSTAT")
