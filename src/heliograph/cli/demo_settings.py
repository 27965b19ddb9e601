"""The settings that the demo runs with: loopback only, nothing kept."""

from pathlib import Path

from heliograph.app.settings import Settings, load
from heliograph.lab.apns import TOPIC, ApnsService
from heliograph.lab.fcm import PROJECT, FcmService

_SETTINGS = """
data_dir = {folder!r}

[server]
port = 0

[log]
level = "warning"
format = "console"

[egress]
allow_loopback = true
ca_file = {ca_file!r}

[providers.webpush]
subject = "mailto:operator@example.com"
hosts = []

[providers.fcm]
project_id = "{project}"
service_account = {account!r}
token_url = "{token_url}"
send_origin = "{origin}"

[providers.apns]
team_id = "{team_id}"
key_id = "{key_id}"
key = {key!r}
topic = "{topic}"
production_origin = "{apns_origin}"

[apps."com.example.chat"]
provider = "webpush"

[apps."com.example.android"]
provider = "fcm"

[apps."com.example.ios"]
provider = "apns"
"""


def demo_settings(folder: Path, ca_pem: bytes, firebase: FcmService, apple: ApnsService) -> Settings:
    """Return settings that deliver to push services on this machine.

    Args:
        folder: Where the data of this run goes.
        ca_pem: The authority of the push services' certificates.
        firebase: FCM.
        apple: APNs.
    """
    ca_file = folder / "ca.pem"
    ca_file.write_bytes(ca_pem)
    account, key = folder / "fcm.json", folder / "apns.p8"
    for secret, secret_file in ((firebase.account, account), (apple.key.pem, key)):
        secret_file.write_text(secret.reveal(), encoding="utf-8")
        secret_file.chmod(0o600)
    text = _SETTINGS.format(
        folder=str(folder / "data"),
        ca_file=str(ca_file),
        project=PROJECT,
        account=f"file:{account}",
        token_url=firebase.token_url,
        origin=firebase.origin,
        team_id=apple.key.team_id,
        key_id=apple.key.key_id,
        key=f"file:{key}",
        topic=TOPIC,
        apns_origin=apple.production_origin,
    )
    file = folder / "heliograph.toml"
    file.write_text(text.replace("'", '"'), encoding="utf-8")
    return load(file, environ={}).settings
