"""The push key of APNs: a device token, as text.

The form is ``apns:`` followed by the token in hexadecimal digits, as many as there are (Apple promises no
length), an even number and at most 200:

    apns:0f744707bebcf74f9b7c25d48e3358945f6aa01da5ddb387462c7eaf61bb78ad

The prefix names the form, so that a push key of another kind that strays here is refused as what it is.
"""

import re
from typing import Final

from heliograph.wire.malformed import Malformed
from heliograph.wire.secret import Secret

PREFIX: Final = "apns:"

DIGITS_MAX: Final = 200
"""Three times what tokens have had so far, and short enough for a path."""

_TOKEN: Final = re.compile(r"(?:[0-9A-Fa-f]{2})+", re.ASCII)


def device_token(push_key: Secret) -> str:
    """Read a push key of APNs.

    Args:
        push_key: The text that was registered.

    Returns:
        The device token in lower-case hexadecimal digits; a secret still.

    Raises:
        Malformed: It is not in the documented form. The text never repeats any part of it.
    """
    text = push_key.reveal()
    if not text.startswith(PREFIX):
        raise Malformed("push_key", f"must be {PREFIX} followed by the device token in hexadecimal digits")
    token = text[len(PREFIX) :]
    if len(token) > DIGITS_MAX:
        raise Malformed("push_key", f"must have at most {DIGITS_MAX} digits")
    if _TOKEN.fullmatch(token) is None:
        raise Malformed("push_key", "must hold an even number of hexadecimal digits after the prefix")
    return token.lower()
