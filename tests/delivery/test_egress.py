"""Endpoints that users supply: how they may be spelled, and where they may lead."""

import asyncio
from collections.abc import Sequence
from ipaddress import IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.deliveries import NOW

from heliograph.delivery.address import Refusal, why_refused
from heliograph.delivery.egress import (
    RESOLUTION_KEPT_MS,
    RESOLUTIONS_KEPT_MAX,
    RESOLVED_ADDRESSES_MAX,
    Admitted,
    EgressGuard,
    EgressRules,
    Endpoint,
    check_rules,
    read_endpoint,
)
from heliograph.delivery.resolver import SystemResolver
from heliograph.wire.malformed import Malformed

STRICT = EgressRules()

REFUSED = {
    "https://127.0.0.1": Refusal.IP_LITERAL,
    "https://127.0.0.1/x": Refusal.IP_LITERAL,
    "https://8.8.8.8/x": Refusal.IP_LITERAL,
    "https://[::ffff:10.0.0.1]/": Refusal.IP_LITERAL,
    "https://[2606:4700::1111]/": Refusal.IP_LITERAL,
    "https://0x7f.1/": Refusal.HOST_SPELLING,
    "https://0x7f000001/": Refusal.HOST_SPELLING,
    "https://2130706433/": Refusal.HOST_SPELLING,
    "https://0177.0.0.1/": Refusal.HOST_SPELLING,
    "https://127.1/": Refusal.HOST_SPELLING,
    "https://127.0.0.1./": Refusal.HOST_SPELLING,
    "https://1.2.3.4.5/": Refusal.HOST_SPELLING,
    "https://256.1.1.1/": Refusal.HOST_SPELLING,
    "https://169.254.169.254/latest/meta-data": Refusal.IP_LITERAL,
    "https://[fe80::1%25eth0]/": Refusal.HOST_SPELLING,
    "https://[::1/": Refusal.HOST_SPELLING,
    "https://[v1.x]/": Refusal.HOST_SPELLING,
    "https://user@push.example.org/": Refusal.USERINFO,
    "https://user:pass@push.example.org/": Refusal.USERINFO,
    "https://push.example.org@127.0.0.1/": Refusal.USERINFO,
    "https://push.example.org:22/": Refusal.PORT,
    "https://push.example.org:80/": Refusal.PORT,
    "https://push.example.org:0/": Refusal.PORT,
    "https://push.example.org:65536/": Refusal.PORT,
    "https://push.example.org:443443/": Refusal.HOST_SPELLING,
    "https://push.example.org:/": Refusal.HOST_SPELLING,
    "https://push.example.org./": Refusal.HOST_SPELLING,
    "https://push..example.org/": Refusal.HOST_SPELLING,
    "https://-push.example.org/": Refusal.HOST_SPELLING,
    "https://push_.example.org/": Refusal.HOST_SPELLING,
    "https://push%2eexample.org/": Refusal.HOST_SPELLING,
    "https://localhost/": Refusal.LOOPBACK,
    "https://LOCALHOST/": Refusal.LOOPBACK,
    "https://intranet/": Refusal.HOST_SPELLING,
    "https://" + "a" * 64 + ".org/": Refusal.HOST_SPELLING,
    "https://" + ".".join(["abcdefg"] * 32) + ".org/": Refusal.HOST_SPELLING,
    "http://push.example.org/": Refusal.NOT_HTTPS,
    "ftp://push.example.org/": Refusal.NOT_HTTPS,
    "file:///etc/passwd": Refusal.NOT_A_URL,
    "https:///x": Refusal.NOT_A_URL,
    "https:push.example.org": Refusal.NOT_A_URL,
    "//push.example.org/": Refusal.NOT_A_URL,
    "push.example.org": Refusal.NOT_A_URL,
    "": Refusal.NOT_A_URL,
    " https://push.example.org/": Refusal.NOT_A_URL,
    "https://push.example.org/\n": Refusal.NOT_A_URL,
    "https://push.exa\tmple.org/": Refusal.NOT_A_URL,
    "https://push.example.org\\@10.0.0.1/": Refusal.NOT_A_URL,
    "https://push.example.org/#part": Refusal.NOT_A_URL,
    "https://push.example.org/a b": Refusal.NOT_A_URL,
    "https://push.example.org/%zz": Refusal.NOT_A_URL,
    "https://push.example.org/%4": Refusal.NOT_A_URL,
    "https://bücher.example.org/": Refusal.NOT_A_URL,
    "https://127\u3002" + "0.0.1/": Refusal.NOT_A_URL,
    "https://\uff11\uff12\uff17.0.0.1/": Refusal.NOT_A_URL,
    "https://push.example.org/" + "x" * 2_048: Refusal.NOT_A_URL,
}


