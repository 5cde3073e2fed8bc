"""What says which release this is agrees: the package, its citation, its changelog, its pages, and what it needs to run."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSION = PROJECT["version"]


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_one_version() -> None:
    assert re.search(r"^version: (.*)$", text("CITATION.cff"), re.MULTILINE)[1] == VERSION  # type: ignore[index]
    assert re.search(r"^## \[(.*?)\]", text("CHANGELOG.md"), re.MULTILINE)[1] == VERSION  # type: ignore[index]
    assert set(re.findall(r"cumulant (\d+\.\d+\.\d+(?:rc\d+)?)", text("docs/model-card.md"))) == {VERSION}


def test_the_citation_is_of_this_project() -> None:
    citation = text("CITATION.cff")
    assert f"license: {PROJECT['license']}" in citation
    assert PROJECT["authors"] == [{"name": re.search(r"^authors:\n  - name: (.*)$", citation, re.MULTILINE)[1]}]  # type: ignore[index]
    assert "arXiv:1808.00087" in citation


def test_pages_that_the_security_page_leads_to_are_there() -> None:
    for link in re.findall(r"\]\(([^)#]+)", text("SECURITY.md")):
        assert (ROOT / link).is_file(), link


def test_all_extras_are_part_of_all() -> None:
    extras = PROJECT["optional-dependencies"]
    (everything,) = extras["all"]
    named = set(re.search(r"\[(.*)\]", everything)[1].split(","))  # type: ignore[index]
    assert named == extras.keys() - {"all", "dev"}


@pytest.mark.tree
def test_what_is_typed_says_so() -> None:
    assert "Typing :: Typed" in PROJECT["classifiers"]
    assert (ROOT / "src" / "cumulant" / "py.typed").is_file()
    extras = PROJECT["optional-dependencies"]
    assert {"plot", "web", "postgres", "sign", "parquet", "dask", "opacus", "dp-accounting"} <= extras.keys()
    for extra in (
        "plot",
        "web",
        "postgres",
        "sign",
        "parquet",
        "dask",
    ):  # what tests use is what users are told to install
        for need in extras[extra]:
            name = re.split(r"[\[>=<]", need)[0]
            assert any(re.split(r"[\[>=<]", each)[0] == name for each in extras["dev"]), need


def test_a_release_gets_the_address_of_its_repository() -> None:
    """A fork has another address, so the tree has none; the workflow writes it before it builds."""
    links = runpy.run_path(str(ROOT / "packaging" / "release_links.py"))
    project = tomllib.loads(links["with_urls"](text("pyproject.toml"), "https://example.org/a/b", "v1"))["project"]
    assert "urls" not in PROJECT
    assert project["urls"]["Homepage"] == "https://example.org/a/b"
    assert project["urls"]["Security"] == "https://example.org/a/b/security/advisories/new"
    assert project["scripts"] == PROJECT["scripts"]
    readme = links["with_absolute_links"](text("README.md"), "https://example.org/a/b", "v1")
    assert "(https://example.org/a/b/blob/v1/docs/which-sampler.md)" in readme
    assert "](https://example.org/a/b/raw/v1/docs/figures/interval.png)" in readme
    assert all(target.startswith(("https://", "#")) for target in re.findall(r"\]\(([^)]+)\)", readme))
    assert "packaging/release_links.py" in text(".github/workflows/release.yml")


def test_recipes_are_of_this_release() -> None:
    recipe = text("packaging/conda/meta.yaml")
    assert f'version = "{VERSION}"' in recipe
    for need in PROJECT["dependencies"]:
        assert f"    - {re.split('[>=<]', need)[0]}\n" in recipe
    assert PROJECT["requires-python"] == ">=3.11"
    assert recipe.count("python >=3.11") == 2
    assert "bookworm" in text("Dockerfile")  # Debian 12 has Python 3.11
    assert "python:3.11" in text(".devcontainer/devcontainer.json")
