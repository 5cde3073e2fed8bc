"""The documentation as a site of plain files: `make docs`, or python docs/site.py OUT.

Every page of docs, the reference of every public name, the README, the changelog and the errata, in one folder that needs no
network. It is strict: a link or picture that leads nowhere, an anchor that is not there, a page that no menu names and a public
name without a docstring are errors.
"""

from __future__ import annotations

import html
import inspect
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from markdown_it import MarkdownIt

import cumulant as cm
from cumulant.bounds.table import BOUNDS

ROOT = Path(__file__).resolve().parents[1]
MENU = {
    "Start": ["README.md", "docs/tutorial.md", "docs/README.md"],
    "Train": ["docs/how-to-train.md", "docs/which-sampler.md", "docs/how-to-audit.md", "docs/model-card.md"],
    "Analyse": ["docs/how-to-calibrate.md", "docs/how-to-plot.md", "docs/how-to-page.md", "docs/how-to-ledger.md"],
    "Review": [
        "docs/how-to-check.md",
        "docs/explanation.md",
        "docs/certificates.md",
        "docs/adaptive.md",
        "SECURITY.md",
    ],
    "Research": [
        "docs/bounds/README.md",
        "docs/mechanisms/README.md",
        "docs/exact.md",
        "docs/adaptive-rounds.md",
        "docs/paper.md",
        "docs/errata.md",
        "docs/how-to-divergences.md",
    ],
    "Reference": ["reference.md", "CHANGELOG.md", "CONTRIBUTING.md"],
}
"""The menu: who comes for what."""


class Broken(Exception):
    """The site has mistakes; each is one line."""


def build(out: Path) -> int:
    """Write the site into this folder, which it replaces; the number of pages."""
    texts = {path: (ROOT / path).read_text(encoding="utf-8") for path in sources()}
    texts["reference.md"], wrong = reference()
    pages = {path: rendered(text) for path, text in texts.items()}
    for path in pages:
        wrong += broken(path, pages)
    listed = {path for group in MENU.values() for path in group}
    wrong += [f"{path}: no page names it" for path in sorted(set(pages) - listed - linked(pages))]
    wrong += [f"{path}: the menu names it, and it is not there" for path in sorted(listed - set(pages))]
    if wrong:
        raise Broken("\n".join(wrong))
    shutil.rmtree(out, ignore_errors=True)
    for path, body in pages.items():
        file = out / target(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(whole(path, texts[path], body), encoding="utf-8")
    for path in sorted(attached(pages)):
        copy = out / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, copy)
    shutil.copyfile(ROOT / "docs" / "site.css", out / "style.css")
    return len(pages)


def sources() -> list[str]:
    """Every page that is written by hand."""
    written = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs").rglob("*.md"))]
    return ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", *written]


def reference() -> tuple[str, list[str]]:
    """Every public name with what it says of itself, its example included; and those that say nothing."""
    lines, wrong = ["# Reference\n", "Every public name of `import cumulant as cm`, with its example.\n"], []
    for name in sorted(cm.__all__, key=str.lower):
        if name.startswith("_"):
            continue
        value: Any = getattr(cm, name)
        if name == "BOUNDS":
            rows = "\n".join(
                f"| `{row.name}` | {_cell(row.statement)} | {_cell(row.citation)} |" for row in BOUNDS.values()
            )
            head = "| name | states | proved by |\n|---|---|---|"
            lines.append(f"## BOUNDS\n\nThe table of amplification bounds.\n\n{head}\n{rows}\n")
            continue
        said = inspect.getdoc(value)
        if not said:
            wrong.append(f"cm.{name} has no docstring")
            continue
        lines += [f"## {name}\n", f"```python\n{name}{_signature(value)}\n```\n", _prose(said)]
        for member, method in sorted(vars(value).items()) if inspect.isclass(value) else ():
            if not member.startswith("_") and callable(method) and (told := inspect.getdoc(method)):
                lines += [f"### {name}.{member}\n", _prose(told)]
    return "\n".join(lines), wrong


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _signature(value: Any) -> str:
    try:
        return re.sub(r" at 0x[0-9a-f]+", "", str(inspect.signature(value)))
    except (TypeError, ValueError):
        return ""


