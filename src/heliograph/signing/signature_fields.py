r"""The two fields of an HTTP message signature, read strictly.

``Signature-Input`` and ``Signature`` are RFC 8941 dictionaries. Here each holds exactly one member, in the
canonical spelling that RFC 8941 gives it: one space between components, none elsewhere. A signer that
spaces otherwise signs a text that another verifier would rebuild differently, so it is refused.

Nearly every request carries the parameters in one of few orders, hence a regular expression for the common
one and a loop for the rest. All expressions are linear: each alternative begins with its own character.
"""

import re
from base64 import b64decode
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final

import msgspec

SIGNATURE_INPUT_CHARACTERS_MAX: Final = 4096
"""Ten times what our own signer writes; half of the published limit of one header value."""

COMPONENTS_MAX: Final = 32
"""Three times the longest list that the scenario knows."""

PARAMETERS_MAX: Final = 16
"""RFC 9421 registers six."""

COVERED_LISTS_MAX: Final = 256
"""Parsed component lists remembered. Callers use a handful; strangers cannot make it grow."""

_LABEL: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_COMPONENT: Final = r'"@?[a-z0-9!#$%&\'*+.^_`|~-]+"'
_COVERED: Final = re.compile(rf"\((?:{_COMPONENT}(?: {_COMPONENT})*)?\)")
_NUMBER: Final = r"-?[0-9]{1,15}(?:\.[0-9]{1,3})?"
_TEXT: Final = r'"(?:[ !#-\[\]-~]|\\["\\])*"'
_TOKEN: Final = r"[A-Za-z*][A-Za-z0-9!#$%&'*+.^_`|~:/-]*"  # noqa: S105 - a token of the grammar
_BARE: Final = rf"(?:{_NUMBER}|{_TEXT}|{_TOKEN}|:[A-Za-z0-9+/=]*:|\?[01])"
_PARAMETER: Final = re.compile(rf";([a-z*][a-z0-9_.*-]*)(?:=({_BARE}))?")
_PARAMETERS: Final = re.compile(rf"(?:;[a-z*][a-z0-9_.*-]*(?:={_BARE})?)*")
# No component holds a bracket, so the first closing one ends the list.
_USUAL: Final = re.compile(
    r"([A-Za-z0-9_.-]{1,64})=((\([^()]*\))"
    r';created=([0-9]{1,15});expires=([0-9]{1,15});keyid="([ !#-\[\]-~]*)";alg="([ !#-\[\]-~]*)")'
)
_INTEGER: Final = re.compile(r"-?[0-9]{1,15}")
# 64 octets: 86 characters, the last of which carries two bits, and two of padding.
_SIGNATURE: Final = re.compile(r"([A-Za-z0-9_.-]{1,64})=:([A-Za-z0-9+/]{85}[AQgw]==):")
_SPACE: Final = " \t"


class FieldFault(StrEnum):
    """Why a field was refused; a closed set."""

    MALFORMED = "malformed"
    SEVERAL = "several"
    TWICE = "twice"


class FieldRefused(ValueError):  # noqa: N818 - a refusal
    """A field is not one member in canonical spelling.

    Attributes:
        fault: Malformed, more than one member, or a component or parameter named twice.
    """

    def __init__(self, fault: FieldFault) -> None:
        self.fault = fault
        super().__init__(f"signature field: {fault}")


@dataclass(frozen=True, slots=True)
class Covered:
    """The components that a signature covers.

    Attributes:
        names: In the signer's order, each once.
        name_set: The same, for questions of membership.
    """

    names: tuple[str, ...]
    name_set: frozenset[str]


class SignatureInput(msgspec.Struct, frozen=True):
    """What a ``Signature-Input`` says.

    Attributes:
        label: Which member of ``Signature`` it describes.
        parameters: The text after ``label=``, which is itself signed.
        covered: The components.
        created: Unix seconds; None where missing or no integer.
        expires: As ``created``.
        keyid: None where missing or no text.
        alg: As ``keyid``.
    """

    label: str
    parameters: str
    covered: Covered
    created: int | None
    expires: int | None
    keyid: str | None
    alg: str | None


def parse_signature_input(field: str) -> SignatureInput:
    """Read a ``Signature-Input`` field.

    Args:
        field: Its value; several fields of the name joined with a comma.

    Raises:
        FieldRefused: Not exactly one member, not canonically spelled, too long, or something named twice.
    """
    if len(field) > SIGNATURE_INPUT_CHARACTERS_MAX:
        raise FieldRefused(FieldFault.MALFORMED)
    text = field.strip(_SPACE)
    usual = _USUAL.fullmatch(text)
    if usual is not None:
        label, parameters, listed, created, expires, keyid, alg = usual.groups()
        return SignatureInput(
            label, parameters, parse_covered(listed), int(created), int(expires), keyid, alg
        )
    label, _, parameters = text.partition("=")
    end = parameters.find(")") + 1
    if not end or not _LABEL.fullmatch(label):
        raise FieldRefused(FieldFault.MALFORMED)
    covered, rest = parse_covered(parameters[:end]), parameters[end:]
    given = _given(rest)
    return SignatureInput(
        label,
        parameters,
        covered,
        _integer(given.get("created")),
        _integer(given.get("expires")),
        _text(given.get("keyid")),
        _text(given.get("alg")),
    )


@lru_cache(maxsize=COVERED_LISTS_MAX)
def parse_covered(listed: str) -> Covered:
    """Read a list of components, such as ``("@method" "content-digest")``.

    Raises:
        FieldRefused: Not canonically spelled, too long, or a component twice.
    """
    if not _COVERED.fullmatch(listed):
        raise FieldRefused(FieldFault.MALFORMED)
    names = tuple(name[1:-1] for name in listed[1:-1].split(" ") if name)
    name_set = frozenset(names)
    if len(names) > COMPONENTS_MAX:
        raise FieldRefused(FieldFault.MALFORMED)
    if len(name_set) != len(names):
        raise FieldRefused(FieldFault.TWICE)
    return Covered(names, name_set)


def _given(rest: str) -> dict[str, str]:
    """Read parameters in any order, with any that RFC 9421 knows or may know later."""
    read = _PARAMETERS.match(rest)
    if read is None or read.end() != len(rest):
        after = rest[read.end() :].lstrip(_SPACE) if read is not None else ""
        raise FieldRefused(FieldFault.SEVERAL if after.startswith(",") else FieldFault.MALFORMED)
    pairs: list[tuple[str, str]] = _PARAMETER.findall(rest)
    if len(pairs) > PARAMETERS_MAX:
        raise FieldRefused(FieldFault.MALFORMED)
    given = dict(pairs)
    if len(given) != len(pairs):
        raise FieldRefused(FieldFault.TWICE)
    return given


def _integer(bare: str | None) -> int | None:
    return int(bare) if bare and _INTEGER.fullmatch(bare) else None


def _text(bare: str | None) -> str | None:
    # Neither a key id nor an algorithm holds a mark that needs an escape.
    return bare[1:-1] if bare and bare[0] == '"' and "\\" not in bare else None


def parse_signature(field: str) -> tuple[str, bytes]:
    """Read a ``Signature`` field.

    Args:
        field: Its value; several fields of the name joined with a comma.

    Returns:
        The label and the 64 octets.

    Raises:
        FieldRefused: Not exactly one member, or not 64 octets in canonical padded base64.
    """
    text = field.strip(_SPACE)
    member = _SIGNATURE.fullmatch(text)
    if member is None:
        raise FieldRefused(FieldFault.SEVERAL if "," in text else FieldFault.MALFORMED)
    return member[1], b64decode(member[2])
