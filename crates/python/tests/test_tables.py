"""Tests of tables as columns of Arrow, read by the libraries that users have."""

import json
import math
import pickle

import aerostat
import duckdb
import pandas
import polars
import pyarrow
import pytest

TYPES = {
    "uint64": pyarrow.uint64(),
    "float64": pyarrow.float64(),
    "bool": pyarrow.bool_(),
    "large_utf8": pyarrow.large_string(),
}


@pytest.fixture(scope="module")
def results():
    return aerostat.Lab("two-subnets").run(seed=3, until="4s")


def changed(results, table, change):
    """Results whose table has other rows."""
    restore, (text, warnings, code) = results.__reduce__()
    document = json.loads(text)
    found = next(one for one in document["tables"] if one["name"] == table)
    found["rows"] = list(change(found["columns"], found["rows"]))
    return restore(json.dumps(document), warnings, code)


def buffers(table):
    """The addresses of the buffers of a table of pyarrow."""
    columns = (chunk for column in table.columns for chunk in column.chunks)
    return [buffer.address for chunk in columns for buffer in chunk.buffers() if buffer is not None]


def test_every_table_has_the_types_that_it_declares(results):
    for name in results.tables():
        table = results[name]
        read = pyarrow.table(table)
        assert {field.name: field.type for field in read.schema} == {
            column: TYPES[kind] for column, kind in table.types.items()
        }
        assert read.to_pylist() == table.rows() == list(table)
        assert len(table) == read.num_rows and table.columns == read.column_names
        assert pyarrow.schema(table) == read.schema


def test_the_schema_does_not_depend_on_the_lab(results):
    """A table without rows has all columns with their types, and so has one with nothing but nulls."""
    bare = aerostat.Lab("two-hosts").run()
    for name in set(results.tables()) | {"atp", "cells", "fairness", "flow_deltas"}:
        assert pyarrow.schema(bare[name]) == pyarrow.schema(results[name])
    empty = bare.atp
    assert len(empty) == 0 and "atp" not in bare.tables()
    assert pyarrow.table(empty).num_rows == 0
    assert polars.DataFrame(empty).shape == (0, len(empty.columns))
    assert duckdb.sql("select count(*) from empty").fetchall() == [(0,)]
    udp = [row for row in results.flows if row["rtt_us_mean"] is None]
    assert udp and results.flows.types["rtt_us_mean"] == "float64"
    with pytest.raises(AttributeError):
        results.nothing
    with pytest.raises(KeyError):
        results["nothing"]


def test_rows_are_those_of_the_document(results):
    document = json.loads(results.json())
    assert document["seed"] == 3
    for row, wanted in zip(results.flows.rows(), document["flows"], strict=True):
        assert row["name"] == wanted["name"] and row["delivered"] == wanted["delivered"]
        assert row["delay_us_p99"] == wanted["delay_us"]["p99"]
        assert json.loads(row["lost_by"] or "{}") == wanted["lost_by"]


def test_pyarrow_and_polars_and_pandas_read_numbers_without_a_copy(results):
    flows = results.flows
    def given(column):
        """The address of the values of a column that another library gives by the protocol itself."""
        return pyarrow.chunked_array(column).chunk(0).buffers()[1].address

    first, second = pyarrow.table(flows), pyarrow.table(results["flows"])
    assert buffers(first) == buffers(second)
    address = first["delivered"].chunk(0).buffers()[1].address

    frame = polars.DataFrame(flows)
    assert given(frame["delivered"]) == address
    assert frame.to_dicts() == flows.rows()

    frame = first.to_pandas(types_mapper=pandas.ArrowDtype)
    assert given(frame["delivered"]) == address
    # NumPy has no nulls, so only columns without nulls are NumPy's as they are.
    numbers = first["delivered"].chunk(0).to_numpy(zero_copy_only=True)
    assert numbers.__array_interface__["data"][0] == address
    plain = pandas.DataFrame(first.to_pandas())
    assert plain["delivered"].tolist() == [row["delivered"] for row in flows]


def test_duckdb_reads_a_table(results):
    flows = results.flows
    rows = duckdb.sql("select name, delivered, rtt_us_mean from flows order by all").fetchall()
    assert sorted(rows, key=str) == sorted(
        ((row["name"], row["delivered"], row["rtt_us_mean"]) for row in flows), key=str
    )


def test_a_column_lives_longer_than_its_results():
    lab = aerostat.Lab("two-hosts")
    table = pyarrow.table(lab.run().flows)
    copies = [pyarrow.table(lab.run(seed=seed).flows) for seed in range(20)]
    assert table["name"].to_pylist() == ["ping"] and len(copies) == 20


def test_counts_up_to_64_bits_are_exact(results):
    most = 2**64 - 1

    def large(columns, rows):
        at = columns.index("offered")
        return ([*row[:at], most - number, *row[at + 1 :]] for number, row in enumerate(rows))

    flows = changed(results, "flows", large).flows
    wanted = [most - number for number in range(len(flows))]
    assert [row["offered"] for row in flows] == wanted
    assert pyarrow.table(flows)["offered"].to_pylist() == wanted
    assert polars.DataFrame(flows)["offered"].to_list() == wanted
    assert pyarrow.table(flows).to_pandas()["offered"].tolist() == wanted
    assert [row[0] for row in duckdb.sql("select offered from flows").fetchall()] == wanted


def test_a_table_of_a_million_packets():
    lab = aerostat.Lab("two-hosts", set={"traffic": [
        {"name": "packets", "from": "urku", "to": "sello", "kind": "udp", "rate": "1000pps", "start": "2s",
         "duration": "1s", "series": True},
    ]})
    few = lab.run()
    count = 1_000_000

    def many(_, rows):
        return (rows[number % len(rows)] for number in range(count))

    deltas = changed(few, "flow_deltas", many).flow_deltas
    table, once = pyarrow.table(deltas), pyarrow.table(few.flow_deltas)
    assert table.num_rows == len(deltas) == count and once.num_rows > 900
    column = next(name for name, kind in deltas.types.items() if kind == "float64")
    first, last = once[column][0].as_py(), once[column][(count - 1) % once.num_rows].as_py()
    assert (table[column][0].as_py(), table[column][count - 1].as_py()) == (first, last)
    mean = polars.DataFrame(deltas)[column].mean()
    assert math.isclose(mean, duckdb.sql(f"select avg({column}) from deltas").fetchall()[0][0], rel_tol=1e-9)


def test_pickled_results_are_the_same(results):
    again = pickle.loads(pickle.dumps(results))
    assert again.json() == results.json()
    assert again.warnings == results.warnings and again.exit == results.exit
    assert pyarrow.table(again.flows).equals(pyarrow.table(results.flows))
