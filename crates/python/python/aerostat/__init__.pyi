"""Labs of ATM networks in virtual time.

Units stand in the names of columns (`_s` seconds, `_bps` bits per second); docs/results.md has their meanings.
"""

from ._aerostat import (
    Lab as Lab,
    LabError as LabError,
    LimitError as LimitError,
    Results as Results,
    Table as Table,
    Value as Value,
    __version__ as __version__,
    labs as labs,
)