@pytest.mark.parametrize(("url", "why"), REFUSED.items())
def test_an_endpoint_with_a_doubtful_spelling_is_refused(url: str, why: Refusal) -> None:
    """S1: userinfo, ports, literals in every spelling, and whatever readers of URLs disagree about."""
    assert read_endpoint(url, STRICT) is why


def test_an_ordinary_endpoint_is_rebuilt_from_what_was_checked() -> None:
    """The URL that is sent to is spelled by us, host in lower case, default port left out."""
    endpoint = read_endpoint("HTTPS://Push.Example.ORG:443/wpush/v2/gAAA-_~%2F?a=b", STRICT)

    assert endpoint == Endpoint("push.example.org", 443, None, "/wpush/v2/gAAA-_~%2F?a=b")
    assert endpoint.url == "https://push.example.org/wpush/v2/gAAA-_~%2F?a=b"


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://xn--bcher-kva.example.org", "https://xn--bcher-kva.example.org"),
        ("https://push.example.org:8443/x", "https://push.example.org:8443"),
        ("https://push.example.org?x", "https://push.example.org"),
    ],
)
def test_the_origin_leaves_out_the_default_port_alone(url: str, origin: str) -> None:
    """W2: what a VAPID audience must be."""
    endpoint = read_endpoint(url, EgressRules(extra_ports=(8443,)))

    assert isinstance(endpoint, Endpoint)
    assert endpoint.origin == origin


def test_a_public_literal_passes_only_where_literals_are_allowed() -> None:
    """An allowed literal must still be a public address."""
    rules = EgressRules(ip_literals=True)

    assert isinstance(read_endpoint("https://8.8.8.8/x", rules), Endpoint)
    assert read_endpoint("https://10.0.0.1/x", rules) is Refusal.PRIVATE
    assert read_endpoint("https://[::ffff:8.8.8.8]/x", rules) is Refusal.TRANSLATED
    assert read_endpoint("https://[2606:4700::1111]/x", rules) == Endpoint(
        "2606:4700::1111", 443, IPv6Address("2606:4700::1111"), "/x"
    )


def test_loopback_at_any_port_needs_its_own_setting() -> None:
    """For labs: this machine, whatever port the system gave."""
    rules = EgressRules(allow_loopback=True)

    assert isinstance(read_endpoint("https://localhost:40123/x", rules), Endpoint)
    assert isinstance(read_endpoint("https://127.0.0.1:40123/x", rules), Endpoint)
    assert isinstance(read_endpoint("https://[::1]:40123/x", rules), Endpoint)
    assert read_endpoint("https://10.0.0.1/x", rules) is Refusal.IP_LITERAL
    assert read_endpoint("https://push.example.org:40123/x", rules) is Refusal.PORT


def test_an_exception_is_for_exactly_its_host_and_port() -> None:
    """An operator's own server in a private network, and nothing beside it."""
    rules = EgressRules(exceptions=("ntfy.lan:8443", "10.1.2.3:443", "[fd00::7]:443", "169.254.169.254:443"))

    assert isinstance(read_endpoint("https://ntfy.lan:8443/up", rules), Endpoint)
    assert isinstance(read_endpoint("https://10.1.2.3/up", rules), Endpoint)
    assert isinstance(read_endpoint("https://[FD00::7]/up", rules), Endpoint)
    assert read_endpoint("https://ntfy.lan:8444/up", rules) is Refusal.PORT
    assert read_endpoint("https://10.1.2.4/up", rules) is Refusal.IP_LITERAL
    assert read_endpoint("https://10.1.2.3:8443/up", rules) is Refusal.IP_LITERAL
    assert read_endpoint("https://169.254.169.254/up", rules) is Refusal.METADATA


