"""Labs of ATM networks in virtual time.

Units stand in the names of columns (`_s` seconds, `_bps` bits per second); docs/results.md has their meanings.
"""

from ._aerostat import Lab, LabError, LimitError, Results, Table, __version__, labs

__all__ = ["Lab", "LabError", "LimitError", "Results", "Table", "__version__", "labs"]
