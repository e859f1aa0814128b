"""Tests of labs and their runs."""

import concurrent.futures
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import aerostat
import pytest

LABS = Path(__file__).parents[3] / "labs"
SMALL = LABS / "two-hosts.atm.yml"
SECTIONS = {
    "switches": {"s1": {}},
    "lane": {"on": "s1", "elans": {"a": {"subnet": "10.1.0.0/24"}}},
    "hosts": {
        "urku": {"on": "s1", "elan": "a", "ip": "10.1.0.10"},
        "sello": {"on": "s1", "elan": "a", "ip": "10.1.0.20"},
    },
    "traffic": [
        {"name": "ping", "from": "urku", "to": "sello", "kind": "ping", "rate": "10pps", "start": "2s",
         "duration": "3s"},
    ],
}


def test_a_lab_has_a_file_or_a_name():
    assert "two-hosts" in aerostat.labs()
    assert aerostat.Lab("two-hosts").text == aerostat.Lab(SMALL).text == SMALL.read_text()
    assert aerostat.Lab(LABS / "two-hosts").file == str(SMALL)
    worker = aerostat.Lab("host/worker")
    assert worker.file == "worker.atm.yml"
    with pytest.raises(aerostat.LabError, match="outside the lab, where time cannot be virtual"):
        worker.run()
    with pytest.raises(FileNotFoundError, match="did you mean 'two-hosts'"):
        aerostat.Lab("two-host")
    with pytest.raises(ValueError, match="no regular file"):
        aerostat.Lab("/dev/zero")


def test_a_pickled_lab_gives_the_same_results():
    lab = aerostat.Lab(SMALL, set={"seed": 5})
    again = pickle.loads(pickle.dumps(lab))
    assert again.changes == ["seed=5"]
    assert again.run().json() == lab.run().json()


def test_changes_have_the_values_of_python():
    lab = aerostat.Lab(SMALL)
    flow = {**SECTIONS["traffic"][0], "rate": "20pps"}
    for change in ({"traffic.ping.rate": "20pps"}, {"traffic": [flow]}):
        assert lab.run(set=change).flows.rows()[0]["offered"] == 60
    assert lab.run(until=3.5).flows.rows()[0]["offered"] == lab.run(until="3500ms").flows.rows()[0]["offered"] < 30
    with pytest.raises(TypeError, match="object"):
        lab.run(set={"seed": object()})
    with pytest.raises(ValueError, match="finite"):
        lab.run(until=float("inf"))
    with pytest.raises(aerostat.LabError) as caught:
        lab.run(set={"traffic.ping.rate": "fast"})
    assert "traffic.ping.rate=fast" in caught.value.file and caught.value.key is None
    with pytest.raises(OverflowError):
        lab.run(seed=-1)


def test_a_mistake_has_its_place():
    text = SMALL.read_text().replace("to: sello", "to: nowhere")
    with pytest.raises(aerostat.LabError) as caught:
        aerostat.Lab.from_text(text, name="mine")
    lines = text.splitlines()
    error = caught.value
    assert error.file == "mine" and str(error).startswith(f"mine:{error.line}:{error.column}: ")
    assert "nowhere" in lines[error.line - 1][error.column - 1 :]
    assert "nowhere" in error.message


def test_a_lab_built_in_code_is_that_of_a_file():
    built = aerostat.Lab.from_dict(SECTIONS, name="two-hosts.atm.yml").run(seed=3)
    read = aerostat.Lab(SMALL).run(seed=3)
    assert built.flows.rows() == read.flows.rows()


def test_a_mistake_in_a_built_lab_has_its_key():
    def wrong(path, value):
        sections = pickle.loads(pickle.dumps(SECTIONS))
        place = sections
        *steps, last = path
        for step in steps:
            place = place[step]
        place[last] = value
        with pytest.raises((aerostat.LabError, TypeError, ValueError)) as caught:
            aerostat.Lab.from_dict(sections, name="built")
        return caught.value

    for path, value in [
        (("traffic", 0, "to"), "nowhere"),
        (("traffic", 0, "rate"), "fast"),
        (("hosts", "sello", "ip"), "10.1.0.300"),
        (("hosts", "sello", "colour"), "red"),
        (("hosts", "sello", "on"), "s2"),
        (("hosts", "sello", "ip"), 'x"\n: {}'),
    ]:
        error = wrong(path, value)
        key = ".".join(map(str, path))
        assert error.key == key and f"built: {key}: " in str(error), (path, error)
    error = wrong(("traffic", 0, "rate"), object())
    assert isinstance(error, TypeError) and "traffic.0.rate" in str(error)
    error = wrong(("traffic", 0, 1.5), 1)
    assert isinstance(error, TypeError) and "traffic.0.?" in str(error)
    error = wrong(("traffic", 0, "rate"), float("nan"))
    assert isinstance(error, ValueError)
    endless = []
    endless.append(endless)
    assert "32" in str(wrong(("traffic",), endless))


def test_warnings_are_those_of_the_command():
    lab = aerostat.Lab(SMALL)
    assert lab.warnings == [] and lab.run().warnings == [] and lab.run().exit == 0
    lossy = aerostat.Lab("two-subnets").run(until="4s", set={"links.s1-s2.loss": 0.5})
    assert lossy.warnings and lossy.exit == 3


def test_an_interrupt_ends_a_run():
    lab = aerostat.Lab(SMALL)
    main = threading.main_thread().ident
    sent = []

    def interrupt():
        sent.append(time.monotonic())
        signal.pthread_kill(main, signal.SIGINT)

    timer = threading.Timer(0.5, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        lab.run(until="100000000s")
    timer.join()
    waited = time.monotonic() - sent[0]
    print(f"ended {waited:.4f} s after the signal")
    assert waited < 2
    # The next run is not interrupted.
    assert lab.run().flows.rows()[0]["delivered"] == 30


def test_a_run_has_a_limit_of_real_time():
    began = time.monotonic()
    with pytest.raises(aerostat.LimitError, match="0.2 s of real time") as caught:
        aerostat.Lab(SMALL).run(until="100000000s", limit=0.2)
    assert isinstance(caught.value, TimeoutError)
    assert time.monotonic() - began < 5


def test_other_threads_run_while_a_lab_computes():
    lab = aerostat.Lab(SMALL)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        future = pool.submit(lab.run, until="100000000s", limit=1)
        turns = 0
        while not future.done():
            turns += 1
            time.sleep(0.001)
        assert isinstance(future.exception(), aerostat.LimitError)
    assert turns > 50


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_worker_runs_labs():
    lab = aerostat.Lab(SMALL)
    wanted = lab.run().json()
    pid = os.fork()
    if pid == 0:
        os._exit(0 if lab.run().json() == wanted else 1)
    assert os.waitpid(pid, 0)[1] == 0


def test_neither_home_nor_a_directory_to_write_is_needed(tmp_path):
    code = "import aerostat; print(aerostat.Lab('two-hosts').run().flows.rows()[0]['delivered'])"
    words = [sys.executable, "-c", code]
    ran = subprocess.run(words, cwd="/proc", env={"PATH": os.environ["PATH"]}, capture_output=True, text=True)
    assert (ran.stdout, ran.returncode) == ("30\n", 0), ran.stderr
