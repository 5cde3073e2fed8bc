"""Write the address of the repository into what a release shows: `python packaging/release_links.py ADDRESS TAG`.

A fork has another address, so none is stored in the tree. The release workflow knows its own and runs this before it builds:
`project.urls` of pyproject.toml is added, and the links of README.md become absolute, because PyPI shows that page elsewhere.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def with_urls(text: str, address: str, tag: str) -> str:
    """Return the text of pyproject.toml with the addresses of this repository."""
    urls = {
        "Homepage": address,
        "Documentation": f"{address}/blob/{tag}/docs/README.md",
        "Changelog": f"{address}/blob/{tag}/CHANGELOG.md",
        "Issues": f"{address}/issues",
        "Security": f"{address}/security/advisories/new",
    }
    lines = "".join(f'{name} = "{url}"\n' for name, url in urls.items())
    return text.replace("[project.scripts]\n", f"[project.urls]\n{lines}\n[project.scripts]\n", 1)


def with_absolute_links(text: str, address: str, tag: str) -> str:
    """Return a page of Markdown whose links into the tree are absolute; pictures point to the files themselves."""

    def absolute(found: re.Match[str]) -> str:
        folder = "raw" if found["picture"] else "blob"
        return f"{found['picture']}[{found['label']}]({address}/{folder}/{tag}/{found['target']})"

    link = r"(?P<picture>!?)\[(?P<label>[^\]]*)\]\((?P<target>(?!https?:|#|mailto:)[^)]+)\)"
    return re.sub(link, absolute, text)


def main(address: str, tag: str) -> None:
    """Change both files in place."""
    address = address.rstrip("/")
    for name, change in (("pyproject.toml", with_urls), ("README.md", with_absolute_links)):
        file = ROOT / name
        file.write_text(change(file.read_text(encoding="utf-8"), address, tag), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
