"""The documentation as a site of plain files: `make docs`, or python docs/site.py OUT.

Every page of docs, the reference of every public name, the README, the changelog and the errata, in one folder that needs no
network: no script, and formulas are MathML with a font that comes along. It is strict: a link or picture that leads nowhere, an
anchor that is not there, a page that nothing leads to, a formula that cannot be set, a public name without a docstring or
without an example are errors.
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
from markdown_it.token import Token

import cumulant as cm
from cumulant.bounds.table import BOUNDS

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs"))

import formulas  # noqa: E402

HOME = "docs/home.md"
MENU = {
    "Start": [HOME, "README.md", "docs/tutorial.md", "docs/which-mechanism.md", "docs/explanation.md"],
    "Train": [
        "docs/how-to-train.md",
        "docs/how-to-train-jax.md",
        "docs/training-loops.md",
        "docs/which-sampler.md",
        "docs/how-to-audit.md",
        "docs/model-card.md",
    ],
    "Analyse": [
        "docs/how-to-calibrate.md",
        "docs/how-to-plot.md",
        "docs/how-to-sweep.md",
        "docs/how-to-page.md",
        "docs/how-to-ledger.md",
        "docs/mechanisms/README.md",
    ],
    "Review": [
        "docs/how-to-check.md",
        "docs/certificates.md",
        "docs/adaptive.md",
        "docs/how-to-operate-a-ledger.md",
        "docs/ledger-proofs.md",
        "SECURITY.md",
    ],
    "Research": [
        "docs/bounds/README.md",
        "docs/exact.md",
        "docs/theorem-b.md",
        "docs/machine-checked.md",
        "proofs/README.md",
        "docs/adaptive-rounds.md",
        "docs/test-orders.md",
        "docs/line.md",
        "docs/rounding.md",
        "docs/paper.md",
        "docs/claims.md",
        "docs/errata.md",
        "docs/chi.md",
        "docs/how-to-divergences.md",
        "docs/benchmarks.md",
    ],
    "Reference": ["reference.md", "CHANGELOG.md", "docs/README.md", "CONTRIBUTING.md"],
}
"""The menu: who comes for what."""


FONT = ("math.woff2", "math-font-licence.txt")
"""What formulas are set in: a part of Noto Sans Math, and its licence."""


class Broken(Exception):
    """The site has mistakes; each is one line."""


def build(out: Path) -> int:
    """Write the site into this folder, which it replaces; the number of pages."""
    texts = {path: (ROOT / path).read_text(encoding="utf-8") for path in sources()}
    texts["reference.md"], wrong = reference()
    pages = {}
    for path, text in texts.items():
        try:
            pages[path] = rendered(text)
        except formulas.Unset as error:
            wrong.append(f"{path}: a formula cannot be set: {error}")
            pages[path] = ""
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
    for each in FONT:
        shutil.copyfile(ROOT / "docs" / each, out / each)
    return len(pages)


def sources() -> list[str]:
    """Every page that is written by hand."""
    written = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs").rglob("*.md"))]
    return [
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "benchmarks/README.md",
        "proofs/README.md",
        *written,
    ]


def reference() -> tuple[str, list[str]]:
    """Every public name with what it says of itself, its example included; and those that say nothing, or show nothing."""
    lines, wrong = ["# Reference\n", "Every public name of `import cumulant as cm`, with its example.\n"], []
    for name in sorted(cm.__all__, key=str.lower):
        if not name.startswith("_"):
            told, missing = _BY_HAND[name]() if name in _BY_HAND else _entries(name, getattr(cm, name), "##", True)
            lines += told
            wrong += [f"cm.{each}" for each in missing]
    for room in ROOMS:
        module = getattr(cm, room)
        lines.append(f"## cm.{room}\n\n{_prose(inspect.getdoc(module) or '')}")
        for name in getattr(module, "__all__", None) or _own(module):
            told, missing = _entries(name, getattr(module, name), "###", False)
            lines += told
            wrong += [f"cm.{room}.{each}" for each in missing]
    return "\n".join(lines), wrong


ROOMS = ("training", "families", "normal", "chi", "composition", "approximations", "differences")
"""Modules that `cm` leads to, with names of their own."""


def _own(module: Any) -> list[str]:
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]


def _entries(name: str, value: Any, level: str, shown: bool) -> tuple[list[str], list[str]]:
    """A name, its signature, what it says, and the same of what can be asked of it; and what is missing."""
    said = inspect.getdoc(value)
    if not said or (inspect.isclass(value) and not vars(value).get("__doc__")):
        return [], [f"{name} has no docstring"]
    lines, wrong = [f"{level} {name}\n", f"```text\n{name}{_signature(value)}\n```\n", _prose(said)], []
    examples = ">>>" in said
    for member, method in sorted(vars(value).items()) if inspect.isclass(value) else ():
        if member.startswith("_") or not (
            callable(method) or isinstance(method, classmethod | staticmethod | property)
        ):
            continue
        told = inspect.getdoc(getattr(value, member))
        if not told:
            wrong.append(f"{name}.{member} has no docstring")
            continue
        examples = examples or ">>>" in told
        lines += [f"{level}# {name}.{member}\n", _prose(told)]
    if shown and not examples:
        wrong.append(f"{name} has no example")
    return lines, wrong


def _table_of_bounds() -> tuple[list[str], list[str]]:
    rows = "\n".join(f"| `{row.name}` | {_cell(row.statement)} | {_cell(row.citation)} |" for row in BOUNDS.values())
    head = "| name | states | proved by |\n|---|---|---|"
    example = '```pycon\n>>> cm.BOUNDS["theorem9"].upper\nTrue\n```'
    return [f"## BOUNDS\n\nThe table of amplification bounds, by name.\n\n{example}\n\n{head}\n{rows}\n"], []


_BY_HAND = {"BOUNDS": _table_of_bounds}


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _signature(value: Any) -> str:
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    bare = [each.replace(annotation=_Bare.of(each.annotation)) for each in found.parameters.values()]
    shown = found.replace(parameters=bare, return_annotation=_Bare.of(found.return_annotation))
    return re.sub(r" at 0x[0-9a-f]+", "", str(shown))


class _Bare(str):
    """An annotation that is printed without quotes."""

    __slots__ = ()

    @classmethod
    def of(cls, annotation: Any) -> Any:
        return cls(annotation) if isinstance(annotation, str) else annotation

    def __repr__(self) -> str:
        return str(self)


def _prose(said: str) -> str:
    """A docstring as Markdown: examples become blocks, everything else stays text."""
    return (
        "\n\n".join(
            f"```pycon\n{block}\n```" if block.lstrip().startswith(">>>") else _plain(block)
            for block in said.split("\n\n")
        )
        + "\n"
    )


def _plain(block: str) -> str:
    """Text whose signs mean themselves, outside of what stands between backticks; what is indented is no formula."""
    pieces = re.split(r"(`[^`]*`)", inspect.cleandoc(block))
    return "".join(each if each.startswith("`") else re.sub(r"([*_<>|\[\]])", r"\\\1", each) for each in pieces)


_NAME = r"(?:[A-Za-z]{1,2}\d?|eps|delta|lambda|lam|alpha|sigma|phi|zeta|theta|SUM|INT|PROD)'?"
_SCRIPT = r"[_^](?:\{[^{}]*\}|\([^()]*\)|eps\([^()]*\)|-?[A-Za-z0-9]+'?|\+)"
_INLINE = re.compile(
    rf"(?<![\w^_])(?:{_NAME}(?:\([^() ]{{1,12}}\))?|\([^()|]{{1,40}}\)|\|[^|]{{1,40}}\|)(?:{_SCRIPT})+(?![\w^_])"
)
"""What in running text is a formula: a letter, or what stands in brackets, with something raised or lowered."""

_SIGNS = {"<=": "≤", ">=": "≥", "->": "→", "eps": "ε", "lam": "λ", "SUM": "∑", "INT": "∫"}
_SIGN = re.compile(r"<=|>=|->|(?<![\w-])(?:eps|lam|SUM|INT)(?![\w-])")


def rendered(text: str) -> str:
    """Markdown to HTML, every heading with an anchor as on GitHub; what is indented, and letters with scripts, are formulas."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(text)
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.type == "code_block":
            token.type, token.content = "html_block", f'<div class="formula">{formulas.block(token.content)}</div>\n'
        elif token.type == "inline" and not (before is not None and before.type == "heading_open"):
            token.children = [each for child in token.children or () for each in _set(child)]
    body = parser.renderer.render(tokens, parser.options, {})
    known: dict[str, int] = {}

    def anchored(found: re.Match[str]) -> str:
        plain = html.unescape(re.sub(r"<[^>]*>", "", found[2])).lower()
        name = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        known[name] = known.get(name, -1) + 1
        unique = f"{name}-{known[name]}" if known[name] else name
        return f'<h{found[1]} id="{html.escape(unique)}">{found[2]}</h{found[1]}>'

    return re.sub(r"<h([1-6])>(.*?)</h\1>", anchored, body, flags=re.DOTALL)


