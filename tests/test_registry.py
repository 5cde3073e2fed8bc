"""A name loads its file and no other; a list of names loads them all."""

import subprocess
import sys

import pytest

from cumulant.mechanisms.mechanism import COMBINATORS, MECHANISMS
from cumulant.sampling.scheme import SCHEMES

LOADED = "[each for each in sys.modules if each.startswith(('cumulant.mechanisms.', 'cumulant.sampling.'))]"


REGISTRIES = (("cumulant.mechanisms.mechanism", "MECHANISMS"), ("cumulant.sampling.scheme", "SCHEMES"))


def fresh(code: str) -> str:
    """Return what a new process prints."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_a_name_loads_its_own_file() -> None:
    found = fresh(f"import sys, cumulant as cm; cm.ZeroConcentrated(rho=1).epsilon(1e-6); print({LOADED})")
    assert "cumulant.mechanisms.zero_concentrated" in found
    for other in ("laplace", "matrix_mechanism", "parallel", "repeat_and_select", "random_allocation"):
        assert f".{other}'" not in found


@pytest.mark.parametrize("registry", [MECHANISMS, SCHEMES])
def test_every_name_is_found_by_a_process_that_has_loaded_nothing(registry: dict[str, type]) -> None:
    """A class whose name is that of another file would be found only after somebody has listed all names.

    Each name is looked up by a child that has loaded the registry alone: a fork, because an import takes half a second.
    """
    module, attribute = REGISTRIES[registry is SCHEMES]
    code = (
        f"import os, sys\nfrom {module} import {attribute} as registry\n"
        f"before = {LOADED}\n"
        f"for name in {list(registry)!r}:\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        try:\n"
        "            assert registry[name], name\n"
        "            os._exit(0)\n"
        "        finally:\n"
        "            os._exit(1)\n"
        "    assert os.waitpid(child, 0)[1] == 0, name\n"
        f"assert {LOADED} == before\n"
        "print('found')"
    )
    assert fresh(code) == "found"


def test_the_order_of_names_does_not_depend_on_what_was_loaded_first() -> None:
    code = (
        "import cumulant as cm\nfor name in {}: getattr(cm, name)\n"
        "from cumulant.mechanisms.mechanism import MECHANISMS as m\nfrom cumulant.sampling.scheme import SCHEMES as s\n"
        "print([*m, *s])"
    )
    assert (
        fresh(code.format(["ZeroConcentrated", "User", "Laplace"]))
        == fresh(code.format([]))
        == str([*MECHANISMS, *SCHEMES])
    )


def test_an_unknown_name_is_in_no_registry() -> None:
    for registry in (MECHANISMS, SCHEMES, COMBINATORS):
        assert "Mechanism" not in registry
        assert registry.get("os") is None
    assert "Gaussian" not in SCHEMES
    assert "Group" not in MECHANISMS
    assert list(COMBINATORS) == ["parallel"]


def test_a_class_from_elsewhere_comes_last(monkeypatch: pytest.MonkeyPatch) -> None:
    own = type("Own", (MECHANISMS["PureDP"],), {})
    monkeypatch.setitem(MECHANISMS, "Own", own)
    assert list(MECHANISMS)[-1] == "Own"
    assert MECHANISMS["Own"] is own
