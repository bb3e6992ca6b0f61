"""Every notebook in examples/ runs, draws a figure, and prints what it shows."""

from pathlib import Path

import pytest
from sampled import sampled

EXAMPLES = Path(__file__).parents[2] / "examples"


def printed(book) -> list[str]:
    """What cells print. An assessment depends on how far it gets in its time."""
    cells = [cell for cell in book.cells if cell.cell_type == "code" and ".assess(" not in cell.source]
    return [out.text for cell in cells for out in cell.outputs if out.output_type == "stream" and out.name == "stdout"]


@pytest.mark.filterwarnings("ignore")  # of jupyter itself
@sampled("name", ["name_my_clusters", "two_tables", "which_models_agree"], quick={"name_my_clusters"})
def test_it_runs_and_shows_what_it_has_stored(name: str, tmp_path: Path) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("matplotlib")
    stored = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)
    assert any("image/png" in out.get("data", {}) for cell in stored.cells for out in cell.get("outputs", []))
    run = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(run, timeout=600, kernel_name="python3", resources=resources).execute()
    assert printed(run) == printed(stored)


def test_each_is_a_page_of_the_docs() -> None:
    pages = (EXAMPLES.parent / "mkdocs.yml").read_text(encoding="utf-8")
    assert all(f"notebooks/{path.stem}.md" in pages for path in EXAMPLES.glob("*.ipynb"))
