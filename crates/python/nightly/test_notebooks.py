"""The notebooks run from the first cell to the last."""

import base64
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    monkeypatch.setenv("SEEDS", "1-3")
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    images = [output["data"]["image/png"] for output in outputs if "image/png" in output.get("data", {})]
    assert images, "the notebook draws nothing"
    for number, image in enumerate(images):
        (tmp_path / f"{path.stem}-{number}.png").write_bytes(base64.b64decode(image))
    words = "".join(output.get("text", "") for output in outputs)
    assert "gain by shortcuts: " in words
    gain = float(words.split("gain by shortcuts: ")[1].split()[0])
    # Shortcuts avoid both routers, so all streams together gain.
    assert gain > 2
