"""The interrupt of a notebook ends a run, and the notebook goes on."""

import time

import pytest

manager = pytest.importorskip("jupyter_client.manager")


def text(client, code, interrupt=None):
    """What a cell prints, or the name of its exception."""
    client.execute(code)
    said, sent = "", None
    while True:
        message = client.get_iopub_msg(timeout=60)
        kind, content = message["msg_type"], message["content"]
        if kind == "stream":
            said += content["text"]
            if interrupt is not None and "begins" in said and sent is None:
                time.sleep(0.3)
                sent = time.monotonic()
                interrupt()
        elif kind == "error":
            said += content["ename"]
        elif kind == "status" and content["execution_state"] == "idle":
            return said, None if sent is None else time.monotonic() - sent


@pytest.mark.parametrize("call", [
    "lab.run(until='100000000s')",
    "aerostat.sweep(lab, {'until': ['100000000s', '110000000s']}, directory='kept')",
])
def test_the_interrupt_of_a_notebook_ends_its_run(call, tmp_path):
    kernel, client = manager.start_new_kernel(kernel_name="python3", cwd=str(tmp_path))
    try:
        text(client, "import aerostat\nlab = aerostat.Lab('two-hosts')")
        said, waited = text(client, f"print('begins', flush=True)\n{call}\nprint('ended')", kernel.interrupt_kernel)
        assert "KeyboardInterrupt" in said and "ended" not in said
        print(f"ended {waited:.3f} s after the interrupt")
        assert waited < 5
        assert text(client, "print(lab.run().flows.rows()[0]['delivered'])")[0].strip() == "30"
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)
