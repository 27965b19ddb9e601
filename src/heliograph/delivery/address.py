"""Which network addresses a push may be sent to. Pure.

A device names the address that its pushes go to, so without a guard anyone who can register a device can
make us knock on doors inside our own network. Only addresses that the public internet routes to a single
host pass. Ranges that carry another address inside (mapped, translated, tunnelled) are refused whole:
unpacking them would mean trusting that every router on the way unpacks them alike.
"""

from enum import StrEnum
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final, TypeAlias

IPAddress: TypeAlias = IPv4Address | IPv6Address


class Refusal(StrEnum):
    """Why the guard refuses an endpoint or an address; stable words, safe to log and to send."""

    NOT_A_URL = "not_a_url"
    NOT_HTTPS = "not_https"
    USERINFO = "userinfo"
    HOST_SPELLING = "host_spelling"
    HOST_NOT_LISTED = "host_not_listed"
    IP_LITERAL = "ip_literal"
    PORT = "port"
    UNRESOLVED = "unresolved"
    TOO_MANY_ADDRESSES = "too_many_addresses"
    SCOPED = "scoped"
    UNSPECIFIED = "unspecified"
    LOOPBACK = "loopback"
    PRIVATE = "private"
    SHARED = "shared"
    LINK_LOCAL = "link_local"
    METADATA = "metadata"
    TRANSLATED = "translated"
    DOCUMENTATION = "documentation"
    BENCHMARKING = "benchmarking"
    MULTICAST = "multicast"
    RESERVED = "reserved"


LIFTED_BY_EXCEPTION: Final = frozenset({Refusal.LOOPBACK, Refusal.PRIVATE, Refusal.SHARED})
"""What an operator's exact host:port exception lifts: addresses of networks an operator may own. Link-local
and metadata addresses, and those that are no single host, stay refused even then."""

JUDGED_KEPT_MAX: Final = 4_096
"""Texts whose judgement is remembered: a push service has few addresses and is asked often."""

_METADATA: Final = frozenset(
    {
        ip_address("169.254.169.254"),  # most clouds
        ip_address("169.254.170.2"),  # container credentials
        ip_address("169.254.169.123"),  # a cloud's clock
        ip_address("100.100.100.200"),  # a cloud that keeps its metadata in shared space
        ip_address("168.63.129.16"),  # a cloud's platform agent, on an otherwise public address
        ip_address("192.0.0.192"),  # a cloud that keeps its metadata in the protocol range
        ip_address("fd00:ec2::254"),
        ip_address("fd20:ce::254"),
    }
)

_V4: Final = tuple(
    (IPv4Network(network), refusal)
    for network, refusal in (
        ("0.0.0.0/8", Refusal.UNSPECIFIED),
        ("10.0.0.0/8", Refusal.PRIVATE),
        ("100.64.0.0/10", Refusal.SHARED),
        ("127.0.0.0/8", Refusal.LOOPBACK),
        ("169.254.0.0/16", Refusal.LINK_LOCAL),
        ("172.16.0.0/12", Refusal.PRIVATE),
        ("192.0.0.0/24", Refusal.RESERVED),
        ("192.0.2.0/24", Refusal.DOCUMENTATION),
        ("192.31.196.0/24", Refusal.RESERVED),  # AS112
        ("192.52.193.0/24", Refusal.RESERVED),  # AMT relays
        ("192.88.99.0/24", Refusal.TRANSLATED),  # 6to4 relays
        ("192.168.0.0/16", Refusal.PRIVATE),
        ("192.175.48.0/24", Refusal.RESERVED),  # AS112
        ("198.18.0.0/15", Refusal.BENCHMARKING),
        ("198.51.100.0/24", Refusal.DOCUMENTATION),
        ("203.0.113.0/24", Refusal.DOCUMENTATION),
        ("224.0.0.0/4", Refusal.MULTICAST),
        ("240.0.0.0/4", Refusal.RESERVED),
    )
)

_V6: Final = tuple(
    (IPv6Network(network), refusal)
    for network, refusal in (
        ("::/128", Refusal.UNSPECIFIED),
        ("::1/128", Refusal.LOOPBACK),
        ("::ffff:0:0/96", Refusal.TRANSLATED),  # IPv4-mapped
        ("::ffff:0:0:0/96", Refusal.TRANSLATED),  # IPv4-translated
        ("::/96", Refusal.TRANSLATED),  # IPv4-compatible
        ("64:ff9b::/96", Refusal.TRANSLATED),  # NAT64
        ("64:ff9b:1::/48", Refusal.TRANSLATED),  # NAT64, local use
        ("100::/64", Refusal.RESERVED),  # discard
        ("100:0:0:1::/64", Refusal.RESERVED),
        ("2001::/32", Refusal.TRANSLATED),  # Teredo
        ("2001:2::/48", Refusal.BENCHMARKING),
        ("2001:db8::/32", Refusal.DOCUMENTATION),
        ("2001::/23", Refusal.RESERVED),  # protocol assignments, ORCHID
        ("2002::/16", Refusal.TRANSLATED),  # 6to4
        ("2620:4f:8000::/48", Refusal.RESERVED),  # AS112
        ("3ffe::/16", Refusal.RESERVED),  # the former 6bone
        ("3fff::/20", Refusal.DOCUMENTATION),
        ("fc00::/7", Refusal.PRIVATE),  # unique local
        ("fe80::/10", Refusal.LINK_LOCAL),
        ("fec0::/10", Refusal.PRIVATE),  # site-local
        ("ff00::/8", Refusal.MULTICAST),
    )
)
_V6_GLOBAL: Final = IPv6Network("2000::/3")
"""The only part of IPv6 from which global unicast addresses are handed out."""

_ISATAP: Final = frozenset({b"\x00\x00\x5e\xfe", b"\x02\x00\x5e\xfe"})
"""The interface identifiers that carry an IPv4 address behind any prefix (RFC 5214)."""


@lru_cache(maxsize=JUDGED_KEPT_MAX)
def why_refused(address: str | IPAddress) -> Refusal | None:
    """Tell why an address is not one of a single host on the public internet.

    Args:
        address: An address, or its canonical text form. A text that is no address, such as ``0x7f.1`` or
            ``127.1``, is refused as badly spelled; a scope id is refused whatever it scopes.

    Returns:
        The reason, or None for a public address.
    """
    if isinstance(address, str):
        if "%" in address:
            return Refusal.SCOPED
        try:
            address = ip_address(address)
        except ValueError:
            return Refusal.HOST_SPELLING
    if address in _METADATA:
        return Refusal.METADATA
    if isinstance(address, IPv4Address):
        return next((refusal for network, refusal in _V4 if address in network), None)
    return _why_v6_refused(address)


def _why_v6_refused(address: IPv6Address) -> Refusal | None:
    if address.scope_id is not None:
        return Refusal.SCOPED
    for network, refusal in _V6:
        if address in network:
            return refusal
    if address not in _V6_GLOBAL:
        return Refusal.RESERVED
    if address.packed[8:12] in _ISATAP:
        return Refusal.TRANSLATED
    return None
