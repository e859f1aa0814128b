"""The virtual machine of interop/ with Debian's ATM stack: runs scripts in it, with programs of this side."""

import importlib.machinery
import importlib.util
import io
import pathlib
import subprocess
import sys
import tarfile
import tempfile

from .machine import ROOT, Missing, need

VM = ROOT / "target" / "interop-vm"


def interop():
    """interop/run as a module."""
    loader = importlib.machinery.SourceFileLoader("interop", str(ROOT / "interop" / "run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("interop", loader))
    loader.exec_module(module)
    return module


def compiled(source, folder):
    """A program of the guest: it has the C library of this side."""
    need("cc", "apt-get install gcc libc6-dev libatm1-dev")
    binary = pathlib.Path(folder) / source.stem
    subprocess.run(["cc", "-O2", "-Wall", "-o", binary, source, "-latm"], check=True, stdin=subprocess.DEVNULL)
    return binary


def run(scripts, files, settings, folder, seconds=240):
    """What the scripts print. They fetch an archive with `files` (names and paths) from the port FILEPORT."""
    need("qemu-system-x86_64", "apt-get install qemu-system-x86")
    if not (VM / "initrd.gz").exists():
        made = subprocess.run([ROOT / "interop" / "build-vm", VM], stdin=subprocess.DEVNULL, stdout=sys.stderr)
        if made.returncode:
            raise Missing("the virtual machine: interop/build-vm failed (root, and Debian bullseye's kernel)")
    harness, octets = interop(), io.BytesIO()
    with tarfile.open(fileobj=octets, mode="w") as tar:
        for name, path in files.items():
            tar.add(path, name)
    settings = dict(settings, FILEPORT=harness.serve(octets.getvalue()))
    with tempfile.TemporaryDirectory(dir=folder) as logs:
        return harness.guest(scripts, settings, VM, pathlib.Path(logs) / "log", seconds=seconds)
