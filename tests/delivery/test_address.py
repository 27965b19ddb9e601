"""Only addresses of single hosts on the public internet pass."""

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.delivery.address import Refusal, why_refused

REFUSED = {
    "0.0.0.0": Refusal.UNSPECIFIED,
    "0.1.2.3": Refusal.UNSPECIFIED,
    "10.0.0.0": Refusal.PRIVATE,
    "10.255.255.255": Refusal.PRIVATE,
    "100.64.0.1": Refusal.SHARED,
    "100.127.255.255": Refusal.SHARED,
    "127.0.0.1": Refusal.LOOPBACK,
    "127.255.255.254": Refusal.LOOPBACK,
    "169.254.0.1": Refusal.LINK_LOCAL,
    "169.254.169.254": Refusal.METADATA,
    "169.254.170.2": Refusal.METADATA,
    "100.100.100.200": Refusal.METADATA,
    "168.63.129.16": Refusal.METADATA,
    "192.0.0.192": Refusal.METADATA,
    "172.16.0.1": Refusal.PRIVATE,
    "172.31.255.255": Refusal.PRIVATE,
    "192.0.0.8": Refusal.RESERVED,
    "192.0.2.1": Refusal.DOCUMENTATION,
    "192.31.196.1": Refusal.RESERVED,
    "192.52.193.1": Refusal.RESERVED,
    "192.88.99.1": Refusal.TRANSLATED,
    "192.168.0.1": Refusal.PRIVATE,
    "192.175.48.1": Refusal.RESERVED,
    "198.18.0.1": Refusal.BENCHMARKING,
    "198.19.255.255": Refusal.BENCHMARKING,
    "198.51.100.7": Refusal.DOCUMENTATION,
    "203.0.113.7": Refusal.DOCUMENTATION,
    "224.0.0.1": Refusal.MULTICAST,
    "239.255.255.255": Refusal.MULTICAST,
    "240.0.0.1": Refusal.RESERVED,
    "255.255.255.255": Refusal.RESERVED,
    "::": Refusal.UNSPECIFIED,
    "::1": Refusal.LOOPBACK,
    "::ffff:10.0.0.1": Refusal.TRANSLATED,
    "::ffff:8.8.8.8": Refusal.TRANSLATED,
    "::ffff:0:8.8.8.8": Refusal.TRANSLATED,
    "::8.8.8.8": Refusal.TRANSLATED,
    "64:ff9b::a00:1": Refusal.TRANSLATED,
    "64:ff9b::808:808": Refusal.TRANSLATED,
    "64:ff9b:1::a00:1": Refusal.TRANSLATED,
    "100::1": Refusal.RESERVED,
    "2001::1": Refusal.TRANSLATED,
    "2001:0:4136:e378:8000:63bf:3fff:fdd2": Refusal.TRANSLATED,
    "2001:2::1": Refusal.BENCHMARKING,
    "2001:10::1": Refusal.RESERVED,
    "2001:20::1": Refusal.RESERVED,
    "2001:db8::1": Refusal.DOCUMENTATION,
    "2002:a00:1::": Refusal.TRANSLATED,
    "2002:808:808::1": Refusal.TRANSLATED,
    "2620:4f:8000::1": Refusal.RESERVED,
    "2a00:1450::5efe:a00:1": Refusal.TRANSLATED,
    "2a00:1450::200:5efe:a00:1": Refusal.TRANSLATED,
    "3ffe::1": Refusal.RESERVED,
    "3fff::1": Refusal.DOCUMENTATION,
    "5f00::1": Refusal.RESERVED,
    "4000::1": Refusal.RESERVED,
    "fc00::1": Refusal.PRIVATE,
    "fd12:3456:789a::1": Refusal.PRIVATE,
    "fd00:ec2::254": Refusal.METADATA,
    "fe80::1": Refusal.LINK_LOCAL,
    "fec0::": Refusal.PRIVATE,
    "fec0::1": Refusal.PRIVATE,
    "ff02::1": Refusal.MULTICAST,
    "fe80::1%eth0": Refusal.SCOPED,
    "2a00:1450::1%1": Refusal.SCOPED,
    "0x7f.1": Refusal.HOST_SPELLING,
    "0177.0.0.1": Refusal.HOST_SPELLING,
    "2130706433": Refusal.HOST_SPELLING,
    "127.1": Refusal.HOST_SPELLING,
    "127.0.0.1.": Refusal.HOST_SPELLING,
    " 8.8.8.8": Refusal.HOST_SPELLING,
    "8.8.8.8\n": Refusal.HOST_SPELLING,
    "": Refusal.HOST_SPELLING,
}

PUBLIC = (
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2606:4700::1111",
    "2a00:1450:4001:800::200a",
    "2003::1",
    "2400:cb00:2048:1::c629:d7a2",
)


@pytest.mark.parametrize(("address", "why"), REFUSED.items())
def test_an_address_that_is_no_public_host_is_refused(address: str, why: Refusal) -> None:
    """S1 and S3: every range that is not the public internet, and every spelling that is no address."""
    assert why_refused(address) is why


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_passes(address: str) -> None:
    """The neighbours of every refused range are still reachable."""
    assert why_refused(address) is None


def test_a_scope_is_refused_on_an_address_too() -> None:
    """Not only in a text."""
    assert why_refused(IPv6Address("2a00:1450::1%1")) is Refusal.SCOPED


@given(st.ip_addresses())
def test_whatever_the_standard_library_calls_private_is_refused(address: IPv4Address | IPv6Address) -> None:
    """A second reading of the same registries never lets through more than ours refuses."""
    if not address.is_global or address.is_multicast or address.is_reserved:
        assert why_refused(address) is not None


@given(st.ip_addresses(v=4))
def test_no_ipv6_form_of_an_ipv4_address_passes(inner: IPv4Address) -> None:
    """Mapped, compatible, translated and tunnelled forms are refused whatever they carry."""
    carried = int(inner)
    forms = (
        0xFFFF << 32 | carried,
        carried,
        int(ip_address("64:ff9b::")) | carried,
        int(ip_address("64:ff9b:1::")) | carried,
        int(ip_address("2002::")) | carried << 80,
        int(ip_address("2001::")) | (carried ^ 0xFFFFFFFF),
        int(ip_address("2a00:1450::5efe:0:0")) | carried,
    )

    assert all(why_refused(IPv6Address(form)) is not None for form in forms)