def _set(token: Token) -> list[Token]:
    """A piece of running text, its formulas set."""
    if token.type != "text":
        return [token]
    pieces, place = [], 0
    for found in _INLINE.finditer(token.content):
        pieces.append(_said(token.content[place : found.start()]))
        pieces.append(Token("html_inline", "", 0, content=formulas.inline(found[0])))
        place = found.end()
    return [*pieces, _said(token.content[place:])]


def _said(text: str) -> Token:
    """Running text, with the signs that a keyboard has not."""
    return Token("text", "", 0, content=_SIGN.sub(lambda found: _SIGNS[found[0]], text))


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
    return "index.html" if path == HOME else re.sub(r"\.md$", ".html", path)


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
        f'</head><body><a class="menu" href="#menu">Menu</a><nav id="menu" aria-label="Pages">{menu}</nav>'
        f"<main>{_LINK.sub(moved, body)}</main></body></html>\n"
    )


def _entry(path: str, each: str, start: str) -> str:
    text = "# Reference" if each == "reference.md" else (ROOT / each).read_text(encoding="utf-8")
    here = ' aria-current="page"' if each == path else ""
    return f'<li><a href="{start}/{target(each)}"{here}>{html.escape(_short(each, text))}</a></li>'


def _title(text: str) -> str:
    found = re.search(r"^# (.*)$", text, re.MULTILINE)
    return re.sub(r"[`*\[\]]", "", found[1]) if found else "cumulant"


def _short(path: str, text: str) -> str:
    """The title of a page in the menu: up to its colon."""
    return NAMES.get(path) or _title(text).split(": ")[0]


NAMES = {HOME: "Home", "README.md": "README", "docs/how-to-divergences.md": "Divergences and composition"}


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
