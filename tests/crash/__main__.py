"""``python -m tests.crash``: kill the program at random instants and look for a promise that is broken."""

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from random import SystemRandom

from tests.crash.load import FULL, QUICK
from tests.crash.nursery import Nursery
from tests.crash.rounds import Report, run
from tests.postgres_server import postgres_server
from tests.secrets import watching


class Teller:
    """Prints each round, and in the end all of them together."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.found = 0
        self.late_ms = 0.0
        self._counts: dict[str, Counter[str]] = {}

    def tell(self, report: Report) -> None:
        counts = report.counts
        self._counts.setdefault(report.kind, Counter()).update(counts)
        self._counts[report.kind]["rounds"] += 1
        self.late_ms = max(self.late_ms, report.late_ms)
        self.found += len(report.violations)
        print(
            f"{report.kind:8} round {report.number:3}  seed {self.seed}  {report.seconds:4.1f} s  "
            f"accepted {counts['accepted']:3}  delivered {counts['delivered']:3}  "
            f"repeated {counts['repeated']:2}  replays {counts['replayed']:3}  "
            f"killed {'; '.join(report.killed)}",
            flush=True,
        )
        for violation in report.violations:
            print(f"BROKEN  seed {self.seed}  {report.kind} round {report.number}  {violation}", flush=True)

    def sum_up(self) -> None:
        for kind, counts in self._counts.items():
            told = ", ".join(f"{word} {counts[word]}" for word in sorted(counts))
            print(f"{kind}: {told}")
        print(f"latest request behind a confirmed end: {self.late_ms:.0f} ms; violations {self.found}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--rounds", type=int, default=200, help="in all, shared out between the databases")
    parser.add_argument("--database", choices=("sqlite", "postgres", "both"), default="both")
    parser.add_argument("--seed", type=int, default=None, help="to draw the same kills and the same load")
    parser.add_argument("--quick", action="store_true", help="less load in each round")
    return parser.parse_args()


async def _main(given: argparse.Namespace) -> int:
    seed = SystemRandom().randrange(1_000_000) if given.seed is None else given.seed
    kinds = ("sqlite", "postgres") if given.database == "both" else (given.database,)
    teller = Teller(seed)
    async with AsyncExitStack() as stack:
        leaks = stack.enter_context(watching())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="heliograph-crash-")))
        server = stack.enter_context(postgres_server()) if "postgres" in kinds else None
        nursery = await stack.enter_async_context(Nursery.open())
        async with asyncio.TaskGroup() as tasks:
            for number, kind in enumerate(kinds):
                tasks.create_task(
                    run(
                        kind,
                        (given.rounds + number) // len(kinds),
                        seed,
                        QUICK if given.quick else FULL,
                        folder=folder,
                        nursery=nursery,
                        server=server if kind == "postgres" else None,
                        tell=teller.tell,
                    )
                )
    teller.sum_up()
    for leak in leaks:
        print(f"BROKEN  seed {seed}  {leak}")
    return 1 if teller.found or leaks else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(_main(_arguments())))
