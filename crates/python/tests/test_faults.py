"""Tests of disks that are full or not to be written, and of workers of all kinds, where test_sweep.py has no place."""

import concurrent.futures
import multiprocessing
import subprocess
import sys

import aerostat
import pytest

MOUNT = """
import aerostat, ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
MS_RDONLY, MS_REMOUNT, MS_REC, MS_PRIVATE, CLONE_NEWNS = 1, 32, 16384, 1 << 18, 1 << 17

def mount(flags, options):
    if libc.mount(b"none", sys.argv[1].encode(), b"tmpfs", flags, options) != 0:
        print("skipped:", os.strerror(ctypes.get_errno()))
        sys.exit(0)

if libc.unshare(CLONE_NEWNS) != 0 or libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) != 0:
    print("skipped:", os.strerror(ctypes.get_errno()))
    sys.exit(0)
mount(0, b"size=32k")
directory = sys.argv[1] + "/sweep"
lab = aerostat.Lab("two-hosts")

def sweep(seeds):
    try:
        print(aerostat.sweep(lab, seeds=seeds, directory=directory).new, open(directory + "/flows.csv").read().count("\\n"))
    except (OSError, aerostat.SweepError) as error:
        print(type(error).__name__, error)

sweep("1-4")
"""

FULL = MOUNT + """
sweep("1-100")
print(open(directory + "/flows.csv").read().count("\\n"))
mount(MS_REMOUNT, b"size=4m")
sweep("1-100")
"""

READ_ONLY = MOUNT + """
mount(MS_REMOUNT | MS_RDONLY, b"")
sweep("1-5")
print(open(directory + "/flows.csv").read().count("\\n"))
mount(MS_REMOUNT, b"")
sweep("1-5")
"""


def mounted(code, folder):
    """What a program says that has a file system of its own."""
    ran = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, check=True)
    lines = ran.stdout.splitlines()
    if lines[0].startswith("skipped: "):
        pytest.skip(f"needs to mount: {lines[0]}")
    return lines


def test_a_full_file_system_leaves_the_table_whole_and_the_next_call_does_the_rest(tmp_path):
    first, full, kept, rest = mounted(FULL, tmp_path)
    assert first == "4 5"
    assert full.startswith("SweepError") and "No space left on device" in full and "/sweep/" in full
    assert kept == "5"
    new, lines = map(int, rest.split())
    assert 0 < new < 96 and lines == 101


def test_a_read_only_file_system_is_told_and_the_next_call_does_the_rest(tmp_path):
    first, refused, kept, rest = mounted(READ_ONLY, tmp_path)
    assert first == "4 5"
    assert "Read-only file system" in refused and "/sweep/" in refused
    assert kept == "5" and rest == "1 6"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_workers_of_all_kinds_give_the_same_table(method, tmp_path):
    lab = aerostat.Lab("two-hosts")
    wanted = aerostat.sweep(lab, seeds="1-3", directory=tmp_path / "threads").path.read_bytes()
    with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context(method)) as pool:
        assert aerostat.sweep(lab, None, "1-3", pool, tmp_path / method).path.read_bytes() == wanted


def test_a_run_that_never_ends_in_a_process_has_its_name(tmp_path):
    grid = {"until": ["3s", "100000000s"]}
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        swept = aerostat.sweep(aerostat.Lab("two-hosts"), grid, None, pool, tmp_path, limit=0.3)
        # The worker lives.
        assert pool.submit(sum, [1, 2]).result() == 3
    [(name, why)] = swept.failed.items()
    assert name == "until=100000000s" and "limit of 0.3 s of real time" in why
    assert [row["until"] for row in swept.table] == ["3s"]


TWO = """
import aerostat, sys
try:
    aerostat.sweep(aerostat.Lab("two-hosts"), seeds="1-2", directory=sys.argv[1])
except aerostat.SweepError as error:
    print(error)
"""


def test_a_sweep_of_another_process_into_the_directory_is_refused(tmp_path):
    said = []

    def other(*_):
        if not said:
            ran = subprocess.run([sys.executable, "-c", TWO, tmp_path], capture_output=True, text=True, check=True)
            said.append(ran.stdout)

    swept = aerostat.sweep(aerostat.Lab("two-hosts"), seeds="1-4", directory=tmp_path, progress=other)
    assert "another sweep writes there" in said[0] and swept.new == 4
