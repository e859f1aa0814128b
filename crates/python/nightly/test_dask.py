"""A sweep on Dask's workers, of which one is killed in the middle."""

import os
import signal
import subprocess

import aerostat
import pytest

distributed = pytest.importorskip("distributed")

GRID = {"traffic.ping.rate": ["10pps", "20pps"], "links.urku-s1.delay": ["5us", "1ms"]}


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with distributed.LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster


def test_dask_with_a_worker_killed_gives_the_table_of_the_command(command, cluster, tmp_path):
    words = [word for path, values in GRID.items() for word in ("--set", f"{path}={','.join(values)}")]
    words += ["--until", "300s", "--seeds", "1-100", "--out", str(tmp_path / "c")]
    subprocess.run([command, "sweep", "two-hosts", "--quiet", *words], check=True)
    killed = []

    def kill(ended, of):
        if ended >= of // 3 and not killed:
            killed.append(next(iter(cluster.workers.values())).pid)
            os.kill(killed[0], signal.SIGKILL)

    with distributed.Client(cluster) as client:
        pids = set(client.run(os.getpid).values())
        lab = aerostat.Lab("two-hosts")
        executor = client.get_executor(retries=3)
        swept = aerostat.sweep(
            lab, GRID, "1-100", executor, tmp_path / "p", until="300s", progress=kill, workers=3
        )
    assert killed and killed[0] in pids
    assert swept.new == swept.runs == 400 and swept.failed == {}
    assert swept.path.read_bytes() == (tmp_path / "c" / "flows.csv").read_bytes()
    # Each run is there once.
    assert len((tmp_path / "p" / "runs").read_text().splitlines()) == 1 + 400
