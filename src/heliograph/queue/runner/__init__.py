"""The loop: claim, perform, settle."""

from heliograph.queue.pace import Pace
from heliograph.queue.runner.handler import TIMED_OUT, Handler
from heliograph.queue.runner.loop import Runner, Turn

__all__ = ["TIMED_OUT", "Handler", "Pace", "Runner", "Turn"]
