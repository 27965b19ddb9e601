"""A process whose log may not grow: the operating system refuses a write in the middle of a commit."""

import asyncio
import json
import resource
import sys
from pathlib import Path

from heliograph.storage.database import DatabaseUnavailable
from heliograph.storage.sqlite import SqliteDatabase
from tests.storage.things import create, names, put


async def main(path: Path) -> None:
    """Write, have a commit cut off, look, write again, and print what was seen."""
    database = await SqliteDatabase.open(path)
    await database.transact(create)
    await database.transact(put, "before")
    seen: dict[str, list[str]] = {"before": await database.read(names)}
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    log = path.with_name(f"{path.name}-wal")
    resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size + 5_000, hard))
    fates = await asyncio.gather(
        *(database.transact(put, f"{number}-" + "x" * 1_000) for number in range(50)), return_exceptions=True
    )
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    seen["fates"] = sorted({type(fate).__name__ for fate in fates})
    seen["codes"] = sorted({str(fate) for fate in fates if isinstance(fate, DatabaseUnavailable)})
    seen["meanwhile"] = await database.read(names)
    await database.transact(put, "after")
    seen["after"] = await database.read(names)
    await database.close()
    print(json.dumps(seen))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
