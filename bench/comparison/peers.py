"""Places of the peers that bench/peers makes, and how bench/compare finds them there."""

import os
import shutil

from .machine import ROOT

FOLDER = ROOT / "target" / "peers"
MODULES = ("core", "network", "internet", "point-to-point", "applications")


def dynamips_in(folder):
    return folder / "dynamips" / "usr" / "bin" / "dynamips"


def ns3_in(folder):
    return folder / "ns3"


def dynamips():
    """The program that $DYNAMIPS names, or the one of the PATH, or the one of bench/peers."""
    made = dynamips_in(FOLDER)
    return os.environ.get("DYNAMIPS") or shutil.which("dynamips") or (made if made.exists() else None)


def ns3_optimised():
    made = ns3_in(FOLDER)
    return made if made.exists() else None


def ns3_libraries(prefix):
    """The libraries of the modules that bench/ns3/dumbbell.cc uses, by module; None for each that is not there."""
    found = {}
    for name in MODULES:
        paths = [path for part in ("lib", "lib64") for path in sorted((prefix / part).glob(f"libns3*-{name}*.so"))]
        found[name] = paths[0] if paths else None
    return found
