"""Draws the states of a work item from the table that changes them, so that the picture cannot lie."""

from typing import Final

from heliograph.queue.machine import TRANSITIONS, Circumstance, Cue, State

_HEAD: Final = """# The states of a work item

Generated from `TRANSITIONS` in `heliograph/queue/machine.py` by `make docs`.

An item begins *ready*. *Done*, *failed* and *canceled* are ends. *Dead* means that we gave up without an
answer, because the attempts or the time ran out; an operator may retry what is dead and still in time.

```mermaid
stateDiagram-v2
    [*] --> ready: enqueued
"""

_TABLE: Final = """```

| State | What happens | Circumstance | Next state | Reason |
|---|---|---|---|---|
"""


def states_page() -> str:
    """Write the page: the diagram, then the table row by row."""
    arrows: dict[tuple[State, State], dict[Cue, list[Circumstance]]] = {}
    for (state, cue, circumstance), target in TRANSITIONS.items():
        arrows.setdefault((state, target.state), {}).setdefault(cue, []).append(circumstance)
    lines = [
        f"    {state} --> {following}: {', '.join(_label(cue, when) for cue, when in cues.items())}"
        for (state, following), cues in arrows.items()
    ]
    ends = [f"    {state} --> [*]" for state in (State.DONE, State.FAILED, State.CANCELED)]
    rows = [
        f"| {state} | {cue} | {circumstance} | {target.state} | {target.reason or 'its own'} |"
        for (state, cue, circumstance), target in TRANSITIONS.items()
    ]
    return _HEAD + "\n".join([*lines, *ends]) + "\n" + _TABLE + "\n".join(rows) + "\n"


def _label(cue: Cue, when: list[Circumstance]) -> str:
    """Name a cue, with the circumstances that it needs to lead this way."""
    return str(cue) if Circumstance.PLAIN in when else f"{cue} ({' or '.join(when)})"
