"""A Gateway on a test database, with its clock, its keys and a Station that signs to it."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields
from typing import Any

from heliograph.ambient.entropy import SystemEntropy
from heliograph.ambient.telemetry import Telemetry
from heliograph.arkret.gateway import store
from heliograph.arkret.gateway.describe import HARDENED, Identity
from heliograph.arkret.gateway.http import gateway_system
from heliograph.arkret.gateway.service.admission import Doorkeeper
from heliograph.arkret.gateway.service.gateway import Gateway
from heliograph.arkret.gateway.service.handoff import HandoffDesk
from heliograph.arkret.gateway.service.notify import NotifyDesk
from heliograph.arkret.gateway.service.trust import TrustBook
from heliograph.arkret.gateway.settings import GatewaySettings
from heliograph.arkret.gateway.store import TrustedStation
from heliograph.delivery.applications import Applications
from heliograph.delivery.provider import Provider
from heliograph.doorbell.local import LocalDoorbell
from heliograph.edge.asgi import Edge
from heliograph.edge.system import EdgeCodes, System
from heliograph.lab.station import SignedRequest, StationPen
from heliograph.providers.stub.exchange import StubProvider
from heliograph.providers.stub.settings import StubSettings
from heliograph.signing.ed25519 import SigningKey, VerifyKey
from heliograph.signing.seal import TenantKeys
from heliograph.storage.database import Database
from heliograph.wire.ids import DidCoreId, VerificationMethod
from tests.arkret import make
from tests.secrets import planted_octets

NOW = 1_790_000_000_000
BASE_URL = "https://push.example.com"
GATEWAY_ID = DidCoreId("ak:did_core:web:push.example.com")
RECEIPT_METHOD = VerificationMethod("did:web:push.example.com#push")

STATION_KEY = SigningKey(planted_octets("station-seed"))
OTHER_KEY = SigningKey(planted_octets("other-station-seed"))
RECEIPT_KEY = SigningKey(planted_octets("receipt-seed"))
MASTER = planted_octets("master-key")


@dataclass
class ManualClock:
    """A clock that tests move."""

    at: int = NOW

    def now(self) -> int:
        return self.at

    def monotonic(self) -> float:
        return self.at / 1000

    async def sleep(self, seconds: float) -> None:
        self.at += int(seconds * 1000)


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The stable code of a problem, or an empty word."""
        return str(self.json.get("type", "")).rpartition("/")[2] if self.body else ""


