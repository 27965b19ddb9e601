"""Writes of account data, signed by one of the holder's own devices (R347).

A write is an Event: which key, which revision it replaces, and the sealed value. The signature covers the
digest of the whole Event, its author and the key that signs, so a Station can order writes and cannot make
one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from heliograph.arkret.client.kept import Key
from heliograph.pushrules import document
from heliograph.pushrules.arkret.event import Account, actor_of
from heliograph.pushrules.document import DocumentRefused, Fault
from heliograph.signing.ed25519 import SIGNATURE_OCTETS, SigningKey, VerifyKey
from heliograph.wire import base64url, canonical, ids
from heliograph.wire.canonical import INTEGER_MAX, Canonical
from heliograph.wire.ids import VerificationMethod
from heliograph.wire.instant import Instant, format_instant
from heliograph.wire.malformed import Malformed
from heliograph.wire.strict_json import JsonValue

KIND: Final = "ak.account_data.set"
CONTEXT: Final = "ak.event_proof.v1"
_CLAUSE: Final = "R347"
_PROOF_KIND: Final = "detached_jws"
_HEADER: Final = base64url.encode(b'{"alg":"Ed25519"}')
_UNSIGNED: Final = ("event_id", "proofs", "unsigned")
_SUITE_SHA256: Final = b"\x01"


@dataclass(frozen=True, slots=True)
class Write:
    """One write of account data.

    Attributes:
        key: Which preference.
        expected_server_revision: The revision that it replaces; 0 for the first. The new one is one more.
        envelope: The sealed value.
    """

    key: Key
    expected_server_revision: int
    envelope: Mapping[str, Any]

    def payload(self) -> dict[str, Any]:
        """Spell the write as the payload of its Event."""
        return {
            "key": self.key.value,
            "expected_server_revision": self.expected_server_revision,
            "body": {"encrypted_payload": dict(self.envelope)},
        }


def write_event(owner: Account, write: Write, created_at: Instant) -> dict[str, Any]:
    """Make the unsigned Event of a write; an app adds what its Station asks for besides."""
    return {
        "kind": KIND,
        "actor_id": owner.members(),
        "created_at": format_instant(created_at),
        "payload": write.payload(),
    }


def sign_event(
    event: Mapping[str, Canonical],
    verification_method: VerificationMethod,
    key: SigningKey,
    created_at: Instant,
) -> dict[str, JsonValue]:
    """Sign an Event with a device key of its author.

    Args:
        event: The Event without id and proofs.
        verification_method: The name of the device key. Its controller has to be the author's principal.
        key: The private key of that name.
        created_at: When it is signed, in milliseconds.

    Returns:
        The Event with its id and its proof.

    Raises:
        ValueError: The Event has no author, or the key belongs to somebody else; our own mistake.
    """
    actor = actor_of(event.get("actor_id"))
    if not isinstance(actor, Account) or ids.service_of(verification_method) != actor.principal_id:
        raise ValueError("an Event is signed by a device of its author")
    bare: dict[str, Any] = {name: value for name, value in event.items() if name not in _UNSIGNED}
    digest = canonical.digest(bare)
    proof: dict[str, Any] = {
        "kind": _PROOF_KIND,
        "verification_method": verification_method,
        "event_digest": digest,
        "created_at": format_instant(created_at),
    }
    proof["jws"] = f"{_HEADER}..{base64url.encode(key.sign(_signing_input(bare, proof)))}"
    return {**bare, "event_id": _event_id(digest), "proofs": [proof]}


def verify_write(event: object, owner: Account, devices: Mapping[VerificationMethod, VerifyKey]) -> Write:
    """Verify that a write of account data comes from a device of its holder.

    Args:
        event: Any JSON value.
        owner: Whose account data it has to be.
        devices: The keys of the holder's devices that count now, by name. A revoked one is not among them.

    Returns:
        The write; its value still has to be opened.

    Raises:
        DocumentRefused: It is no such write, of another account, changed after it was signed, or not signed
            by one of these devices.
    """
    if not isinstance(event, Mapping) or event.get("kind") != KIND:
        raise _refused("kind", f"must be {KIND}")
    if actor_of(event.get("actor_id")) != owner:
        raise _refused("actor_id", "must be the holder of the account data")
    proof = _read_proof(event.get("proofs"))
    bare = {name: value for name, value in event.items() if name not in _UNSIGNED}
    try:
        digest = canonical.digest(bare)
        message = _signing_input(bare, proof)
    except (TypeError, ValueError, RecursionError):
        raise _refused("", "must have a canonical form") from None
    if proof["event_digest"] != digest:
        raise _refused("proofs[0].event_digest", "must be the digest of this Event")
    if event.get("event_id") != _event_id(digest):
        raise _refused("event_id", "must follow from the Event's content")
    method = proof["verification_method"]
    key = devices.get(VerificationMethod(method))
    if key is None or _controller(method) != owner.principal_id:
        raise _refused("proofs[0].verification_method", "must be a device of the holder")
    if not key.verify(message, _signature(proof["jws"])):
        raise _refused("proofs[0].jws", "must be the signature of that device")
    return _read_write(event.get("payload"))


def _refused(field: str, problem: str) -> DocumentRefused:
    return DocumentRefused(Fault.PARAM_INVALID, _CLAUSE, field, problem)


def _read_proof(value: object) -> dict[str, str]:
    proofs = document.items(value, "proofs", 1, clause=_CLAUSE)
    if not proofs:
        raise _refused("proofs", "must hold the proof of the device that wrote it")
    names = ("kind", "verification_method", "event_digest", "created_at", "jws")
    given = document.members(proofs[0], "proofs[0]", names, clause=_CLAUSE)
    proof = {
        name: document.text(given[name], f"proofs[0].{name}", ids.DID_CHARACTERS_MAX * 2, clause=_CLAUSE)
        for name in names
    }
    if proof["kind"] != _PROOF_KIND:
        raise _refused("proofs[0].kind", f"must be {_PROOF_KIND}")
    return proof


def _read_write(value: object) -> Write:
    given = document.members(value, "payload", ("key", "expected_server_revision", "body"), clause=_CLAUSE)
    revision = given["expected_server_revision"]
    if isinstance(revision, bool) or not isinstance(revision, int) or not 0 <= revision < INTEGER_MAX:
        raise DocumentRefused(
            Fault.SCHEMA_VIOLATION,
            _CLAUSE,
            "payload.expected_server_revision",
            "must be a whole number from 0 on",
        )
    body = document.members(given["body"], "payload.body", ("encrypted_payload",), clause=_CLAUSE)
    envelope = body["encrypted_payload"]
    if not isinstance(envelope, Mapping):
        raise DocumentRefused(
            Fault.SCHEMA_VIOLATION, _CLAUSE, "payload.body.encrypted_payload", "must be an object"
        )
    return Write(document.word(given["key"], "payload.key", Key, clause=_CLAUSE), revision, envelope)


def _signing_input(bare: Mapping[str, Any], proof: Mapping[str, Any]) -> bytes:
    bound = canonical.encode(
        {
            "context": CONTEXT,
            "event_digest": proof["event_digest"],
            "actor_id": bare["actor_id"],
            "verification_method": proof["verification_method"],
            "created_at": proof["created_at"],
        }
    )
    return f"{_HEADER}.{base64url.encode(bound)}".encode("ascii")


def _signature(jws: str) -> bytes:
    """Take a signature out of its JWS; octets that sign nothing when there is none."""
    if not jws.startswith(f"{_HEADER}.."):
        return b""
    try:
        return base64url.decode_exactly(jws.removeprefix(f"{_HEADER}.."), SIGNATURE_OCTETS, "jws")
    except Malformed:
        return b""


def _controller(method: str) -> str | None:
    try:
        return ids.service_of(ids.parse_verification_method(method, "verification_method"))
    except Malformed:
        return None


def _event_id(digest: str) -> str:
    return "ak:event:" + base64url.encode(_SUITE_SHA256 + bytes.fromhex(digest.removeprefix("sha256:")))
