"""Tests of running labs."""

import os
import subprocess
import threading
import time

import aerostat
import pytest

LOST = "s1-s2"


@pytest.fixture
def name():
    return f"py{os.getpid()}"


@pytest.fixture
def up(command, monkeypatch, name):
    monkeypatch.setenv("AEROSTAT", command)
    return lambda lab="two-subnets", **options: aerostat.up(lab, name=name, **{"embedded": True, **options})


def running():
    text = subprocess.run([aerostat.program(), "ls", "-o", "csv"], capture_output=True, text=True, check=True).stdout
    return text


def test_a_lab_runs_in_its_context_alone(up, name):
    with up() as lab:
        assert name in running()
        assert {row["node"] for row in lab.inspect("s1", "port")} == {"s1"}
        with pytest.raises(aerostat.CommandError, match="is running"), up():
            pass
        with pytest.raises(aerostat.CommandError, match="nosuch") as caught:
            lab.fault("crash", "nosuch")
        assert caught.value.code == 1
    assert name not in running()
    assert lab.results["lab"] == name and lab.results["flows"]
    assert lab.down() is lab.results


def test_a_lab_ends_with_an_exception_too(up, name):
    with pytest.raises(ZeroDivisionError), up():
        1 / 0
    assert name not in running()


def test_links_change_and_events_tell_it(up):
    with up() as lab:
        before = lab.link(LOST)
        after = lab.link(LOST, delay="5ms", loss="1%")
        assert {row["delay_us"] for row in before} == {5.0} and {row["delay_us"] for row in after} == {5000.0}
        lab.reset_link(LOST)
        assert {row["delay_us"] for row in lab.link(LOST)} == {5.0}
        assert len(lab.link()) > len(before)
        timer = threading.Timer(0.3, lab.fault, ["crash", "urku"])
        timer.start()
        seen = []
        for event in lab.events():
            seen.append(event)
            if (event["node"], event["event"]) == ("urku", "fault.crash"):
                break
        assert seen[0]["time"] <= seen[-1]["time"]
        assert len(list(lab.events(follow=False))) >= len(seen)


def test_events_end_with_the_lab(up):
    with up() as lab:
        threading.Timer(0.5, lab.down).start()
        began = time.monotonic()
        assert len(list(lab.events())) > 0
        assert time.monotonic() - began < 20


def test_a_capture_has_what_passed(up, tmp_path):
    with up() as lab:
        with lab.capture(tmp_path / "all.pcapng") as path:
            time.sleep(0.5)
        # A section header of pcapng.
        assert path.read_bytes()[:4] == b"\x0a\x0d\x0d\x0a" and path.stat().st_size > 200
        with pytest.raises(aerostat.CommandError, match="nolink"), lab.capture(tmp_path / "x", "nolink"):
            pass


def test_a_lab_built_in_code_runs(up):
    from test_aerostat import SECTIONS

    lab = aerostat.Lab.from_dict(SECTIONS, set={"traffic.ping.start": "100ms"})
    with up(lab, set={"traffic.ping.duration": "300ms"}) as running:
        time.sleep(1)
    [flow] = running.results["flows"]
    assert flow["name"] == "ping" and flow["offered"] >= 1


def test_a_program_of_another_version_is_refused(tmp_path, monkeypatch):
    other = tmp_path / "aerostat"
    other.write_text("#!/bin/sh\necho aerostat 0.0.9\n")
    other.chmod(0o755)
    monkeypatch.setenv("AEROSTAT", str(other))
    with pytest.raises(aerostat.VersionError) as caught, aerostat.up("two-hosts", embedded=True):
        pass
    assert "0.0.9" in str(caught.value) and aerostat.__version__ in str(caught.value)


@pytest.mark.skipif(os.geteuid() != 0, reason="kernel hosts need root")
def test_a_command_runs_in_a_host(up):
    with up("two-hosts", embedded=False) as lab:
        ran = lab.exec("urku", "cat", input="hello", timeout=20)
        if ran.returncode != 0:
            pytest.skip(ran.stderr)
        assert ran.stdout == "hello"
        assert lab.exec("urku", "sh", "-c", "exit 7").returncode == 7
        with pytest.raises(subprocess.CalledProcessError):
            lab.exec("urku", "false", check=True)
