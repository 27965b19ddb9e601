"""Count the work that a piece of code does, in lines run, so that no clock has to be trusted."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def lines_run(work: Callable[[], object]) -> int:
    """Run something and return how many lines of the rule language it ran.

    One line may look for a text in a text, which the interpreter does in time that grows with the text. So
    lines that grow no faster than the text mean work that grows no faster than the text.
    """
    lines = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal lines
        if "pushrules" not in frame.f_code.co_filename:
            return None
        if event == "line":
            lines += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return lines
