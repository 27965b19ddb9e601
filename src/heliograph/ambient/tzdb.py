"""The time zone data that quiet hours are judged by: IANA 2025b, out of its package, never the system's.

The text fixes the release, because two devices of one person must be quiet at the same minutes. A system's
own data is of whatever release its vendor ships, so it is never looked at, not even for a zone that is
missing here.
"""

from datetime import tzinfo
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final, final
from zoneinfo import ZoneInfo

from heliograph.wire.zones import TZDB_VERSION, ZONES

PACKAGE: Final = "tzdata"
_FIRST_LINE: Final = "# version "


class TzdbUnusable(Exception):  # noqa: N818 - the data is unusable; nothing else is wrong
    """The installed time zone data is missing or of another release."""


@final
class Tzdb:
    """The zones of the pinned release.

    Attributes:
        version: The release, always ``2025b``.
    """

    __slots__ = ("_clocks", "_folder", "version")

    def __init__(self, folder: Traversable) -> None:
        """Open a folder of compiled zones.

        Args:
            folder: It holds ``tzdata.zi``, whose first line names the release, and a file for each zone.

        Raises:
            TzdbUnusable: There is no such data, or it is of another release.
        """
        try:
            with folder.joinpath("tzdata.zi").open(encoding="utf-8") as source:
                first = source.readline().strip()
        except OSError:
            raise TzdbUnusable(
                f"there is no time zone data: install tzdata==2025.2, which is IANA {TZDB_VERSION}"
            ) from None
        if first != _FIRST_LINE + TZDB_VERSION:
            found = first.removeprefix(_FIRST_LINE)[:16]
            raise TzdbUnusable(f"quiet hours need IANA {TZDB_VERSION}, not {found!r}: install tzdata==2025.2")
        self.version: Final = TZDB_VERSION
        self._folder: Final = folder
        self._clocks: Final[dict[str, tzinfo]] = {}

    def clock(self, zone: str) -> tzinfo:
        """Return the clock of a zone; each is read once.

        Args:
            zone: A canonical name. Any other is a mistake of the caller, who has refused it already.

        Raises:
            KeyError: It is an alias or no zone of this release.
            TzdbUnusable: The package lacks its file.
        """
        if zone not in ZONES:
            raise KeyError(zone)
        found = self._clocks.get(zone)
        if found is None:
            try:
                with self._folder.joinpath(*zone.split("/")).open("rb") as compiled:
                    found = ZoneInfo.from_file(compiled, key=zone)
            except (OSError, ValueError):
                raise TzdbUnusable(f"the time zone data has no usable file for {zone}") from None
            self._clocks[zone] = found
        return found


def open_tzdb(package: str = PACKAGE) -> Tzdb:
    """Open the data of the installed package.

    Args:
        package: Another package, for those who ship the same data under another name.

    Raises:
        TzdbUnusable: The package is not installed, or its data is of another release than 2025b.
    """
    try:
        folder = resources.files(package).joinpath("zoneinfo")
    except ModuleNotFoundError:
        raise TzdbUnusable(
            f"there is no time zone data: install tzdata==2025.2, which is IANA {TZDB_VERSION}"
        ) from None
    return Tzdb(folder)
