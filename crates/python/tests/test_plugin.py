"""Tests of the plugin of pytest."""

import contextlib

import aerostat
import pytest

LOSSY = """
def test_lossy(lab):
    run = lab("two-hosts", until="60s", set={"links.urku-s1.loss": 0.01, "traffic.ping.duration": "50s"})
    assert run.flow("ping")["lost"] == 0
"""


def test_a_test_that_fails_shows_flows_and_places_of_loss(pytester):
    pytester.makepyfile(LOSSY)
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([
        "*- lab two-hosts -*",
        "ping: urku -> sello, *: * offered, * delivered, * lost (* at *link*), * under way",
    ])


def test_checks_are_assertions(pytester):
    pytester.makepyfile("""
        import pytest

        def test_right(lab):
            run = lab("two-hosts")
            run.assert_delivered("ping")
            run.assert_checks([{"flow": "ping", "lost": 0}, {"reach": "urku -> sello within 5s"}])
            assert len(run.flows) == 1

        def test_wrong(lab):
            lab("two-hosts").assert_checks([{"flow": "ping", "lost": 0}, {"count": "hosts", "is": 3}])

        def test_lossy(lab):
            changes = {"links.urku-s1.loss": 0.01, "traffic.ping.duration": "50s"}
            lab("two-hosts", until="60s", set=changes).assert_delivered("ping")

        @pytest.mark.lab_until("2500ms")
        def test_short(lab):
            assert lab("two-hosts").flow("ping")["offered"] < 10

        def test_mistakes(lab):
            with pytest.raises(KeyError, match="flows are ping"):
                lab("two-hosts").flow("nothing")
            with pytest.raises(ValueError, match="no checks"):
                lab("two-hosts").assert_checks()
    """)
    result = pytester.runpytest_subprocess("--strict-markers")
    result.assert_outcomes(passed=3, failed=2)
    result.stdout.fnmatch_lines([
        "*AssertionError: 1 of 2 checks of two-hosts:", "*fail: count hosts 3: *2*", "*AssertionError: ping: urku -> *lost (*",
    ])


@pytest.fixture
def live(command, monkeypatch):
    monkeypatch.setenv("AEROSTAT", command)


def test_a_capture_of_a_failed_test_stays(pytester, live):
    pytester.makepyfile("""
        import aerostat, subprocess, time

        names = []

        def test_right(live_lab):
            running = live_lab("two-hosts", embedded=True)
            names.append(running.name)
            assert running.inspect("urku", "lec")

        def test_wrong(live_lab):
            running = live_lab("two-hosts", embedded=True, set={"traffic.ping.start": "0s"})
            names.append(running.name)
            time.sleep(0.5)
            assert running.inspect("urku", "lec") == []

        def test_after():
            running = subprocess.run([aerostat.program(), "ls"], capture_output=True, text=True).stdout
            assert len(names) == 2 and not any(name in running for name in names)
    """)
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*- lab two-hosts -*", "ping: urku -> sello, *", "capture: *aerostat-captures*"])
    [kept] = (pytester.path / "aerostat-captures").iterdir()
    assert kept.name.startswith("test_wrong-two-hosts-") and kept.stat().st_size > 200


def test_without_the_program_a_live_test_is_skipped(pytester, monkeypatch):
    monkeypatch.delenv("AEROSTAT", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with contextlib.suppress(FileNotFoundError):
        pytest.skip(f"this module has the program: {aerostat.program()}")
    pytester.makepyfile("def test_live(live_lab):\n    live_lab('two-hosts')\n")
    result = pytester.runpytest_subprocess("-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*there is no program 'aerostat'*"])
