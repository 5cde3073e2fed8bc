"""A math renderer for Sphinx: TeX to MathML, which browsers set without scripts and without network."""

from __future__ import annotations

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator


def render_inline(translator: HTML5Translator, node: nodes.math) -> None:
    """Write a formula of running text."""
    translator.body.append(convert(node.astext(), display="inline"))
    raise nodes.SkipNode


def render_block(translator: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula that stands on its own, in a box that scrolls on narrow screens."""
    translator.body.append(f'<div class="formula">{convert(node.astext(), display="block")}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer under the name that `html_math_renderer` uses."""
    app.add_html_math_renderer("mathml", (render_inline, None), (render_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
