"""Labs of ATM networks in virtual time.

Units stand in the names of columns (`_s` seconds, `_bps` bits per second); docs/results.md has their meanings.
"""

from ._aerostat import Lab, LabError, LimitError, Results, SweepError, Table, __version__, labs
from ._live import Up, up
from ._papers import Reproduced, reproduce
from ._program import CommandError, program
from ._sweep import Sweep, sweep
from ._worker import VersionError

__all__ = [
    "CommandError",
    "Lab",
    "LabError",
    "LimitError",
    "Reproduced",
    "Results",
    "Sweep",
    "SweepError",
    "Table",
    "Up",
    "VersionError",
    "__version__",
    "labs",
    "program",
    "reproduce",
    "sweep",
    "up",
]
