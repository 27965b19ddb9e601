"""How a provider route is sealed at rest: one key for each tenant, bound to one registration."""

from typing import Final

import msgspec

from heliograph.delivery.model import Route
from heliograph.signing import seal
from heliograph.signing.seal import TenantKeys
from heliograph.wire.secret import Secret

_PURPOSE: Final = "arkret-route"


class _Plain(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is sealed. It exists only between sealing and spending."""

    provider: str
    app: str
    push_key: str

    def __repr__(self) -> str:
        return "_Plain(…)"


def seal_route(keys: TenantKeys, tenant: str, registration_id: str, route: Route, nonce: bytes) -> bytes:
    """Seal a route so that only this tenant's key and this registration open it (R116, R117).

    Args:
        keys: The tenant keys in force.
        tenant: The source Station.
        registration_id: The registration the route belongs to; part of what is authenticated.
        route: What to seal.
        nonce: 12 fresh random octets.
    """
    plain = _Plain(provider=route.provider, app=route.app_id or "", push_key=route.push_key.reveal())
    return seal.seal(keys, tenant, _PURPOSE, (registration_id,), msgspec.json.encode(plain), nonce)


def open_route(keys: TenantKeys, tenant: str, registration_id: str, sealed: bytes) -> Route:
    """Open a sealed route at the moment of spending it.

    Raises:
        SealBroken: It was sealed for another tenant or registration, under an unknown key, or damaged.
    """
    octets = seal.open(keys, tenant, _PURPOSE, (registration_id,), sealed)
    plain = msgspec.json.decode(octets, type=_Plain)
    return Route(provider=plain.provider, push_key=Secret(plain.push_key), app_id=plain.app or None)
