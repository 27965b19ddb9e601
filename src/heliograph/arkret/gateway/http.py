"""The Gateway's endpoints: a table of rows and no logic."""

from heliograph.arkret import errors
from heliograph.arkret.gateway import examples
from heliograph.arkret.gateway.describe import SERVICE_KIND, ServiceDescribe
from heliograph.arkret.gateway.service.gateway import (
    HANDOFF_BODY_OCTETS_MAX,
    NOTIFY_BODY_OCTETS_MAX,
    Gateway,
)
from heliograph.arkret.schema import (
    BlindNotify,
    HandoffActive,
    HandoffOutcome,
    HandoffRevoked,
    NotifyOutcome,
    VisibleNotify,
)
from heliograph.edge.operation import Field, Operation, Query
from heliograph.edge.system import EdgeCodes, System, rfc9457

APPLY = "ak.edge.push.command.apply_registration.v1"
NOTIFY = "ak.edge.push.command.notify.v1"
DESCRIBE = "ak.server.read.describe.v1"

_SIGNED = (
    errors.HTTP_SIGNATURE_REQUIRED,
    errors.HTTP_SIGNATURE_INVALID,
    errors.SIGNATURE_WINDOW_INVALID,
    errors.CAPABILITY_DENIED,
    errors.INVALID_CANONICAL_JSON,
    errors.SCHEMA_VIOLATION,
    errors.DUPLICATE_CONFLICT,
    errors.PARAM_INVALID,
    errors.TEMPORARILY_UNAVAILABLE,
)

_SIGNATURE = (
    Field("Source-Service-ID", "The did_core_id of the calling Station.", r"\Aak:did_core:[!-~]{1,512}\Z"),
    Field("Destination-Service-ID", "The did_core_id of this Gateway.", r"\Aak:did_core:[!-~]{1,512}\Z"),
    Field("Content-Digest", "SHA-256 of the exact octets of the body.", r"\Asha-256=:[A-Za-z0-9+/]{43}=:\Z"),
    Field(
        "Signature-Input",
        "The covered components, then created, expires, keyid and alg.",
        r"\A[a-z*][a-z0-9_.*-]{0,63}=\([ -~]{1,1024}\Z",
    ),
    Field(
        "Signature",
        "Ed25519, under the label of Signature-Input.",
        r"\A[a-z*][a-z0-9_.*-]{0,63}=:[A-Za-z0-9+/]{86}==:\Z",
    ),
)
_KEY = Field(
    "Idempotency-Key",
    "The name that the answer is kept under; the same for every retry of one notify.",
    r"\A[A-Za-z0-9._~-]{1,128}\Z",
)

EDGE_CODES = EdgeCodes(
    head_too_large=errors.PAYLOAD_TOO_LARGE,
    unknown_endpoint=errors.UNRECOGNIZED_ENDPOINT,
    wrong_method=errors.METHOD_NOT_ALLOWED,
    content_encoding=errors.UNSUPPORTED_CONTENT_ENCODING,
    body_too_large=errors.PAYLOAD_TOO_LARGE,
    overloaded=errors.TEMPORARILY_UNAVAILABLE,
    internal=errors.INTERNAL_ERROR,
    selector_required=errors.OPERATION_SELECTOR_REQUIRED,
    selector_unsupported=errors.UNSUPPORTED_OPERATION_VERSION,
)


def gateway_system(gateway: Gateway) -> System:
    """Return the rows that serve a Gateway below ``/_arkret/``."""
    return System(
        name="arkret",
        prefix="/_arkret/",
        codes=EDGE_CODES,
        spell=rfc9457(errors.PROBLEM_PREFIX),
        request_id_prefix="ak:request:",
        selector_header="arkret-operation",
        operations=(
            Operation(
                operation_id=DESCRIBE,
                method="GET",
                path="/_arkret/describe",
                summary="Say which role is served here, by whom, and with which profiles and bundles.",
                handle=gateway.describe,
                selector=False,
                codes=(errors.PARAM_INVALID,),
                reply_type=ServiceDescribe,
                replies=examples.DESCRIPTIONS,
                parameters=(Query("service_kind", "The role to describe.", (SERVICE_KIND,)),),
                tag="Arkret Gateway",
            ),
            Operation(
                operation_id=APPLY,
                method="POST",
                path="/_arkret/edge/push/registrations:apply",
                summary="Install a device's route or end it for ever, and answer with a signed receipt.",
                handle=gateway.handoffs.apply,
                request_type=(HandoffActive, HandoffRevoked),
                reply_type=HandoffOutcome,
                fields=_SIGNATURE,
                requests=examples.HANDOFFS,
                replies=examples.RECEIPTS,
                body_limit_octets=HANDOFF_BODY_OCTETS_MAX,
                codes=(*_SIGNED, errors.PUSH_TOKEN_INVALID),
                caller="a trusted Station, by HTTP message signature",
                tag="Arkret Gateway",
            ),
            Operation(
                operation_id=NOTIFY,
                method="POST",
                path="/_arkret/edge/push/notify",
                summary="Take over a blind wakeup for each named device, and answer one outcome for each.",
                handle=gateway.notifies.notify,
                request_type=(BlindNotify, VisibleNotify),
                reply_type=NotifyOutcome,
                fields=(*_SIGNATURE, _KEY),
                requests=examples.NOTIFIES,
                replies=examples.OUTCOMES,
                body_limit_octets=NOTIFY_BODY_OCTETS_MAX,
                codes=_SIGNED,
                caller="a trusted Station, by HTTP message signature",
                tag="Arkret Gateway",
            ),
        ),
    )