def _prose(said: str) -> str:
    """A docstring as Markdown: examples become blocks, everything else stays text."""
    blocks = []
    for block in said.split("\n\n"):
        text = block if not block.lstrip().startswith(">>>") else f"```pycon\n{block}\n```"
        blocks.append(text if text is not block else re.sub(r"([*_<|])", r"\\\1", block) if "`" not in block else block)
    return "\n\n".join(blocks) + "\n"


def rendered(text: str) -> str:
    """Markdown to HTML, every heading with an anchor as on GitHub."""
    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
    known: dict[str, int] = {}

    def anchored(found: re.Match[str]) -> str:
        plain = html.unescape(re.sub(r"<[^>]*>", "", found[2])).lower()
        name = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        known[name] = known.get(name, -1) + 1
        unique = f"{name}-{known[name]}" if known[name] else name
        return f'<h{found[1]} id="{html.escape(unique)}">{found[2]}</h{found[1]}>'

    return re.sub(r"<h([1-6])>(.*?)</h\1>", anchored, body, flags=re.DOTALL)


_LINK = re.compile(r'(href|src)="([^"]*)"')


def _leads(path: str, link: str) -> tuple[str, str] | None:
    """The file and the anchor that a link of a page leads to; None where it leaves the site."""
    if re.match(r"[a-z]+:", link):
        return None
    file, _, anchor = unquote(html.unescape(link)).partition("#")
    place = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
    return place.replace(os.sep, "/"), anchor


def broken(path: str, pages: dict[str, str]) -> list[str]:
    """The links of a page that lead nowhere."""
    wrong = []
    for _, link in _LINK.findall(pages[path]):
        if (found := _leads(path, link)) is None:
            continue
        place, anchor = found
        if place not in pages and not (ROOT / place).exists():
            wrong.append(f"{path}: {link} leads nowhere")
        elif anchor and place in pages and f'id="{html.escape(anchor)}"' not in pages[place]:
            wrong.append(f"{path}: {link} names no heading of {place}")
    return wrong


def linked(pages: dict[str, str]) -> set[str]:
    """Every page that another one leads to."""
    leads = (_leads(path, link) for path in pages for _, link in _LINK.findall(pages[path]))
    return {found[0] for found in leads if found is not None}


def attached(pages: dict[str, str]) -> set[str]:
    """Files that pages show or lead to, and that are no pages."""
    return {place for place in linked(pages) - set(pages) if (ROOT / place).is_file()}


def target(path: str) -> str:
    """Where a page is written."""
    return "index.html" if path == "README.md" else re.sub(r"\.md$", ".html", path)


def whole(path: str, text: str, body: str) -> str:
    """A page with its menu; links to pages lead to their files."""
    start = os.path.relpath(".", os.path.dirname(target(path)) or ".")

    def moved(found: re.Match[str]) -> str:
        leads = _leads(path, found[2])
        if leads is None or not leads[0].endswith(".md"):
            return found[0]
        relative = os.path.relpath(target(leads[0]), os.path.dirname(target(path)) or ".").replace(os.sep, "/")
        return f'{found[1]}="{relative}{"#" + html.escape(leads[1]) if leads[1] else ""}"'

    menu = "".join(
        f"<h2>{group}</h2><ul>{''.join(_entry(path, each, start) for each in entries)}</ul>"
        for group, entries in MENU.items()
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(_title(text))} · cumulant</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="stylesheet" href="{start}/style.css">'
        f'</head><body><nav aria-label="Pages">{menu}</nav><main>{_LINK.sub(moved, body)}</main></body></html>\n'
    )


def _entry(path: str, each: str, start: str) -> str:
    text = "# Reference" if each == "reference.md" else (ROOT / each).read_text(encoding="utf-8")
    here = ' aria-current="page"' if each == path else ""
    return f'<li><a href="{start}/{target(each)}"{here}>{html.escape(_title(text))}</a></li>'


def _title(text: str) -> str:
    found = re.search(r"^# (.*)$", text, re.MULTILINE)
    return re.sub(r"[`*\[\]]", "", found[1]) if found else "cumulant"


def main() -> int:
    """Build the site; 1 and the list of mistakes where it has some."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "site")
    try:
        count = build(out)
    except Broken as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{out}: {count} pages\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
