"""dp_accounting as TensorFlow Privacy pins it, in an environment of its own: the adapter says how to export an event."""

from importlib.metadata import version

import dp_accounting as dpa
import pytest

from tests.pinned.exported_events import EVENTS


def test_the_version_is_the_pinned_one() -> None:
    assert version("dp-accounting") == "0.4.3"


def test_the_adapter_refuses_and_says_how_to_export() -> None:
    with pytest.raises(ImportError, match=r"0\.4\.3 is installed.*read_dp_event"):
        import cumulant.integrations.dp_accounting  # noqa: F401


@pytest.mark.parametrize("text", EVENTS)
def test_events_are_written_as_they_are_read(text: str) -> None:
    names = {name: getattr(dpa, name) for name in dir(dpa) if name.endswith("DpEvent")}
    assert repr(eval(text, names)) == text  # noqa: S307
