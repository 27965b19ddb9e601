"""The stable codes of the Arkret push operations, and the refusal that carries one.

One table gives every code its status and retry advice (facts of the published registry). Callers branch
on the code in the problem's ``type``, never on the number.
"""

from typing import Final

from heliograph.edge.problem import Code, Refused

PROBLEM_PREFIX: Final = "https://arkret.org/problems/"

SCHEMA_VIOLATION: Final = Code(
    "schema_violation",
    422,
    "The body does not have the shape of this operation",
    advice="Correct the member that `detail` names.",
    clause="S01, R224, R265",
)
INVALID_CANONICAL_JSON: Final = Code(
    "invalid_canonical_json",
    400,
    "The body is not canonical JSON",
    advice="Send the RFC 8785 form, and sign those octets.",
    clause="RFC 8785",
)
PARAM_INVALID: Final = Code(
    "param_invalid",
    400,
    "A parameter is not acceptable",
    advice="Correct the header, parameter or application that `detail` names.",
    clause="the API conventions",
)
OPERATION_SELECTOR_REQUIRED: Final = Code(
    "operation_selector_required",
    400,
    "Arkret-Operation is missing",
    advice="Send the operation's name, once, and sign it.",
    clause="the API conventions",
)
UNSUPPORTED_OPERATION_VERSION: Final = Code(
    "unsupported_operation_version",
    422,
    "Arkret-Operation does not name an operation of this route",
    advice="Read `/_arkret/describe` and use a bundle that it lists.",
    clause="the API conventions",
)
UNSUPPORTED_CONTENT_ENCODING: Final = Code(
    "unsupported_content_encoding",
    415,
    "The body must not be encoded",
    advice="Send the body without a content encoding.",
    clause="the API conventions",
)
PAYLOAD_TOO_LARGE: Final = Code(
    "payload_too_large",
    413,
    "The request is larger than this service takes",
    advice="Split a notify by devices, each part under a key of its own.",
    clause="the API conventions",
)
HTTP_SIGNATURE_REQUIRED: Final = Code(
    "http_signature_required",
    401,
    "The request is not signed",
    advice="Sign it.",
    clause="RFC 9421",
)
HTTP_SIGNATURE_INVALID: Final = Code(
    "http_signature_invalid",
    401,
    "The signature does not hold",
    advice="Check the covered fields, digest, key and trust; sign every retry anew.",
    clause="RFC 9421, R106, R107",
)
SIGNATURE_WINDOW_INVALID: Final = Code(
    "signature_window_invalid",
    401,
    "The signature is outside its time window",
    advice="Set the clock; sign again with fresh `created` and `expires`.",
    clause="RFC 9421",
)
CAPABILITY_DENIED: Final = Code(
    "capability_denied",
    403,
    "The caller may not do this here",
    advice="Address the service id that `/_arkret/describe` gives.",
    clause="R107, R272",
)
UNRECOGNIZED_ENDPOINT: Final = Code(
    "unrecognized_endpoint",
    404,
    "There is no such endpoint",
    advice="Correct the path.",
    clause="the API conventions",
)
METHOD_NOT_ALLOWED: Final = Code(
    "method_not_allowed",
    405,
    "The endpoint does not take this method",
    advice="Use a method of the `Allow` header.",
    clause="the API conventions",
)
DUPLICATE_CONFLICT: Final = Code(
    "duplicate_conflict",
    409,
    "The key already stands for another request",
    advice="Never reuse a key or registration id for another body; supersede what is current.",
    clause="R124, R127, R129, R317",
)
PUSH_TOKEN_INVALID: Final = Code(
    "push_token_invalid",
    400,
    "The push key has no acceptable form",
    advice="Get a new push key from the device.",
    clause="R312",
)
TEMPORARILY_UNAVAILABLE: Final = Code(
    "temporarily_unavailable",
    503,
    "The service cannot take this now",
    retry=True,
    advice="Wait as `Retry-After` says; then sign the same body anew, under the same key.",
    clause="R299",
)
INTERNAL_ERROR: Final = Code(
    "internal_error",
    500,
    "Something is wrong on our side",
    retry=True,
    advice="Retry a few times; tell the operator the `instance`.",
    clause="the API conventions",
)

CODES: Final = (
    SCHEMA_VIOLATION,
    INVALID_CANONICAL_JSON,
    PARAM_INVALID,
    OPERATION_SELECTOR_REQUIRED,
    UNSUPPORTED_OPERATION_VERSION,
    UNSUPPORTED_CONTENT_ENCODING,
    PAYLOAD_TOO_LARGE,
    HTTP_SIGNATURE_REQUIRED,
    HTTP_SIGNATURE_INVALID,
    SIGNATURE_WINDOW_INVALID,
    CAPABILITY_DENIED,
    UNRECOGNIZED_ENDPOINT,
    METHOD_NOT_ALLOWED,
    DUPLICATE_CONFLICT,
    PUSH_TOKEN_INVALID,
    TEMPORARILY_UNAVAILABLE,
    INTERNAL_ERROR,
)
"""Every code, for the errors page and the API description."""

DEPTH_EXCEEDED: Final = "structure_depth_exceeded"
"""The registered finer reason of ``schema_violation`` for nesting beyond the limit."""


class ArkretRefused(Refused):
    """An Arkret operation was refused and changed nothing."""
