"""Tests of the module."""

import json
import pickle
import signal
import threading
import time
from pathlib import Path

import aerostat
import pytest

LABS = Path(__file__).parents[3] / "labs"
SMALL = LABS / "two-hosts.atm.yml"


def test_tables_are_those_of_the_document():
    results = aerostat.Lab(SMALL).run(seed=3)
    document = json.loads(results.json())
    assert document["seed"] == 3
    assert "flows" in results.tables()
    assert [row["name"] for row in results.table("flows")] == [row["name"] for row in document["flows"]]
    with pytest.raises(KeyError):
        results.table("no such table")


def test_a_pickled_lab_gives_the_same_results():
    lab = aerostat.Lab(SMALL, set={"seed": 5})
    again = pickle.loads(pickle.dumps(lab))
    assert again.run().json() == lab.run().json()


def test_a_mistake_has_its_place():
    text = SMALL.read_text().replace("to: sello", "to: nowhere")
    with pytest.raises(aerostat.LabError) as caught:
        aerostat.Lab.from_text(text, name="mine")
    lines = text.splitlines()
    error = caught.value
    assert error.file == "mine"
    assert "nowhere" in lines[error.line - 1][error.column - 1 :]
    assert "nowhere" in error.message


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
