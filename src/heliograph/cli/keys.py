"""``heliograph keys``: which keys there are, their public halves, and new versions of them."""

from typing import Annotated

from cyclopts import App, Parameter

from heliograph.ambient.entropy import SystemEntropy
from heliograph.ambient.keyring import KeyKind
from heliograph.app.opening import open_keyring
from heliograph.app.settings import load
from heliograph.cli.options import Config, Json
from heliograph.cli.printing import show, table
from heliograph.providers.webpush.vapid import VapidKey
from heliograph.signing.ed25519 import SigningKey
from heliograph.wire import base64url
from heliograph.wire.secret import Secret

app = App(name="keys", help="Keys: what there is, and new versions.")

_PURPOSES = {
    "master": "seals provider routes",
    "service": "signs installation receipts",
    "vapid": "identifies us to Web Push services",
}


def register(parent: App) -> None:
    """Add the commands."""
    parent.command(app)


@app.command(name="list")
def list_(*, config: Config = None, json: Json = False) -> None:
    """List every key with its versions and its public half. Missing ones are made."""
    ring = open_keyring(load(config).settings)
    rows = []
    for name in ring.names():
        for key in ring.versions(name):
            public = "-"
            if key.kind is KeyKind.ED25519:
                public = SigningKey(key.reveal()).verify_key.multibase()
            elif key.kind is KeyKind.P256:
                public = VapidKey(Secret(base64url.encode(key.reveal()))).public_key
            rows.append(
                {
                    "name": name,
                    "version": key.version,
                    "purpose": _PURPOSES.get(name, "-"),
                    "current": key is ring.current(name),
                    "public": public,
                }
            )
    table(rows, ("name", "version", "purpose", "current", "public"), json=json)


@app.command
def rotate(
    name: Annotated[str, Parameter(help="Which key: master, service or vapid.")], *, config: Config = None
) -> None:
    """Add a version to a key. Running processes use it after a restart; older versions stay readable.

    After rotating the master key, routes are sealed anew in the background; `heliograph registrations
    sealed` tells how many are left. Rotating the service key changes what Stations pinned: tell them first.
    """
    key = open_keyring(load(config).settings).rotate(name, SystemEntropy())
    show(f"{key.name} is at version {key.version} now; restart to use it")
