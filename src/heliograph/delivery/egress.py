"""The guard for endpoints that users supply: what may be called, and at which checked address.

Reading an endpoint is pure and happens twice: when it is registered and at every send. Resolving happens
at every send; every address of the answer must be public, and the connection is then made to one of those
very addresses, so a name that changes its mind between the check and the connection gains nothing.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Final, Protocol, TypeAlias

from heliograph.delivery.address import LIFTED_BY_EXCEPTION, IPAddress, Refusal, why_refused
from heliograph.wire.instant import Instant
from heliograph.wire.malformed import Malformed

ENDPOINT_CHARACTERS_MAX: Final = 2_048
"""Longer than any push service's endpoint; a longer one is not an address but a payload."""

RESOLVED_ADDRESSES_MAX: Final = 16
"""A host with more addresses than this is refused rather than checked in part."""

RESOLUTION_KEPT_MS: Final = 5_000
"""How long an answer that was checked serves other sends to the same host. A connection only ever goes to a
checked address, so keeping one briefly spares the resolver and gives a rebinding name nothing."""

RESOLUTIONS_KEPT_MAX: Final = 1_024
"""Hosts whose answer is kept; the oldest makes room."""

HTTPS_PORT: Final = 443

_URL: Final = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://"
    r"(?P<authority>[A-Za-z0-9.:@_~!$&'()*+,;=%\[\]-]+)"
    r"(?P<target>(?:/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*)?(?:\?[A-Za-z0-9._~!$&'()*+,;=:@%/?-]*)?)",
    re.ASCII,
)
_BROKEN_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})", re.ASCII)
_AUTHORITY: Final = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\[\]:@]+)(?::(?P<port>[0-9]{1,5}))?", re.ASCII)
_LABELS: Final = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*",
    re.ASCII,
)
_NUMBER: Final = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*", re.ASCII)
_HOST_CHARACTERS_MAX: Final = 253
_PORT_MAX: Final = 65_535
_LOOPBACK_NAME: Final = "localhost"


@dataclass(frozen=True, slots=True)
class EgressRules:
    """What an operator allows of the endpoints that users supply. The default is the strict one.

    Attributes:
        extra_ports: Ports besides 443.
        ip_literals: Whether an endpoint may name an address instead of a host.
        allow_loopback: Whether this machine's own addresses may be called, at any port; for labs and tests.
        exceptions: Exact ``host:port`` pairs that may lie in a private network and on any port.
        hosts: If given, the only hosts that may be called: exact names, or ``*.suffix`` for every name
            below the suffix (not the suffix itself). Exceptions need not be repeated here.
    """

    extra_ports: tuple[int, ...] = ()
    ip_literals: bool = False
    allow_loopback: bool = False
    exceptions: tuple[str, ...] = ()
    hosts: tuple[str, ...] | None = None

    def excepts(self, host: str, port: int) -> bool:
        """Tell whether an operator made an exception for exactly this host and port."""
        return f"{_authority(host)}:{port}" in self.exceptions

    def lists(self, host: str) -> bool:
        """Tell whether the host is on the allow-list, or there is none."""
        if self.hosts is None:
            return True
        return any(
            host.endswith(listed[1:]) and len(host) > len(listed) - 1
            if listed.startswith("*.")
            else host == listed
            for listed in self.hosts
        )


def check_rules(rules: EgressRules) -> None:
    """Refuse rules that could never match what an operator means, when settings are read.

    Raises:
        Malformed: A port, an exception or a host of the list is not spelled as it is compared.
    """
    for index, port in enumerate(rules.extra_ports):
        if not 0 < port <= _PORT_MAX:
            raise Malformed(f"extra_ports[{index}]", f"must be a port from 1 to {_PORT_MAX}")
    for index, exception in enumerate(rules.exceptions):
        parts = _AUTHORITY.fullmatch(exception)
        host = None if parts is None else _read_host(parts["host"])
        if (
            parts is None
            or parts["port"] is None
            or not 0 < int(parts["port"]) <= _PORT_MAX
            or host is None
            or isinstance(host, Refusal)
            or exception != f"{_authority(host[0])}:{int(parts['port'])}"
        ):
            raise Malformed(
                f"exceptions[{index}]", "must be a lower-case host and a port, like ntfy.lan:8443"
            )
    for index, listed in enumerate(rules.hosts or ()):
        host = _read_host(listed.removeprefix("*."))
        if isinstance(host, Refusal) or host[0] != listed.removeprefix("*."):
            raise Malformed(f"hosts[{index}]", "must be a lower-case host name, or *. and one")