@pytest.mark.parametrize(
    ("host", "listed"),
    [
        ("fcm.googleapis.com", True),
        ("web.push.apple.com", True),
        ("a.b.push.apple.com", True),
        ("push.apple.com", False),
        ("evilpush.apple.com", False),
        ("xpush.apple.com", False),
        ("fcm.googleapis.com.evil.org", False),
        ("fcmAgoogleapis.com", False),
    ],
)
def test_a_host_list_matches_exactly_or_below_a_suffix(host: str, listed: bool) -> None:
    """S9's kind: a dot is a dot, and a suffix begins at a label."""
    rules = EgressRules(hosts=("fcm.googleapis.com", "*.push.apple.com"))

    assert isinstance(read_endpoint(f"https://{host}/x", rules), Endpoint) is listed


@pytest.mark.parametrize(
    ("rules", "field"),
    [
        (EgressRules(extra_ports=(8443, 0)), "extra_ports[1]"),
        (EgressRules(extra_ports=(65_536,)), "extra_ports[0]"),
        (EgressRules(exceptions=("ntfy.lan",)), "exceptions[0]"),
        (EgressRules(exceptions=("ntfy.lan:0",)), "exceptions[0]"),
        (EgressRules(exceptions=("ntfy.lan:08443",)), "exceptions[0]"),
        (EgressRules(exceptions=("Ntfy.lan:8443",)), "exceptions[0]"),
        (EgressRules(exceptions=("https://ntfy.lan:8443",)), "exceptions[0]"),
        (EgressRules(exceptions=("fd00::7:443",)), "exceptions[0]"),
        (EgressRules(exceptions=("[FD00::7]:443",)), "exceptions[0]"),
        (EgressRules(exceptions=("10.0.0.01:443",)), "exceptions[0]"),
        (EgressRules(hosts=("push.example.org", "Push.example.org")), "hosts[1]"),
        (EgressRules(hosts=("*",)), "hosts[0]"),
        (EgressRules(hosts=("*.",)), "hosts[0]"),
    ],
)
def test_rules_that_could_never_match_are_refused_by_name(rules: EgressRules, field: str) -> None:
    """A misspelled exception must not look like one that works."""
    with pytest.raises(Malformed) as caught:
        check_rules(rules)

    assert caught.value.field == field


def test_rules_as_they_are_compared_pass() -> None:
    """Names, addresses, suffixes."""
    check_rules(STRICT)
    check_rules(
        EgressRules(
            extra_ports=(8443,),
            exceptions=("ntfy.lan:8443", "10.1.2.3:443", "[fd00::7]:443", "localhost:9"),
            hosts=("push.example.org", "*.push.apple.com"),
        )
    )


@given(st.text(max_size=60))
def test_no_text_whatever_breaks_the_reader(text: str) -> None:
    """Junk is refused, never raised, and what passes is spelled in one way only."""
    for url in (text, "https://" + text, "https://push.example.org" + text):
        endpoint = read_endpoint(url, STRICT)
        if isinstance(endpoint, Endpoint):
            assert read_endpoint(endpoint.url, STRICT) == endpoint


class Names:
    """A resolver of our own making: what it says now, and how often it was asked."""

    def __init__(self, **hosts: Sequence[str]) -> None:
        self.hosts = {name.replace("_", "."): addresses for name, addresses in hosts.items()}
        self.asked: list[tuple[str, int]] = []

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        self.asked.append((host, port))
        await asyncio.sleep(0)
        if host not in self.hosts:
            raise OSError("no such name")
        return self.hosts[host]


@pytest.mark.anyio
async def test_a_public_name_is_admitted_with_its_checked_addresses() -> None:
    """The connection goes to what was checked."""
    guard = EgressGuard(STRICT, Names(push_example_org=("8.8.8.8", "2606:4700::1111")))

    admitted = await guard.admit("https://push.example.org/x", NOW)

    assert isinstance(admitted, Admitted)
    assert admitted.addresses == ("8.8.8.8", "2606:4700::1111")


@pytest.mark.anyio
@pytest.mark.parametrize(
    "bad", ["10.0.0.1", "169.254.169.254", "::1", "fe80::1%2", "64:ff9b::a00:1", "100.64.0.1"]
)
async def test_one_bad_address_condemns_the_name(bad: str) -> None:
    """A client could connect to any of the answers, so all must be public."""
    guard = EgressGuard(STRICT, Names(push_example_org=("8.8.8.8", bad)))

    assert await guard.admit("https://push.example.org/x", NOW) is why_refused(bad)


