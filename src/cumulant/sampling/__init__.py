"""Ways to draw the sample that a mechanism sees, one file each.

A scheme is registered by its file; it claims only what it states.
"""

from importlib import import_module
from pkgutil import iter_modules

for _found in iter_modules(__path__):
    import_module(f"{__name__}.{_found.name}")
