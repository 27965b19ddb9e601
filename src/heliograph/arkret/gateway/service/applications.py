"""The applications that an operator configured, and the provider each delivers through."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from heliograph.delivery.provider import Provider


@dataclass(frozen=True, slots=True)
class Application:
    """An application id and the provider credential it delivers through."""

    app_id: str
    provider: Provider


@final
class Applications:
    """Finds an application by exact id: no pattern, so one id can never stand for another (S9)."""

    def __init__(self, providers: Mapping[str, Provider], default_app: str | None = None) -> None:
        self._known = {app_id: Application(app_id, provider) for app_id, provider in providers.items()}
        self._default = default_app

    def resolve(self, app_id: str | None) -> Application | None:
        """Return the application that a registration names, or the default where it names none."""
        wanted = self._default if app_id is None else app_id
        return None if wanted is None else self._known.get(wanted)

    def exists(self, app_id: str) -> bool:
        """Tell whether an application is configured now."""
        return app_id in self._known
