"""One reference page per public object, written before a build into docs/reference, and docstrings as reStructuredText."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

import cumulant as cm

FOLDER = Path(__file__).resolve().parents[1] / "reference"

EXAMPLES = {"BOUNDS": '>>> cm.BOUNDS["theorem9"].upper\nTrue'}
"""Examples of what is data, which has no docstring of its own."""

QUESTIONS = ("epsilon", "delta", "guarantee", "check", "rdp", "privacy_loss", "true_positive_rate", "trade_off", "plot")
"""The methods of a run that have a page of their own."""

MODULES = (
    "cumulant.training",
    "cumulant.paper.families",
    "cumulant.paper.normal",
    "cumulant.paper.chi",
    "cumulant.paper.approximations",
    "cumulant.conversion.composition",
    "cumulant.numerics.differences",
)
"""The public modules beside `cumulant` itself, one page each."""

INTEGRATIONS = Path(cm.__file__).parent / "integrations"
"""The modules for frameworks. Their pages come from the source text, so that a build needs none of the frameworks."""


def kinds() -> dict[str, list[str]]:
    """Return the names of `cumulant.__all__` by the kind of thing they are."""
    found: dict[str, list[str]] = {
        "Questions and answers": [],
        "Mechanisms, promises and combinators": [],
        "Ways to sample": [],
        "Errors": [],
    }
    for name in sorted(cm.__all__, key=str.lower):
        if name.startswith("_"):
            continue
        value = getattr(cm, name)
        if inspect.isclass(value) and issubclass(value, cm.CumulantError):
            kind = "Errors"
        elif inspect.isclass(value) and value.__module__.startswith("cumulant.sampling."):
            kind = "Ways to sample"
        elif getattr(value, "__module__", "").startswith("cumulant.mechanisms.") and name not in ("Run", "Sampled"):
            kind = "Mechanisms, promises and combinators"
        else:
            kind = "Questions and answers"
        found[kind].append(name)
    return found


def page(name: str, value: Any) -> str:
    """Return the page of one public name."""
    if inspect.isclass(value):
        options = ("members:", "inherited-members: object, str, Exception", "show-inheritance:")
        body = f".. autoclass:: cumulant.{name}\n" + "".join(f"   :{option}\n" for option in options)
    elif callable(value):
        body = f".. autofunction:: cumulant.{name}\n"
    else:
        body = f".. autodata:: cumulant.{name}\n   :no-value:\n\n{EXAMPLES[name]}\n"
    return f"# {name}\n\n```{{eval-rst}}\n.. py:currentmodule:: cumulant\n\n{body}```\n"


def write_pages(app: Sphinx) -> None:
    """Write every page of the reference; a page that is unchanged is not touched."""
    lines = ["# Reference", "", "Every public name of `import cumulant as cm`, one page each, with an example.", ""]
    pages: dict[str, str] = {}
    for kind, names in kinds().items():
        lines += [f"## {kind}", ""]
        if kind == "Questions and answers":
            for each in QUESTIONS:
                if hasattr(cm.Run, each):
                    automatic = "automethod" if callable(getattr(cm.Run, each)) else "autoproperty"
                    block = f".. {automatic}:: cumulant.Run.{each}\n   :no-index:\n"
                    pages[f"Run.{each}"] = f"# Run.{each}\n\n```{{eval-rst}}\n{block}```\n"
                    lines.append(f"* [`run.{each}`](Run.{each}.md): {summary(getattr(cm.Run, each))}")
        for name in names:
            pages[name] = page(name, getattr(cm, name))
            lines.append(f"* [`cm.{name}`]({name}.md): {summary(getattr(cm, name))}")
        lines.append("")
    lines += ["## Modules", ""]
    for module in MODULES:
        # names of training live in its files, and the one that `cumulant` has too has its own page
        imported = "   :imported-members:\n   :exclude-members: NoisySGD\n" if module == "cumulant.training" else ""
        pages[module] = f"# {module}\n\n```{{eval-rst}}\n.. automodule:: {module}\n   :members:\n{imported}```\n"
        lines.append(f"* [`{module}`]({module}.md)")
    for module, text in integration_pages().items():
        pages[module] = text
        lines.append(f"* [`{module}`]({module}.md)")
    # a page that stands in no table of contents: a hundred names would drown the sidebar
    pages = {name: f"---\norphan: true\n---\n\n{text}" for name, text in pages.items()}
    pages["index"] = "\n".join(lines) + "\n"
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.md"):
        if old.stem not in pages:
            old.unlink()
    for name, text in pages.items():
        file = FOLDER / f"{name}.md"
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")


def integration_pages() -> dict[str, str]:
    """Return a page for every module of `cumulant.integrations` that has public names, read from its source."""
    trees = {file.stem: ast.parse(file.read_text(encoding="utf-8")) for file in sorted(INTEGRATIONS.glob("*.py"))}
    defined = {
        node.name: node
        for tree in trees.values()
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
    }
    pages = {}
    for stem, tree in trees.items():
        names = [
            name
            for node in tree.body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
            for name in ast.literal_eval(node.value)
        ]
        if names:
            parts = [description(ast.get_docstring(tree) or "", "")]
            parts += [entry(defined[name], "") for name in names if name in defined]
            module = f"cumulant.integrations.{stem}"
            body = f".. py:module:: {module}\n\n" + "\n\n".join(parts)
            pages[module] = f"# {module}\n\n```{{eval-rst}}\n{body}\n```\n"
    return pages


def entry(node: ast.ClassDef | ast.FunctionDef, indent: str) -> str:
    """Return the description of a class or function of an integration, with the public methods of a class."""
    kind, arguments = ("class", "") if isinstance(node, ast.ClassDef) else ("function", f"({ast.unparse(node.args)})")
    if indent:
        kind = "method"
    inner = [
        f"{indent}.. py:{kind}:: {node.name}{arguments}",
        description(ast.get_docstring(node) or "", indent + "   "),
    ]
    if isinstance(node, ast.ClassDef):
        members = [each for each in node.body if isinstance(each, ast.FunctionDef) and not each.name.startswith("_")]
        inner += [entry(each, indent + "   ") for each in members if ast.get_docstring(each)]
    return "\n\n".join(inner)


def description(docstring: str, indent: str) -> str:
    """Return a docstring as reStructuredText under an indentation."""
    blocks = [restructured(block) for block in re.split(r"\n\s*\n", docstring)]
    return textwrap.indent("\n\n".join(blocks), indent)


def summary(value: Any) -> str:
    """Return the first sentence of a docstring, safe in a line of Markdown."""
    text = (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ")
    return re.sub(r"([*_<>|\[\]$])", r"\\\1", text.split(". ")[0].rstrip(".")) + "."


def to_restructured(app: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]) -> None:
    """Rewrite a docstring in plain text so that its signs mean themselves in reStructuredText."""
    blocks = re.split(r"\n\s*\n", "\n".join(lines))
    lines[:] = [*"\n\n".join(restructured(block) for block in blocks).split("\n"), ""]


def restructured(block: str) -> str:
    """Return one paragraph, list, example or indented formula of a docstring as reStructuredText."""
    if not block.strip() or block.lstrip().startswith(">>>"):
        return inspect.cleandoc(block)
    if all(line.startswith("    ") for line in block.splitlines()):
        return "::\n\n" + block
    text = re.sub(r"^(\s*)[*-] ", r"\1• ", inspect.cleandoc(block), flags=re.MULTILINE)
    pieces = re.split(r"(`[^`]*`)", text)
    safe = [
        f"``{each[1:-1]}``" if each.startswith("`") and len(each) > 2 else re.sub(r"([*_|\\`<>])", r"\\\1", each)
        for each in pieces
    ]
    joined = "".join(re.sub(r"\n\s+", "\n", each) for each in safe)
    return "\n\n".join(re.sub(r"^• ", "* ", item).replace("\n", " ") for item in re.split(r"\n(?=• )", joined))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the writer of pages and the reader of docstrings."""
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", to_restructured)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