def _authority(host: str) -> str:
    """Spell a host as it stands in a URL."""
    return f"[{host}]" if ":" in host else host


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint that may be called as far as its spelling tells.

    Attributes:
        host: Lower-case name, or the canonical text of an address.
        port: Always explicit.
        literal: The address, when the host is one.
        target: Path and query as given; never empty.
    """

    host: str
    port: int
    literal: IPAddress | None
    target: str

    @property
    def origin(self) -> str:
        """The origin in its serialised form: without the default port, IPv6 in brackets (RFC 6454)."""
        host = _authority(self.host)
        return f"https://{host}" if self.port == HTTPS_PORT else f"https://{host}:{self.port}"

    @property
    def url(self) -> str:
        """The URL rebuilt from what was checked, so that no other reader can find another host in it."""
        return self.origin + self.target


def read_endpoint(text: str, rules: EgressRules) -> Endpoint | Refusal:
    """Read the URL of an endpoint that a user supplied.

    Only one spelling of each host passes: lower- or upper-case ASCII labels, or (where allowed) a dotted
    quad or bracketed IPv6 address in canonical form. Decimal, octal and hexadecimal addresses, shortened
    ones, trailing dots, percent-escapes in the host, white space, backslashes and names that are not ASCII
    are refused: readers of URLs disagree about them. A name in another script is given as ``xn--``.

    Args:
        text: The URL as it was given.
        rules: What the operator allows.

    Returns:
        The endpoint, or why it may not be called.
    """
    if len(text) > ENDPOINT_CHARACTERS_MAX or (match := _URL.fullmatch(text)) is None:
        return Refusal.NOT_A_URL
    if match["scheme"].lower() != "https":
        return Refusal.NOT_HTTPS
    if "@" in match["authority"]:
        return Refusal.USERINFO
    if _BROKEN_ESCAPE.search(match["target"]):
        return Refusal.NOT_A_URL
    parts = _AUTHORITY.fullmatch(match["authority"])
    if parts is None:
        return Refusal.HOST_SPELLING
    port = HTTPS_PORT if parts["port"] is None else int(parts["port"])
    target = match["target"] if match["target"].startswith("/") else "/" + match["target"]
    host = _read_host(parts["host"])
    if isinstance(host, Refusal):
        return host
    name, literal = host
    return _allowed(Endpoint(name, port, literal, target), rules)


def _read_host(spelled: str) -> tuple[str, IPAddress | None] | Refusal:
    """Read a host in its one canonical spelling."""
    if spelled.startswith("["):
        try:
            v6 = IPv6Address(spelled[1:-1])
        except ValueError:
            return Refusal.HOST_SPELLING
        return str(v6), v6
    if len(spelled) > _HOST_CHARACTERS_MAX or _LABELS.fullmatch(spelled) is None:
        return Refusal.HOST_SPELLING
    if _NUMBER.fullmatch(spelled.rpartition(".")[2]) is None:
        return spelled.lower(), None
    # A last label that is a number makes it an address in every URL reader, in some spelling.
    try:
        v4 = IPv4Address(spelled)
    except ValueError:
        return Refusal.HOST_SPELLING
    return str(v4), v4


def _allowed(endpoint: Endpoint, rules: EgressRules) -> Endpoint | Refusal:
    host, port, literal = endpoint.host, endpoint.port, endpoint.literal
    if not 0 < port <= _PORT_MAX:
        return Refusal.PORT
    excepted = rules.excepts(host, port)
    own_machine = rules.allow_loopback and (
        host == _LOOPBACK_NAME or (literal is not None and why_refused(literal) is Refusal.LOOPBACK)
    )
    if literal is not None and not (rules.ip_literals or excepted or own_machine):
        return Refusal.IP_LITERAL
    if literal is not None and (why := _why_address_refused(literal, rules, excepted=excepted)) is not None:
        return why
    if host == _LOOPBACK_NAME and not (own_machine or excepted):
        return Refusal.LOOPBACK
    if literal is None and "." not in host and not (own_machine or excepted):
        return Refusal.HOST_SPELLING  # a bare word means something only inside a private network
    if not (excepted or own_machine or port == HTTPS_PORT or port in rules.extra_ports):
        return Refusal.PORT
    if not (excepted or rules.lists(host)):
        return Refusal.HOST_NOT_LISTED
    return endpoint


def _why_address_refused(address: IPAddress | str, rules: EgressRules, *, excepted: bool) -> Refusal | None:
    why = why_refused(address)
    if why is Refusal.LOOPBACK and rules.allow_loopback:
        return None
    if excepted and why in LIFTED_BY_EXCEPTION:
        return None
    return why


class Resolver(Protocol):
    """Turns a host name into addresses."""

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses of a host in the order of preference, as text.

        Raises:
            OSError: There are none, or nobody could be asked.
        """
        ...


