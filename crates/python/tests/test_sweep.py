"""Tests of sweeps: the table is that of the command, whatever makes the runs and whatever goes wrong."""

import concurrent.futures
import csv
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import aerostat
import pyarrow
import pyarrow.parquet
import pytest

GRID = {"traffic.ping.rate": ["10pps", "20pps"], "links.urku-s1.delay": ["5us", "1ms"]}
WORDS = [word for path, values in GRID.items() for word in ("--set", f"{path}={','.join(values)}")]


def spawned(workers=2):
    return concurrent.futures.ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))


@pytest.fixture(scope="module")
def lab():
    return aerostat.Lab("two-hosts")


def by_command(command, directory, *words):
    ran = subprocess.run([command, "sweep", "two-hosts", "--quiet", *words, "--out", directory],
                         capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize(("words", "options", "file"), [
    ([], {}, "flows.csv"),
    (["-o", "jsonl"], {"form": "jsonl"}, "flows.jsonl"),
    (["-o", "parquet"], {"form": "parquet"}, "flows.parquet"),
    (["--mean"], {"mean": True}, "flows-mean.csv"),
    (["--per", "run"], {"per": "run"}, "runs.csv"),
    (["--table", "links", "--until", "3s"], {"table": "links", "until": 3}, "links.csv"),
    (["--table", "call.counters"], {"table": "call.counters"}, "call.counters.csv"),
])
def test_the_table_is_that_of_the_command(command, lab, tmp_path, words, options, file):
    by_command(command, tmp_path / "c", *WORDS, "--seeds", "1-3", *words)
    swept = aerostat.sweep(lab, GRID, range(1, 4), directory=tmp_path / "p", **options)
    assert swept.path == tmp_path / "p" / file and swept.runs == swept.new == 12 and swept.failed == {}
    assert swept.path.read_bytes() == (tmp_path / "c" / file).read_bytes()


def test_every_executor_gives_the_same_octets(lab, tmp_path):
    tables = set()
    with concurrent.futures.ThreadPoolExecutor(2) as threads, spawned() as processes:
        for number, executor in enumerate([None, threads, processes]):
            swept = aerostat.sweep(lab, GRID, "1-3", executor, tmp_path / str(number))
            tables.add(swept.path.read_bytes())
    assert len(tables) == 1


def test_the_command_goes_on_where_python_stopped_and_the_other_way_round(command, lab, tmp_path):
    aerostat.sweep(lab, GRID, "1-2", directory=tmp_path)
    by_command(command, tmp_path, *WORDS, "--seeds", "1-3")
    swept = aerostat.sweep(lab, GRID, "1-4", directory=tmp_path)
    assert (swept.runs, swept.new) == (16, 4)
    assert len((tmp_path / "runs").read_text().splitlines()) == 1 + 16


def test_a_table_in_memory_is_that_of_the_file(lab, tmp_path):
    kept = aerostat.sweep(lab, GRID, [7, 9], directory=tmp_path, form="parquet")
    swept = aerostat.sweep(lab, GRID, [7, 9])
    table = pyarrow.table(swept)
    assert table.equals(pyarrow.table(kept)) and swept.path is None
    read = pyarrow.parquet.read_table(kept.path)
    assert table.to_pylist() == read.to_pylist()
    assert table["seed"].type == pyarrow.uint64() and set(table["seed"].to_pylist()) == {7, 9}
    assert table["links.urku-s1.delay"].to_pylist()[:3] == ["5us", "5us", "1ms"]


def test_points_are_a_list_too_and_keys_are_numbers_where_all_are(lab):
    swept = aerostat.sweep(lab, [{"traffic.ping.size": 56, "until": "3s"}, {"traffic.ping.size": 100, "until": "4s"}])
    table = pyarrow.table(swept)
    assert table["traffic.ping.size"].to_pylist() == [56, 100]
    assert [row["offered"] for row in table.to_pylist()] == [11, 21]
    assert len(aerostat.sweep(lab).table) == 1


@pytest.mark.parametrize(("asked", "error", "says"), [
    ({"grid": {"traffic.ping.rate": "10pps"}}, TypeError, "the values of a key are a list"),
    ({"grid": {"traffic.ping.rate": []}}, ValueError, "no point"),
    ({"grid": {"traffic.ping.rate": ["10pps", "fast"]}}, aerostat.LabError, "fast"),
    ({"grid": [{"until": "3s"}, {"seed": 3}]}, ValueError, "the same keys"),
    ({"grid": {"seed": [1, 2]}}, ValueError, "give seeds"),
    ({"grid": {"until": ["3s", "3s"]}}, ValueError, "stands twice"),
    ({"grid": {"until": ["3s"]}, "until": 4}, ValueError, "'until'"),
    ({"seeds": "8-1"}, ValueError, "backwards"),
    ({"seeds": [True]}, TypeError, "whole numbers"),
    ({"seeds": "1-10001"}, ValueError, "10001 runs: 10000 are the limit"),
    ({"table": "nothing"}, ValueError, "no table 'nothing'"),
    ({"per": "packet"}, ValueError, "'packet'"),
    ({"form": "txt"}, ValueError, "'txt'"),
])
def test_what_cannot_be_is_refused_before_any_run(lab, tmp_path, asked, error, says):
    with pytest.raises(error, match=says):
        aerostat.sweep(lab, directory=tmp_path, **asked)
    assert not (tmp_path / "runs").exists()


def test_two_sweeps_into_one_directory_are_refused(lab, tmp_path):
    seen = []

    def second(*_):
        if not seen:
            with pytest.raises(aerostat.SweepError) as caught:
                aerostat.sweep(lab, GRID, directory=tmp_path)
            seen.append(str(caught.value))

    swept = aerostat.sweep(lab, GRID, "1-2", directory=tmp_path, progress=second)
    assert "another sweep writes there" in seen[0] and "directory" in seen[0]
    assert swept.new == 8
    # The lock is gone with the sweep.
    assert aerostat.sweep(lab, GRID, "1-2", directory=tmp_path).new == 0


def test_a_killed_worker_is_told_and_the_next_call_does_the_rest(lab, tmp_path):
    whole = aerostat.sweep(lab, GRID, "1-10", directory=tmp_path / "whole").path.read_bytes()
    before = aerostat.sweep(lab, GRID, "1-2", directory=tmp_path / "killed").path.read_bytes()
    with spawned() as pool:
        def kill(ended, _):
            if ended >= 3:
                os.kill(next(iter(pool._processes)), signal.SIGKILL)

        with pytest.raises(aerostat.SweepError, match="a worker has ended.*of 32 runs are kept") as caught:
            aerostat.sweep(lab, GRID, "1-10", pool, tmp_path / "killed", progress=kill)
    assert isinstance(caught.value.__cause__, concurrent.futures.BrokenExecutor)
    # The table is that of the sweep before, until the next one is whole.
    assert (tmp_path / "killed" / "flows.csv").read_bytes() == before
    again = aerostat.sweep(lab, GRID, "1-10", directory=tmp_path / "killed")
    assert 0 < again.new < 32
    assert again.path.read_bytes() == whole


def other_version():
    import aerostat._worker

    aerostat._worker.__version__ = "0.0.9"


def test_a_worker_of_another_version_is_refused(lab, tmp_path):
    pool = concurrent.futures.ProcessPoolExecutor(
        1, mp_context=multiprocessing.get_context("spawn"), initializer=other_version
    )
    with pool, pytest.raises(aerostat.VersionError) as caught:
        aerostat.sweep(lab, GRID, executor=pool, directory=tmp_path)
    assert "0.0.9" in str(caught.value) and aerostat.__version__ in str(caught.value)
    assert not (tmp_path / "flows.csv").exists()


def test_a_run_that_never_ends_costs_itself_alone(lab, tmp_path):
    grid = {"until": ["3s", "100000000s"]}
    swept = aerostat.sweep(lab, grid, directory=tmp_path, limit=0.3)
    assert list(swept.failed) == ["until=100000000s"]
    assert "0.3 s of real time" in swept.failed["until=100000000s"]
    assert len(swept.table) == 1 and swept.new == 1
    with pytest.raises(aerostat.SweepError, match="no run has results: until=100000000s: LimitError"):
        aerostat.sweep(lab, {"until": ["100000000s"]}, limit=0.1)


def test_ctrl_c_ends_a_sweep_and_keeps_what_has_ended(lab, tmp_path):
    main = threading.main_thread().ident
    sent = []

    def interrupt(ended, _):
        if not sent:
            sent.append(None)
            threading.Timer(0.3, hit).start()

    def hit():
        sent[0] = time.monotonic()
        signal.pthread_kill(main, signal.SIGINT)

    grid = {"until": ["3s", "4s", "100000000s", "110000000s"]}
    with pytest.raises(KeyboardInterrupt):
        aerostat.sweep(lab, grid, directory=tmp_path, progress=interrupt, workers=2)
    waited = time.monotonic() - sent[0]
    print(f"ended {waited:.4f} s after the signal")
    assert waited < 2
    assert not (tmp_path / "flows.csv").exists()
    assert aerostat.sweep(lab, {"until": ["3s", "4s"]}, directory=tmp_path).new == 0


OFTEN = """
import aerostat, random, signal, threading, time
lab, main = aerostat.Lab("two-hosts"), threading.main_thread().ident
signal.signal(signal.SIGINT, signal.default_int_handler)
for _ in range(25):
    timer = threading.Timer(random.uniform(0.1, 0.2), signal.pthread_kill, [main, signal.SIGINT])
    timer.start()
    try:
        aerostat.sweep(lab, {"until": ["100000000s", "110000000s", "120000000s"]}, workers=2)
    except KeyboardInterrupt:
        print("ended")
    timer.join()
"""


def test_ctrl_c_ends_a_sweep_wherever_it_comes():
    """A signal may come at any instruction: at one of them CPython 3.11 leaves out a `try` of the same function."""
    ran = subprocess.run([sys.executable, "-c", OFTEN], capture_output=True, text=True, timeout=120)
    assert ran.stdout.split() == ["ended"] * 25, ran.stderr


FULL = """
import aerostat, resource, sys
directory, room = sys.argv[1:]
lab = aerostat.Lab("two-hosts")
aerostat.sweep(lab, seeds="1-2", directory=directory)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(room), int(room)))
try:
    aerostat.sweep(lab, seeds="1-40", directory=directory)
except aerostat.SweepError as error:
    print(error)
"""


def test_a_full_disk_leaves_the_table_whole(lab, tmp_path):
    """A limit on the size of files is a disk that is full: first where runs are kept, then where the table is."""
    wanted = aerostat.sweep(lab, seeds="1-40", directory=tmp_path / "whole").path
    runs = (tmp_path / "whole" / "runs").stat().st_size
    rooms = {runs // 2: "runs", wanted.stat().st_size // 2: "runs"}
    for room, place in rooms.items():
        directory = tmp_path / str(room)
        ran = subprocess.run([sys.executable, "-c", FULL, directory, str(room)], capture_output=True, text=True)
        assert f"{directory}/{place}: File too large" in ran.stdout, ran.stdout + ran.stderr
        rows = list(csv.DictReader((directory / "flows.csv").open()))
        assert [row["seed"] for row in rows] == ["1", "2"]
        again = aerostat.sweep(lab, seeds="1-40", directory=directory)
        assert again.new < 38 and again.path.read_bytes() == wanted.read_bytes()


def test_a_directory_that_cannot_be_written_is_told(lab):
    with pytest.raises(OSError):
        aerostat.sweep(lab, directory="/proc/aerostat")


def test_runs_of_another_lab_are_told_and_done_anew(lab, tmp_path):
    aerostat.sweep(lab, GRID, directory=tmp_path)
    other = pickle.loads(pickle.dumps(aerostat.Lab("two-hosts", set={"traffic.ping.size": 1000})))
    with pytest.warns(UserWarning, match="4 of another lab"):
        swept = aerostat.sweep(other, GRID, directory=tmp_path)
    assert swept.new == 4
    damaged = (tmp_path / "runs").read_text().replace('"seed":1', '"seed":2', 1)
    (tmp_path / "runs").write_text(damaged)
    with pytest.warns(UserWarning, match="checksum"):
        aerostat.sweep(lab, GRID, directory=tmp_path)
