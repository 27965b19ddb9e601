"""The stub's body: the allow-listed members as plain JSON."""

import msgspec

from heliograph.delivery.blind import blind_members
from heliograph.delivery.model import Wakeup


def stub_payload(wakeup: Wakeup) -> bytes:
    """Spell a wakeup as the JSON object that the stub's receiver gets; nothing else is in it (R279)."""
    return msgspec.json.encode(blind_members(wakeup))
