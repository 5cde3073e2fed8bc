"""Completion: values, names in expressions, accounts of a ledger; nothing heavy is loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

from cumulant.cli.completion import MECHANISM_NAMES, SCHEME_NAMES, complete, complete_account, complete_expression
from cumulant.cli.dpsgd import CORRELATED_NAMES, SAMPLING_NAMES
from cumulant.cli.ledger_options import MODE_NAMES, RELATION_NAMES
from cumulant.ledger.ledger import Ledger
from cumulant.ledger.policy import MODES
from cumulant.mechanisms.mechanism import MECHANISMS
from cumulant.relation import Relation
from cumulant.sampling.scheme import SCHEMES
from cumulant.training.sgd import CORRELATED, SAMPLINGS


def test_names_that_are_written_out_are_those_of_the_library() -> None:
    for name, known, listed in (("MECHANISM", MECHANISMS, MECHANISM_NAMES), ("SCHEME", SCHEMES, SCHEME_NAMES)):
        differ = set(known) ^ set(listed)
        assert not differ, f"{differ} differs; add it to {name}_NAMES of cli/completion.py, see CONTRIBUTING"
        assert len(listed) == len(known)
    assert tuple(SAMPLINGS) == SAMPLING_NAMES
    assert tuple(CORRELATED) == CORRELATED_NAMES
    assert MODES == MODE_NAMES
    assert {str(each) for each in Relation} - {"any"} == set(RELATION_NAMES)


def test_names_in_an_expression() -> None:
    assert complete_expression("Lap") == ["Laplace("]
    assert complete_expression("Laplace(scale=2) + Pure") == ["Laplace(scale=2) + PureDP("]
    assert complete_expression("Laplace(scale=2) @Bal") == ["Laplace(scale=2) @BallsInBins("]
    assert complete(["text", "latex"])("x") == []


def test_accounts_of_a_file(tmp_path: Path) -> None:
    place = tmp_path / "budget.db"
    for name in ("patients", "people", "clicks"):
        Ledger(str(place)).create(name, epsilon=1, delta=1e-6)
    assert complete_account(SimpleNamespace(params={"url": str(place)}), "p") == ["patients", "people"]
    assert complete_account(SimpleNamespace(params={"url": f"sqlite:///{place}"}), "c") == ["clicks"]
    for other in ("nowhere.db", "postgresql://host/db", "", str(tmp_path)):
        assert complete_account(SimpleNamespace(params={"url": other}), "") == []
    place.with_name("other.db").write_bytes(b"something else")
    assert complete_account(SimpleNamespace(params={"url": str(place.with_name("other.db"))}), "") == []


def test_the_shell_asks_for_values_without_numpy() -> None:
    code = "import sys, cumulant.cli as cli\ntry:\n    cli.main()\nfinally:\n    print('numpy' in sys.modules, file=sys.stderr)"
    words = "cumulant epsilon x --method "
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"_CUMULANT_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "4"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "rdp" in done.stdout.split()
    assert done.stderr.split()[-1] == "False"
