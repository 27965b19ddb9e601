"""How much of a runner one lane, or what waits behind one gate, may fill. Pure.

Places are few, and a provider that hangs keeps each for as long as an attempt may last. A fixed share would
leave places empty when there is one tenant, and would be used up by several that flood. So the share follows
what is free: a lane may have at most ``SHARE_OF_FREE`` times as many items in progress as places are free.
One that floods alone gets two thirds of all places, two get two fifths each, and however many they are, some
places stay free for whoever comes next. (Switches share their buffers by the same rule.)
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, final

SHARE_OF_FREE: Final = 2
"""What one lane may hold for each free place. More leaves too few for others, less too many for nobody."""


@dataclass(frozen=True, slots=True)
class InProgress:
    """What a runner has in progress now.

    Attributes:
        places: How many it may have in all.
        lanes: How many of each lane.
        gates: How many behind each gate.
    """

    places: int
    lanes: Mapping[str, int] = field(default_factory=dict)
    gates: Mapping[str, int] = field(default_factory=dict)


@final
class Rooms:
    """Counts on while a claim takes.

    Args:
        progress: What is in progress before it; None where nobody counts, and every lane may take all.
    """

    __slots__ = ("_free", "_gates", "_lanes", "_places")

    def __init__(self, progress: InProgress | None) -> None:
        self._places = None if progress is None else progress.places
        self._lanes = Counter({} if progress is None else progress.lanes)
        self._gates = Counter({} if progress is None else progress.gates)
        self._free = 0 if progress is None else progress.places - sum(self._lanes.values())

    def of(self, gate: str, lane: str) -> int | None:
        """Tell how many more may be taken of a pair, as things stand; None for any number.

        Taking makes free places fewer as well: k more may be taken while held + k ≤ share * (free - k). Who
        has nothing in progress may have the last place.
        """
        if self._places is None:
            return None
        held = max(self._lanes[lane], self._gates[gate] if gate else 0)
        least = int(not held and self._free > 0)
        return max(least, (SHARE_OF_FREE * self._free - held) // (SHARE_OF_FREE + 1))

    def take(self, gate: str, lane: str) -> None:
        """Count one that was taken."""
        self._lanes[lane] += 1
        if gate:
            self._gates[gate] += 1
        self._free -= 1
