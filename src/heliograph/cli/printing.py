"""How commands speak to people: plain lines, aligned tables, JSON on request."""

from collections.abc import Mapping, Sequence

import msgspec


def show(line: str = "") -> None:
    """Print a line at once: a person may be watching a pipe."""
    print(line, flush=True)


def table(rows: Sequence[Mapping[str, object]], columns: Sequence[str], *, json: bool) -> None:
    """Print rows under their column names, or as one JSON document a line.

    Args:
        rows: What to print.
        columns: Which members, in order.
        json: Print JSON lines instead.
    """
    if json:
        for row in rows:
            show(msgspec.json.encode({column: row[column] for column in columns}).decode())
        return
    cells = [[_text(row[column]) for column in columns] for row in rows]
    widths = [max(len(column), *(len(line[i]) for line in cells), 0) for i, column in enumerate(columns)]
    for line in ([column.upper() for column in columns], *cells):
        show("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _text(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
