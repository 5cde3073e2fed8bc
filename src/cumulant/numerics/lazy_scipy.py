"""Parts of scipy that are loaded when they are first used.

A small question must not wait for modules that it does not need.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scipy import fft as fft
    from scipy import special as special
else:

    class _Later:
        """A module that is not loaded yet; what was asked of it once is at hand."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, attribute: str) -> Any:
            found = getattr(import_module(self._name), attribute)
            setattr(self, attribute, found)
            return found

    fft, special = _Later("scipy.fft"), _Later("scipy.special")
