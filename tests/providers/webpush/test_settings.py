"""Settings that some push service would refuse are refused when they are read."""

import msgspec
import pytest

from heliograph.providers.webpush.settings import WebPushSettings, check_settings
from heliograph.wire.malformed import Malformed

GOOD = (
    "mailto:ops@example.org",
    "mailto:first.last+push@mail.example.co.uk",
    "https://example.org",
    "https://example.org/contact?x=1",
    "https://xn--bcher-kva.example.org/",
    "mailto:ops@example.xn--p1ai",
)
BAD = (
    "",
    "ops@example.org",
    "mailto:",
    "mailto:ops",
    "mailto:@example.org",
    "mailto:ops@",
    "mailto:ops@localhost",
    "mailto:a@x.local",
    "mailto:a@x.localdomain",
    "mailto:a@x.invalid",
    "mailto:a@x.test",
    "mailto:a@x.example",
    "mailto:a@x.internal",
    "mailto:a@x.lan",
    "mailto:a@x.LAN",
    "mailto:a@home.arpa",
    "mailto:a@x.onion",
    "mailto:ops@127.0.0.1",
    "mailto:ops@[127.0.0.1]",
    "mailto:ops@example.org.",
    "mailto:ops@example..org",
    "mailto:o ps@example.org",
    "mailto:ops@example.org?subject=x",
    "mailto:ops@example.org,other@example.org",
    "mailto:ops@ex\u00e4mple.org",
    "mailto:<ops@example.org>",
    "http://example.org",
    "https://",
    "https://localhost/",
    "https://127.0.0.1/",
    "https://user@example.org/",
    "https://example.org:8443/",
    "https://example.org/\n",
    "https://push.local",
    "mailto:" + "a" * 65 + "@example.org",
    "https://example.org/" + "a" * 300,
)


@pytest.mark.parametrize("subject", GOOD)
def test_a_subject_on_a_public_domain_passes(subject: str) -> None:
    """Both forms of RFC 8292."""
    check_settings(WebPushSettings(subject=subject, vapid_key="env:VAPID"))


@pytest.mark.parametrize("subject", BAD)
def test_a_subject_that_some_service_would_refuse_is_refused_at_once(subject: str) -> None:
    """W1: local, reserved, numeric and malformed subjects never get as far as a push."""
    with pytest.raises(Malformed) as caught:
        check_settings(WebPushSettings(subject=subject, vapid_key="env:VAPID"))

    assert caught.value.field == "subject"


@pytest.mark.parametrize(
    "host", ["", "*", "*.", "Push.example.org", "https://push.example.org", "a..b", "*.*.org"]
)
def test_a_host_entry_that_can_never_match_is_refused(host: str) -> None:
    """The error names the entry."""
    with pytest.raises(Malformed) as caught:
        check_settings(
            WebPushSettings(
                subject="mailto:a@example.org", vapid_key="env:VAPID", hosts=("fcm.googleapis.com", host)
            )
        )

    assert caught.value.field == "hosts[1]"


def test_unknown_settings_are_refused() -> None:
    """A misspelled setting is not silently a default."""
    with pytest.raises(msgspec.ValidationError, match="vapid_kee"):
        msgspec.convert({"subject": "mailto:a@example.org", "vapid_kee": "x"}, WebPushSettings)
