"""Tests of the types of the package: those of a lab's sections are written from the schema of lab files."""

import sys

import pytest

RIGHT = """
import aerostat
from aerostat.sections import Host, Sections

hosts: dict[str, Host] = {"urku": {"on": "s1", "elan": "a", "ip": "10.1.0.10"}}
sections: Sections = {
    "switches": {"s1": {}, "s2": {}},
    "links": [["s1", "s2", {"rate": "oc3", "delay": "1ms"}]],
    "hosts": hosts,
    "traffic": [{"from": "urku", "to": "urku", "kind": "ping", "rate": "1pps"}],
}
delivered: object = aerostat.Lab.from_dict(sections).run(seed=3, until=2.5).flows.rows()[0]["delivered"]
with aerostat.up("two-hosts", embedded=True) as running:
    nodes: list[dict[str, object]] = running.inspect("s1")
"""


def mypy(code, folder):
    mypy = pytest.importorskip("mypy.api")
    (folder / "program.py").write_text(code)
    said, wrong, _ = mypy.run(["--strict", "--python-executable", sys.executable, str(folder / "program.py"),
                               "--cache-dir", str(folder / "cache")])
    return said + wrong


def test_a_checker_of_types_knows_labs(tmp_path):
    assert "Success" in mypy(RIGHT, tmp_path)
    wrong = RIGHT.replace('"kind": "ping"', '"kind": "pong"').replace('"switches"', '"switch"')
    said = mypy(wrong, tmp_path)
    assert 'Extra key "switch"' in said and '"kind"' in said and "Found 2 errors" in said, said
