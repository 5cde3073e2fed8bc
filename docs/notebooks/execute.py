"""Execute notebooks of this folder anew: `python docs/notebooks/execute.py [FILE …]`.

A Jupyter kernel runs them, so that outputs are what a reader gets. `account-for-my-opacus-run` needs Opacus beside it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent


def execute(path: Path) -> None:
    """Run all cells in an empty folder and store outputs without times and versions."""
    notebook: Any = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, record_timing=False, resources={"metadata": {"path": folder}}).execute()
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        for output in cell.get("outputs", ()):
            output.pop("metadata", None) if output.output_type == "stream" else output.update(metadata={})
    nbformat.write(notebook, path)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONPATH", str(HERE.parents[1] / "src"))
    for each in [Path(name) for name in sys.argv[1:]] or sorted(HERE.glob("*.ipynb")):
        execute(each)