@dataclass(frozen=True, slots=True)
class Admitted:
    """An endpoint that may be called now, and the checked addresses to connect to."""

    endpoint: Endpoint
    addresses: tuple[str, ...]


Resolution: TypeAlias = tuple[str, ...] | None


class EgressGuard:
    """Decides at every send whether an endpoint may be called, and at which addresses.

    Args:
        rules: What the operator allows.
        resolver: Where names are looked up.
    """

    def __init__(self, rules: EgressRules, resolver: Resolver) -> None:
        self._rules = rules
        self._resolver = resolver
        self._kept: dict[tuple[str, int], tuple[Instant, tuple[str, ...]]] = {}
        self._asking: dict[tuple[str, int], asyncio.Task[Resolution]] = {}

    async def admit(self, url: str, now: Instant) -> Admitted | Refusal:
        """Check an endpoint again, resolve its host and check every address of the answer.

        Args:
            url: The endpoint as it is stored.
            now: The time, for answers that are kept briefly.

        Returns:
            Where to connect to, or why not. A name that does not resolve is ``UNRESOLVED``.
        """
        endpoint = read_endpoint(url, self._rules)
        if isinstance(endpoint, Refusal):
            return endpoint
        return self._judged(endpoint, self._kept_for(endpoint, now) or await self._resolved(endpoint, now))

    def admit_at_once(self, url: str, now: Instant) -> Admitted | Refusal | None:
        """As ``admit``, without waiting: None where the host has to be looked up first."""
        endpoint = read_endpoint(url, self._rules)
        if isinstance(endpoint, Refusal):
            return endpoint
        kept = self._kept_for(endpoint, now)
        return None if kept is None else self._judged(endpoint, kept)

    def _judged(self, endpoint: Endpoint, addresses: Resolution) -> Admitted | Refusal:
        if not addresses:
            return Refusal.UNRESOLVED
        if len(addresses) > RESOLVED_ADDRESSES_MAX:
            return Refusal.TOO_MANY_ADDRESSES
        excepted = self._rules.excepts(endpoint.host, endpoint.port)
        for address in addresses:
            why = _why_address_refused(address, self._rules, excepted=excepted)
            if why is not None:
                return why
        return Admitted(endpoint, addresses)

    def _kept_for(self, endpoint: Endpoint, now: Instant) -> Resolution:
        if endpoint.literal is not None:
            return (str(endpoint.literal),)
        kept = self._kept.get((endpoint.host, endpoint.port))
        return kept[1] if kept is not None and 0 <= now - kept[0] < RESOLUTION_KEPT_MS else None

    async def _resolved(self, endpoint: Endpoint, now: Instant) -> Resolution:
        key = (endpoint.host, endpoint.port)
        asking = self._asking.get(key)
        if asking is None:
            asking = asyncio.create_task(self._ask(*key))
            self._asking[key] = asking
            asking.add_done_callback(lambda _: self._asking.pop(key, None))
        # Shielded: one impatient sender must not take the answer away from the others.
        addresses = await asyncio.shield(asking)
        if addresses:
            self._kept.pop(key, None)
            while len(self._kept) >= RESOLUTIONS_KEPT_MAX:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = (now, addresses)
        return addresses

    async def _ask(self, host: str, port: int) -> Resolution:
        try:
            return tuple(await self._resolver.resolve(host, port))
        except OSError:
            return None
