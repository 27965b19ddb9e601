"""The settings that the demo runs with: loopback only, nothing kept."""

from pathlib import Path

from heliograph.app.settings import Settings, load

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

[apps."com.example.chat"]
provider = "webpush"
"""


def demo_settings(folder: Path, ca_pem: bytes) -> Settings:
    """Return settings that deliver to a push service on this machine.

    Args:
        folder: Where the data of this run goes.
        ca_pem: The authority of the push service's certificate.
    """
    ca_file = folder / "ca.pem"
    ca_file.write_bytes(ca_pem)
    file = folder / "heliograph.toml"
    file.write_text(
        _SETTINGS.format(folder=str(folder / "data"), ca_file=str(ca_file)).replace("'", '"'),
        encoding="utf-8",
    )
    return load(file, environ={}).settings
