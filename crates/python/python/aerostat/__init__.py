"""Labs of ATM networks in virtual time.

Units stand in the names of columns (`_s` seconds, `_bps` bits per second); docs/results.md has their meanings.
"""

from ._aerostat import Lab, LabError, LimitError, Results, SweepError, Table, __version__, labs
from ._live import CommandError, Up, program, up
from ._sweep import Sweep, sweep
from ._worker import VersionError

__all__ = [
    "CommandError",
    "Lab",
    "LabError",
    "LimitError",
    "Results",
    "Sweep",
    "SweepError",
    "Table",
    "Up",
    "VersionError",
    "__version__",
    "labs",
    "program",
    "sweep",
    "up",
]
