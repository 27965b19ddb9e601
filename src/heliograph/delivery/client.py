"""The HTTP client as the carrier needs it: how it is built, how it sends, how its losses are told apart.

The client's own error texts hold URLs, which are capabilities: errors are told apart and forgotten, never
logged, chained or passed on.

Three losses must not be mixed up. *Not sent* may be repeated freely; *cut* and *timed out* may have been
taken by the provider. The client raises one type for both a failed connection and a connection that ended
under way, and only names the phase in the error's causes. So *not sent* needs that name, and whatever
cannot be placed is ambiguous: a change of words in the client would cost a needless caution, never a
second push that claims to be the first.
"""

import ssl
from datetime import timedelta
from typing import Final

from pyreqwest.client import Client, ClientBuilder
from pyreqwest.exceptions import BuilderError, PyreqwestError, RequestError, RequestTimeoutError
from pyreqwest.response import Response

from heliograph.delivery.exchange import Answer, Ask, Loss, Lost

CONNECT_MS: Final = 5_000
"""The longest wait for a connection with TLS. Shorter than an ask's usual patience, so that a host that
cannot be reached is known as unsent; where the ask's time ends first, the client cannot tell which wait it
was and the loss counts as ambiguous."""

IDLE_MS: Final = 300_000
"""How long an idle connection to an operator's provider is kept: these services want long-lived ones."""

PINNED_IDLE_MS: Final = 30_000
"""How long an idle connection to a user's endpoint is kept: short, for there are many and each is rare."""

PING_MS: Final = 3_000
"""How long an HTTP/2 connection with open streams may be silent before it is pinged, and the wait for the
pong: a peer that vanished is found before the usual ask times out."""

_CONNECT_PHASE: Final = "client error (Connect)"

_UNPROCESSED: Final = frozenset(
    {
        "stream error received: refused stream before processing any application logic",
        "connection error received: not a result of an error",
    }
)
"""What HTTP/2 proves (RFC 9113 8.7): a refused stream, and one beyond the last that an orderly GOAWAY names.
The client has then tried twice more already. A stream that the GOAWAY does not exclude and that ends with its
connection is told apart: its error is the connection's end."""


class UnsendableError(ValueError):
    """The client cannot send this ask: its URL or a header is not one. The text holds neither."""


def checked_pem(pem: bytes | None) -> bytes | None:
    """Refuse a bundle that holds no certificate, at start and not at the first send."""
    if pem is not None:
        try:
            ssl.create_default_context(cadata=pem.decode("ascii"))
        except (ssl.SSLError, UnicodeDecodeError):
            raise ValueError("the extra certificate authorities are not a PEM bundle") from None
    return pem


def build(
    extra_ca_pem: bytes | None, connect_ms: int, pin: tuple[str, str] | None, *, http2_only: bool = False
) -> Client:
    """Build a client that follows nobody: no redirects, no proxy from the environment, no cookies."""
    builder = (
        ClientBuilder()
        .user_agent("heliograph")
        .follow_redirects(enable=False)
        .referer(enable=False)
        .no_proxy()
        .default_cookie_store(enable=False)
        .gzip(enable=False)
        .brotli(enable=False)
        .zstd(enable=False)
        .deflate(enable=False)
        .http2(enable=True)
        .http2_keep_alive_interval(timedelta(milliseconds=PING_MS))
        .http2_keep_alive_timeout(timedelta(milliseconds=PING_MS))
        .connect_timeout(timedelta(milliseconds=connect_ms))
        .pool_idle_timeout(timedelta(milliseconds=IDLE_MS if pin is None else PINNED_IDLE_MS))
    )
    if extra_ca_pem is not None:
        builder = builder.add_root_certificate_pem(extra_ca_pem)
    if http2_only:
        builder = builder.http2_prior_knowledge()
    if pin is not None:
        host, address = pin
        builder = builder.https_only(enable=True).resolve(host, address, 0)
    return builder.build()


async def send(client: Client, ask: Ask, url: str, seconds: float) -> Answer | Lost:
    """Make one request and read its answer up to the ask's limit."""
    try:
        request = (
            client.request(ask.method, url)
            .headers(dict(ask.headers))
            .body_bytes(ask.body)
            .timeout(timedelta(seconds=seconds))
            .streamed_read_buffer_limit(0)
            .build_streamed()
        )
    except (BuilderError, ValueError):
        raise UnsendableError(
            "the ask's URL or a header of it cannot be sent"
        ) from None  # its text holds both
    try:
        async with request as response:
            return await _read(response, ask.body_limit)
    except BuilderError:
        raise UnsendableError("the ask's URL or a header of it cannot be sent") from None
    except RequestError as error:
        return Lost(_loss(error))


async def _read(response: Response, limit: int) -> Answer | Lost:
    """Read an answer's body up to the limit and leave the rest.

    An answer that breaks off is still an answer when its status says that the request was taken; any other
    one is cut, for what broke off may be what gives the status its meaning.
    """
    body = bytearray()
    try:
        while len(body) < limit:
            chunk = await response.body_reader.read(limit - len(body))
            if chunk is None:
                break
            body += chunk
    except RequestError as error:
        if not 200 <= response.status < 300:  # noqa: PLR2004 - the success class of HTTP
            return Lost(Loss.TIMED_OUT if isinstance(error, RequestTimeoutError) else Loss.CUT)
    headers: dict[str, str] = {}
    for name, value in response.headers.items():
        headers.setdefault(name.lower(), value)
    return Answer(response.status, headers, bytes(body[:limit]))


def _loss(error: PyreqwestError) -> Loss:
    """Tell what a failed request means. Whatever cannot be placed is ambiguous."""
    causes = (error.details.get("causes") if isinstance(error, RequestError) else None) or []
    if any(cause["message"] == _CONNECT_PHASE or cause["message"] in _UNPROCESSED for cause in causes):
        return Loss.NOT_SENT
    return Loss.TIMED_OUT if isinstance(error, RequestTimeoutError) else Loss.CUT