@dataclass
class House:
    """A Gateway and what a test needs to know of it."""

    database: Database
    clock: ManualClock
    telemetry: Telemetry
    trust: TrustBook
    gateway: Gateway
    edge: Edge
    system: System
    keys: TenantKeys
    doorbell: LocalDoorbell
    lifetimes: dict[int, int] = field(default_factory=dict)

    async def send(self, request: SignedRequest, **changes: str | None) -> Answer:
        """Send a signed request; changes replace headers after signing, None removes one."""
        headers = {**request.headers, **{name.replace("_", "-"): value for name, value in changes.items()}}
        return await self.ask(
            "POST", request.path, [(n, v) for n, v in headers.items() if v is not None], request.body
        )

    async def ask(
        self, method: str, target: str, headers: list[tuple[str, str]], body: bytes = b""
    ) -> Answer:
        """Send any request through the edge."""
        path, _, query = target.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(n.encode(), v.encode()) for n, v in headers]
            + [(b"content-length", str(len(body)).encode())],
            "client": ("127.0.0.1", 1),
            "http_version": "1.1",
        }
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await self.edge(scope, receive, send)  # type: ignore[arg-type]
        start = sent[0]
        answer = Answer(
            status=start["status"],
            headers={n.decode(): v.decode() for n, v in start["headers"]},
            body=b"".join(message.get("body", b"") for message in sent[1:]),
        )
        assert len(answer.headers) == len(start["headers"]), "a header was sent twice"
        self._promised(method, path, answer)
        return answer

    def _promised(self, method: str, path: str, answer: Answer) -> None:
        """Hold an answer against the row of its operation: its status, and its code if it is a refusal."""
        for row in self.system.operations:
            if (row.method, row.path) == (method, path) and answer.status != row.success:
                codes = {*row.codes, *(getattr(self.system.codes, f.name) for f in fields(EdgeCodes))}
                assert (answer.code, answer.status) in {(c.code, c.status) for c in codes if c is not None}

    def pen(self, station: str = make.STATION, key: SigningKey = STATION_KEY) -> StationPen:
        """Return the pen of a Station."""
        did = station.replace("ak:did_core:", "did:")
        return StationPen(
            service_id=station,
            keyid=VerificationMethod(f"{did}#push"),
            key=key,
            gateway_id=GATEWAY_ID,
            gateway_url=BASE_URL,
        )

    async def apply(self, body: dict[str, Any], pen: StationPen | None = None) -> Answer:
        """Sign a handoff anew and send it."""
        return await self.send((pen or self.pen()).handoff(body, self.clock.now(), self._lifetime()))

    async def notify(self, body: dict[str, Any], key: str = "key-1", pen: StationPen | None = None) -> Answer:
        """Sign a notify anew and send it."""
        return await self.send((pen or self.pen()).notify(body, key, self.clock.now(), self._lifetime()))

    def _lifetime(self) -> int:
        """Return a lifetime not used in this second: signing is deterministic, and no two may be equal."""
        used = self.lifetimes[self.clock.now() // 1000] = self.lifetimes.get(self.clock.now() // 1000, 60) + 1
        return used


@asynccontextmanager
async def house(
    database: Database,
    *,
    settings: GatewaySettings | None = None,
    providers: Mapping[str, Provider] | None = None,
    default_app: str | None = None,
    master: Mapping[int, bytes] | None = None,
    hardened: bool = False,
) -> AsyncIterator[House]:
    """Build a Gateway that trusts two Stations."""
    chosen = settings or GatewaySettings()
    clock, entropy, telemetry = ManualClock(), SystemEntropy(), Telemetry()
    identity = Identity(
        service_id=GATEWAY_ID,
        did="did:web:push.example.com",
        trust_domain="ak:trust_domain:test",
        method_history_head="sha256:" + "0" * 64,
        version_id="1",
        base_url=BASE_URL,
        receipt_method=RECEIPT_METHOD,
    )
    versions = master or {1: MASTER}
    keys = TenantKeys(versions, max(versions))
    trust = TrustBook(database)
    doorkeeper = Doorkeeper(identity, trust, telemetry)
    applications = Applications(providers or {"com.example.app": StubProvider(StubSettings())}, default_app)
    doorbell = LocalDoorbell()
    handoffs = HandoffDesk(
        database=database,
        doorkeeper=doorkeeper,
        identity=identity,
        applications=applications,
        keys=keys,
        receipt_key=RECEIPT_KEY,
        entropy=entropy,
        telemetry=telemetry,
    )
    notifies = NotifyDesk(
        database=database,
        doorkeeper=doorkeeper,
        applications=applications,
        settings=chosen,
        keys=keys,
        entropy=entropy,
        doorbell=doorbell,
        telemetry=telemetry,
    )
    gateway = Gateway(identity, handoffs, notifies)
    system = gateway_system(gateway)
    edge = Edge((system,), telemetry, clock, entropy)
    for station, key in ((make.STATION, STATION_KEY), (make.OTHER_STATION, OTHER_KEY)):
        await database.transact(store.station_put, trusted(station, key.verify_key, hardened=hardened))
    await trust.refresh()
    yield House(database, clock, telemetry, trust, gateway, edge, system, keys, doorbell)


def trusted(
    station: str, key: VerifyKey, *, hardened: bool = False, canonical: bool = True
) -> TrustedStation:
    """Return a trust entry."""
    did = station.replace("ak:did_core:", "did:")
    return TrustedStation(
        service_id=station,
        verification_method=f"{did}#push",
        public_key=key.multibase(),
        profiles=(HARDENED,) if hardened else (),
        canonical_required=canonical,
        added_at=0,
    )
