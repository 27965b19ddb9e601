"""The Gateway as one thing: its desks, and what it says of itself."""

from dataclasses import dataclass
from typing import Final

import msgspec

from heliograph.arkret.errors import PARAM_INVALID, ArkretRefused
from heliograph.arkret.gateway.describe import SERVICE_KIND, Identity, describe
from heliograph.arkret.gateway.service.handoff import HandoffDesk
from heliograph.arkret.gateway.service.notify import NotifyDesk
from heliograph.arkret.schema import MAX_NOTIFY_DEVICES
from heliograph.edge.request import Reply, Request

NOTIFY_BODY_OCTETS_MAX: Final = 65_536
"""A notify with the most devices it may name is below a quarter of this (A19)."""

HANDOFF_BODY_OCTETS_MAX: Final = 65_536
"""The longest push key is 4,096 code points of at most four octets; the rest is small."""


@dataclass(frozen=True, slots=True)
class Gateway:
    """The role's use cases, ready to be served."""

    identity: Identity
    handoffs: HandoffDesk
    notifies: NotifyDesk

    async def describe(self, request: Request) -> Reply:
        """Answer who this is and what it offers (R007, R089, R142).

        Raises:
            ArkretRefused: ``param_invalid`` when another role is asked for: this process has no such role.
        """
        if request.query not in ("", f"service_kind={SERVICE_KIND}"):
            raise ArkretRefused(PARAM_INVALID, "names a role that is not served here", field="service_kind")
        document = describe(
            self.identity, max_devices=MAX_NOTIFY_DEVICES, body_octets_max=NOTIFY_BODY_OCTETS_MAX
        )
        return Reply(200, msgspec.json.encode(document, order="sorted"))
