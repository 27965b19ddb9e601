"""What a Gateway says of itself before anybody authenticates (ServiceDescribe, one document per role)."""

from dataclasses import dataclass
from typing import Final

import msgspec

from heliograph.wire.ids import DidCoreId, VerificationMethod

BLIND_WAKEUP: Final = "ak.profile.push_gateway.blind_wakeup.v1"
PUSH_GATEWAY: Final = "ak.profile.push_gateway.v1"
HARDENED: Final = "ak.profile.traffic_metadata_hardened.v1"
SERVICE_KIND: Final = "push_gateway"

_BUNDLES: Final = (
    "ak.operation_bundle.push_gateway.describe.v1",
    "ak.operation_bundle.push_gateway.http_notify.v1",
    "ak.operation_bundle.push_gateway.registration_handoff.v1",
)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who this Gateway is.

    Attributes:
        service_id: The did_core_id that signed requests name as their destination.
        did: The DID it is derived from.
        trust_domain: The typed id of the domain it is run in.
        method_history_head: Digest of the newest entry of the DID's method history.
        version_id: The version of the DID document this describes.
        base_url: The public origin, without a trailing slash.
        receipt_method: The DID URL of the key that signs receipts.
    """

    service_id: DidCoreId
    did: str
    trust_domain: str
    method_history_head: str
    version_id: str
    base_url: str
    receipt_method: VerificationMethod


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What this Gateway takes at most."""

    notify_body_octets_max: int
    notify_devices_max: int


class ServiceResolution(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The DID that the service id is derived from, and which state of it this describes."""

    did: str
    method_history_head: str
    version_id: str


class TransportBinding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the operations are served."""

    base_url: str
    extension_profile_required: None
    kind: str


class ServiceDescribe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The document of one role; lists are sorted."""

    auth_metadata: dict[str, str]
    development_mode: bool
    interop_surfaces: tuple[str, ...]
    limits: Limits
    plaintext_visibility: dict[str, str]
    protocol_version: str
    rate_limit_policy_id: str
    service_id: str
    service_kind: str
    service_resolution: ServiceResolution
    supported_features: tuple[str, ...]
    supported_operation_bundles: tuple[str, ...]
    supported_profiles: tuple[str, ...]
    transport_bindings: tuple[TransportBinding, ...]
    trust_domain: str
    verified_profiles: tuple[str, ...]


def describe(identity: Identity, *, max_devices: int, body_octets_max: int) -> ServiceDescribe:
    """Build the role-scoped document.

    It claims the blind baseline with the push gateway profile, never one without the other (R007), and the
    handoff bundle because durable installations, signed receipts, tenant isolation and terminal tombstones
    are really there (R142). It does not claim the visible profile: see docs/decisions.

    Args:
        identity: Who this Gateway is.
        max_devices: The most devices that one notify may name.
        body_octets_max: The largest body it takes.
    """
    return ServiceDescribe(
        auth_metadata={},
        development_mode=False,
        interop_surfaces=(),
        limits=Limits(notify_body_octets_max=body_octets_max, notify_devices_max=max_devices),
        plaintext_visibility={},
        protocol_version="1.0",
        rate_limit_policy_id="heliograph.per_station_devices.v1",
        service_id=identity.service_id,
        service_kind=SERVICE_KIND,
        service_resolution=ServiceResolution(
            did=identity.did,
            method_history_head=identity.method_history_head,
            version_id=identity.version_id,
        ),
        supported_features=("ak.feature.notifications.v1",),
        supported_operation_bundles=_BUNDLES,
        supported_profiles=(BLIND_WAKEUP, PUSH_GATEWAY),
        transport_bindings=(
            TransportBinding(base_url=identity.base_url, extension_profile_required=None, kind="http_json"),
        ),
        trust_domain=identity.trust_domain,
        verified_profiles=(),
    )
