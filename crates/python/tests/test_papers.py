"""Tests of rows of papers: they are those of the command."""

import csv
import json
import subprocess

import aerostat
import polars
import pytest

ENTRIES = ["sara/4", "thesis/6", "detken/8: 9180 octets"]


@pytest.fixture(autouse=True)
def program(command, monkeypatch):
    monkeypatch.setenv("AEROSTAT", command)
    return command


def by_command(program, *words):
    ran = subprocess.run([program, "reproduce", "--quiet", *words], capture_output=True, text=True)
    assert ran.returncode in (0, 3), ran.stderr
    return ran.stdout


def test_rows_are_those_of_the_command(program):
    done = aerostat.reproduce(*ENTRIES, seeds=range(1, 3))
    document = json.loads(by_command(program, *ENTRIES, "--seeds", "1-2", "-o", "json"))
    # The table of how it was made has the time that it took.
    def without_time(rows):
        return [row for row in rows if row["table"] != "made"]

    assert without_time(done.document["rows"]) == without_time(document["rows"])
    rows = list(csv.DictReader(by_command(program, *ENTRIES, "--seeds", "1-2", "-o", "csv").splitlines()))
    assert [(row["entry"], row["row"]) for row in rows] == [(row["entry"], row["row"]) for row in done.rows]
    assert [float(row["model"]) for row in rows] == [row["model"] for row in done.rows]
    assert done.ok and done.parameters and {row["of"] for row in done.summary} >= {"tier A"}
    assert polars.DataFrame(done.rows, infer_schema_length=None)["entry"].n_unique() == len(ENTRIES)


def test_seeds_are_those_that_are_asked_for():
    [row] = aerostat.reproduce("thesis/5.4: MPOA urku to sello", seeds=[4, 5], jobs=1).rows
    assert (row["entry"], row["seeds"]) == ("thesis/5.4", 2)


def test_what_is_no_entry_is_refused():
    with pytest.raises(aerostat.CommandError, match="there is no entry 'sara/99'") as caught:
        aerostat.reproduce("sara/99")
    assert caught.value.code == 2
    for nothing in ([], ["list"]):
        with pytest.raises(ValueError, match="'aerostat reproduce list'"):
            aerostat.reproduce(*nothing)
    with pytest.raises(TypeError, match="whole numbers"):
        aerostat.reproduce("sara/4", seeds=["1"])
