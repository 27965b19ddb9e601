"""The Station of the demo: its key, its pen, and its requests to the Gateway."""

from pyreqwest.client import Client

from heliograph.ambient.entropy import SystemEntropy
from heliograph.app.compose import Running
from heliograph.lab.station import SignedRequest, StationPen
from heliograph.signing.ed25519 import SigningKey
from heliograph.wire.ids import DidCoreId, VerificationMethod

STATION = DidCoreId("ak:did_core:web:station.example")
STATION_KEY = VerificationMethod("did:web:station.example#push")


class DemoStation:
    """Signs and sends.

    Args:
        gateway: Who it writes to.
        client: Its HTTP client.
    """

    def __init__(self, gateway: Running, client: Client) -> None:
        key = SigningKey(SystemEntropy().octets(32))
        self._client = client
        self.gateway = gateway
        self.public_key = key.verify_key.multibase()
        self.pen = StationPen(
            service_id=STATION,
            keyid=STATION_KEY,
            key=key,
            gateway_id=gateway.identity.service_id,
            gateway_url=gateway.identity.base_url,
        )

    async def post(self, signed: SignedRequest) -> tuple[int, bytes]:
        """Send a signed request and return the status and the octets of the answer."""
        request = self._client.post(self.gateway.local_url + signed.path).headers(dict(signed.headers))
        response = await request.body_bytes(signed.body).build().send()
        return response.status, bytes(await response.bytes())