@pytest.mark.anyio
async def test_a_name_that_turns_to_a_private_address_is_refused_at_the_next_look() -> None:
    """DNS rebinding: every send is checked; within the keeping time it goes to the checked address."""
    names = Names(push_example_org=("8.8.8.8",))
    guard = EgressGuard(STRICT, names)

    first = await guard.admit("https://push.example.org/x", NOW)
    names.hosts["push.example.org"] = ("127.0.0.1",)
    kept = await guard.admit("https://push.example.org/x", NOW + RESOLUTION_KEPT_MS - 1)
    later = await guard.admit("https://push.example.org/x", NOW + RESOLUTION_KEPT_MS)

    assert isinstance(first, Admitted)
    assert kept == first
    assert later is Refusal.LOOPBACK


@pytest.mark.anyio
async def test_a_name_without_addresses_is_unresolved_and_asked_again() -> None:
    """A failure is not kept: the next send asks anew."""
    names = Names(empty_example_org=())
    guard = EgressGuard(STRICT, names)

    for url in ("https://gone.example.org/", "https://gone.example.org/", "https://empty.example.org/"):
        assert await guard.admit(url, NOW) is Refusal.UNRESOLVED

    assert len(names.asked) == 3


@pytest.mark.anyio
async def test_a_name_with_too_many_addresses_is_refused() -> None:
    """Checked in whole or not at all."""
    guard = EgressGuard(
        STRICT, Names(push_example_org=[f"8.8.{n}.1" for n in range(RESOLVED_ADDRESSES_MAX + 1)])
    )

    assert await guard.admit("https://push.example.org/", NOW) is Refusal.TOO_MANY_ADDRESSES


@pytest.mark.anyio
async def test_sends_at_one_time_share_one_question() -> None:
    """A burst to one push service is one look-up."""
    names = Names(push_example_org=("8.8.8.8",))
    guard = EgressGuard(STRICT, names)

    admitted = await asyncio.gather(*(guard.admit(f"https://push.example.org/{n}", NOW) for n in range(50)))

    assert all(isinstance(one, Admitted) for one in admitted)
    assert names.asked == [("push.example.org", 443)]


@pytest.mark.anyio
async def test_the_answers_that_are_kept_are_bounded() -> None:
    """The oldest makes room."""

    class Anything:
        asked = 0

        async def resolve(self, host: str, port: int) -> Sequence[str]:
            self.asked += 1
            return ("8.8.8.8",)

    resolver = Anything()
    guard = EgressGuard(STRICT, resolver)
    for number in range(RESOLUTIONS_KEPT_MAX + 1):
        await guard.admit(f"https://h{number}.example.org/", NOW)
    await guard.admit("https://h1.example.org/", NOW)
    await guard.admit("https://h0.example.org/", NOW)

    assert resolver.asked == RESOLUTIONS_KEPT_MAX + 2
    assert len(guard._kept) == RESOLUTIONS_KEPT_MAX


@pytest.mark.anyio
async def test_an_exception_lifts_private_addresses_and_nothing_worse() -> None:
    """Even an excepted name never leads to metadata or to a crowd."""
    rules = EgressRules(exceptions=("ntfy.lan:443", "odd.lan:443"))
    guard = EgressGuard(rules, Names(ntfy_lan=("192.168.1.5", "fd00::5"), odd_lan=("169.254.169.254",)))

    assert isinstance(await guard.admit("https://ntfy.lan/up", NOW), Admitted)
    assert await guard.admit("https://odd.lan/up", NOW) is Refusal.METADATA


@pytest.mark.anyio
async def test_an_allowed_literal_is_not_looked_up() -> None:
    """It is its own answer, with or without waiting."""
    names = Names()
    guard = EgressGuard(EgressRules(ip_literals=True), names)

    admitted = await guard.admit("https://8.8.8.8/x", NOW)

    assert isinstance(admitted, Admitted)
    assert admitted.addresses == ("8.8.8.8",)
    assert guard.admit_at_once("https://8.8.8.8/x", NOW) == admitted
    assert guard.admit_at_once("https://push.example.org/x", NOW) is None
    assert guard.admit_at_once("https://10.0.0.1/x", NOW) is Refusal.PRIVATE
    assert names.asked == []


@pytest.mark.anyio
async def test_the_system_resolves_this_machines_own_name() -> None:
    """The real port behind the guard."""
    addresses = await SystemResolver().resolve("localhost", 443)

    assert set(addresses) <= {"127.0.0.1", "::1"}
    assert addresses
