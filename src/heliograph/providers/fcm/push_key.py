"""The push key of FCM: a registration token, as text.

The form is ``fcm:`` followed by the token as the device's SDK gave it, which is made of ASCII letters,
digits, ``-``, ``_``, ``.`` and ``:``; the whole text has at most 4,096 characters:

    fcm:cR7vQ0bTSUq:APA91bF1pZc5eH3Zr0o4

The prefix names the form, so that a push key of another kind that strays here is refused as what it is.
"""

import re
from typing import Final

from heliograph.wire.malformed import Malformed
from heliograph.wire.secret import Secret

PREFIX: Final = "fcm:"

PUSH_KEY_CODE_POINTS_MAX: Final = 4_096
"""The longest push key that the wire schema lets through; tokens so far have a twentieth of it."""

_TOKEN: Final = re.compile(r"[A-Za-z0-9._:-]+", re.ASCII)


def registration_token(push_key: Secret) -> str:
    """Read a push key of FCM.

    Args:
        push_key: The text that was registered.

    Returns:
        The registration token; a secret still.

    Raises:
        Malformed: It is not in the documented form. The text never repeats any part of it.
    """
    text = push_key.reveal()
    if not text.startswith(PREFIX):
        raise Malformed("push_key", f"must be {PREFIX} followed by the registration token")
    if len(text) > PUSH_KEY_CODE_POINTS_MAX:
        raise Malformed("push_key", f"must have at most {PUSH_KEY_CODE_POINTS_MAX} characters")
    token = text[len(PREFIX) :]
    if _TOKEN.fullmatch(token) is None:
        raise Malformed("push_key", "must hold letters, digits and -_.: after the prefix")
    return token
