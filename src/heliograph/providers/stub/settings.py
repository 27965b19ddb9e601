"""What an operator sets for the stub."""

import msgspec

from heliograph.wire.malformed import Malformed

URL_CHARACTERS_MAX = 2_048


class StubSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the stub provider.

    Attributes:
        url: Where to POST wakeups; ``http`` is allowed, for the operator names it. Without one every
            wakeup is accepted at once and goes nowhere.
    """

    url: str | None = None


def check_settings(settings: StubSettings) -> None:
    """Refuse settings that could never deliver.

    Raises:
        Malformed: The URL is not an absolute http or https URL.
    """
    url = settings.url
    if url is None:
        return
    scheme, _, rest = url.partition("://")
    if (
        scheme not in ("http", "https")
        or not rest.split("/", 1)[0]
        or not url.isascii()
        or not url.isprintable()
        or " " in url
        or "@" in rest.split("/", 1)[0]
        or len(url) > URL_CHARACTERS_MAX
    ):
        raise Malformed("url", "must be an absolute http or https URL without a user name or spaces")
