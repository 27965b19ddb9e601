"""Works out who this Gateway is from the settings and the address it listens on."""

from typing import Final
from urllib.parse import quote

from heliograph.arkret.gateway.describe import Identity
from heliograph.arkret.gateway.settings import GatewaySettings
from heliograph.wire.canonical import digest
from heliograph.wire.ids import did_core_id_of, parse_did, parse_verification_method
from heliograph.wire.malformed import Malformed

RECEIPT_FRAGMENT: Final = "push"
"""The fragment that names the service's signing key in its DID document."""


def gateway_identity(settings: GatewaySettings, listening_at: str) -> Identity:
    """Derive the identity of the Gateway role.

    Args:
        settings: The ``[gateway]`` section.
        listening_at: The origin the server listens on, for the embedded default.

    Raises:
        Malformed: The public URL or the DID is not one.
    """
    base_url = settings.public_url or listening_at
    scheme, separator, authority = base_url.partition("://")
    if not separator or scheme not in ("http", "https") or not authority or "/" in authority:
        raise Malformed("gateway.public_url", "must be an origin such as https://push.example.com")
    did = parse_did(settings.did or f"did:web:{quote(authority, safe='.-')}", "gateway.did")
    return Identity(
        service_id=did_core_id_of(did, "gateway.did"),
        did=did,
        trust_domain=settings.trust_domain,
        # A DID method without a history has one head: the document's identity itself.
        method_history_head=settings.method_history_head or digest({"did": did}),
        version_id=settings.version_id,
        base_url=base_url,
        receipt_method=parse_verification_method(f"{did}#{RECEIPT_FRAGMENT}", "gateway.did"),
    )
