"""Every setting of the Gateway role, with its unit and default."""

from typing import Annotated

import msgspec
from msgspec import Meta

from heliograph.arkret.gateway.decide import DEFAULT_GRID


class GatewaySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The ``[gateway]`` section."""

    did: Annotated[
        str,
        Meta(
            description="The DID of this Gateway, for example did:web:push.example.com. "
            "Empty: did:web of the public URL's host."
        ),
    ] = ""
    public_url: Annotated[
        str,
        Meta(
            description="The origin under which Stations reach this Gateway; signatures cover it. "
            "Empty: the address the server listens on, for trying things out on one machine."
        ),
    ] = ""
    trust_domain: Annotated[
        str, Meta(description="The typed id of the trust domain this Gateway is run in.")
    ] = "ak:trust_domain:local"
    method_history_head: Annotated[
        str, Meta(description="Digest of the newest entry of the DID's method history, as Stations pin it.")
    ] = ""
    version_id: Annotated[str, Meta(description="Version of the DID document, as Stations pin it.")] = "1"
    default_app: Annotated[
        str, Meta(description="The application that a registration without app_id belongs to. Empty: none.")
    ] = ""
    wakeup_life_s: Annotated[
        int, Meta(ge=1, le=2_419_200, description="How long a wakeup is worth delivering.")
    ] = 86_400
    call_life_s: Annotated[
        int, Meta(ge=1, le=86_400, description="How long a call invitation is worth delivering.")
    ] = 60
    collapse_window_s: Annotated[
        int,
        Meta(
            ge=1,
            le=86_400,
            description="Wakeups of one device within this window share a collapse key at the provider.",
        ),
    ] = 60
    bucket_grid: Annotated[
        tuple[str, ...], Meta(description="The closed grid of unread buckets; others are dropped.")
    ] = DEFAULT_GRID
    devices_per_second: Annotated[
        int, Meta(ge=1, description="How many devices one Station may notify per second, sustained.")
    ] = 20_000
    devices_burst: Annotated[
        int, Meta(ge=256, description="How many devices one Station may notify at once after a pause.")
    ] = 100_000
    waiting_max: Annotated[
        int,
        Meta(
            ge=1,
            description="Accepted wakeups of one Station that may wait; beyond it devices are put off.",
        ),
    ] = 2_000_000
    key_retention_h: Annotated[
        int, Meta(ge=24, le=8_760, description="How long an answered Idempotency-Key is remembered.")
    ] = 24
    trust_refresh_s: Annotated[
        int, Meta(ge=1, le=60, description="How soon an added or removed Station takes effect everywhere.")
    ] = 2
    no_fanout_kinds: Annotated[
        tuple[str, ...],
        Meta(description="Event kinds acknowledged without a push, besides the registered ones."),
    ] = ()
