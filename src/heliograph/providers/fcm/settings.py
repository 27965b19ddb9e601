"""What an operator sets for FCM, and the checks that spare a refusal."""

import re
from typing import Final

import msgspec

from heliograph.wire.malformed import Malformed
from heliograph.wire.secret import SecretReference

URL_CHARACTERS_MAX: Final = 2_048

_PROJECT_ID: Final = re.compile(r"(?:[a-z0-9.-]{1,63}:)?[a-z][a-z0-9-]{4,28}[a-z0-9]", re.ASCII)
_PACKAGE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*(?:\.[A-Za-z][A-Za-z0-9_]*)+", re.ASCII)
_LABEL: Final = re.compile(r"[A-Za-z0-9\-_.~%]{1,50}", re.ASCII)
_HOST: Final = r"(?:(?:[A-Za-z0-9-]{1,63}\.)*[A-Za-z0-9-]{1,63}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?"
_ORIGIN: Final = re.compile(rf"https://{_HOST}", re.ASCII)
_URL: Final = re.compile(rf"https://{_HOST}(?:/[A-Za-z0-9._~/-]*)?", re.ASCII)

PACKAGE_CHARACTERS_MAX: Final = 255


class FcmSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the FCM provider.

    Attributes:
        project_id: The id of the Firebase project, as it stands in its console.
        service_account: A reference to the JSON key of a service account that may send messages, such as
            ``file:/run/secrets/firebase.json``.
        token_url: Where the service account gets its bearer tokens; another one for labs.
        send_origin: Where messages are sent; another one for labs and for proxies.
        restricted_package_name: The Android package that alone may get the messages; unset for any of the
            project.
        direct_boot_ok: Whether a device that restarted and is still locked may get them.
        analytics_label: A label for Firebase's own statistics; unset for none.
        validate_only: Let FCM judge every message and deliver none: for rehearsals.
    """

    project_id: str
    service_account: SecretReference
    token_url: str = "https://oauth2.googleapis.com/token"  # noqa: S105 - an address
    send_origin: str = "https://fcm.googleapis.com"
    restricted_package_name: str | None = None
    direct_boot_ok: bool = False
    analytics_label: str | None = None
    validate_only: bool = False


def check_settings(settings: FcmSettings) -> None:
    """Refuse settings with which FCM would refuse every message.

    Raises:
        Malformed: A value cannot be one; the error names it.
    """
    if _PROJECT_ID.fullmatch(settings.project_id) is None:
        raise Malformed(
            "project_id", "must be a project's id: 6 to 30 lower-case letters, digits and hyphens"
        )
    if len(settings.token_url) > URL_CHARACTERS_MAX or _URL.fullmatch(settings.token_url) is None:
        raise Malformed("token_url", "must be an https URL without a query")
    if _ORIGIN.fullmatch(settings.send_origin) is None:
        raise Malformed("send_origin", "must be https:// and a host, with a port if need be, and no path")
    package = settings.restricted_package_name
    if package is not None and (len(package) > PACKAGE_CHARACTERS_MAX or _PACKAGE.fullmatch(package) is None):
        raise Malformed("restricted_package_name", "must be the name of an Android package")
    label = settings.analytics_label
    if label is not None and _LABEL.fullmatch(label) is None:
        raise Malformed("analytics_label", "must be 1 to 50 letters, digits and -_.~%")
