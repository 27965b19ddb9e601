"""Certificates for servers on this machine: an authority that lives as long as the process needs it."""

import ssl
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from heliograph.wire.instant import Instant

LIFE_DAYS: Final = 7
"""A lab runs for minutes; a forgotten authority dies within the week."""

LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority of our own.

    Attributes:
        ca_pem: Its certificate, for clients to trust.
    """

    ca_pem: bytes
    _certificate: x509.Certificate = field(repr=False)
    _key: ec.EllipticCurvePrivateKey = field(repr=False)

    @classmethod
    def make(cls, now: Instant) -> Self:
        """Make an authority that is valid from an hour before now, for a week."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Heliograph lab authority")])
        certificate = (
            _started(now)
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs=True), critical=True)
            .sign(key, hashes.SHA256())
        )
        return cls(certificate.public_bytes(serialization.Encoding.PEM), certificate, key)

    def server_context(
        self,
        now: Instant,
        names: tuple[str, ...] = LOOPBACK_NAMES,
        protocols: tuple[str, ...] = ("http/1.1",),
    ) -> ssl.SSLContext:
        """Issue a certificate for the names and return the TLS settings of a server that shows it.

        Args:
            now: The time it is valid from, less an hour.
            names: Host names and addresses.
            protocols: What the server offers by ALPN.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            _started(now)
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])]))
            .issuer_name(self._certificate.subject)
            .public_key(key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(
                x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False
            )
            .sign(self._key, hashes.SHA256())
        )
        pem = certificate.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(list(protocols))
        with tempfile.TemporaryDirectory() as folder:  # the ssl module reads keys from files only
            path = Path(folder) / "server.pem"
            path.touch(mode=0o600)
            path.write_bytes(pem)
            context.load_cert_chain(path)
        return context


def _started(now: Instant) -> x509.CertificateBuilder:
    begins = datetime.fromtimestamp(now // 1_000, UTC) - timedelta(hours=1)
    return (
        x509.CertificateBuilder()
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(begins + timedelta(days=LIFE_DAYS))
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)
