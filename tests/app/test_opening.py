"""What a process stands on is checked before it stands on it."""

import pytest

from heliograph.app.opening import egress_rules
from heliograph.app.settings import EgressSettings, Settings
from heliograph.wire.malformed import Malformed


def test_an_exception_that_could_never_match_is_named_at_the_start() -> None:
    """A misspelled exception must not look like one that works."""
    settings = Settings(egress=EgressSettings(exceptions=("ntfy.lan:8443", "https://ntfy.lan:8443")))

    with pytest.raises(Malformed) as caught:
        egress_rules(settings)

    assert caught.value.field == "egress.exceptions[1]"
