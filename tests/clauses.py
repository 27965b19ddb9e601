"""List every requirement with the tests that prove it, and those with none.

The requirement lists lie beside the checkout; without them only the clauses named by tests are listed.
Run as ``python -m tests.clauses [--open] [--role ROLE]``.
"""

import argparse
import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
LISTS = TESTS.parent.parent / "shared" / "spec"


def marked(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield (clause, test name) for every ``pytest.mark.clause`` on a test or a class of tests."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith("clause"):
                    for argument in decorator.args:
                        if isinstance(argument, ast.Constant):
                            yield str(argument.value), node.name
        elif isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "pytestmark" for target in node.targets
        ):
            for call in ast.walk(node.value):
                if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("clause"):
                    for argument in call.args:
                        if isinstance(argument, ast.Constant):
                            yield str(argument.value), "the whole file"


def proofs() -> dict[str, list[str]]:
    """Map each clause to the tests that carry it."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(TESTS.rglob("*.py")):
        for clause, test in marked(ast.parse(path.read_text(encoding="utf-8"))):
            found[clause].append(f"{path.relative_to(TESTS.parent)}::{test}")
    return found


def main() -> None:
    """Print one line per clause and a count per list."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--open", action="store_true", help="only those that no test proves")
    parser.add_argument("--role", help="only clauses of this role or surface")
    options = parser.parse_args()
    found = proofs()
    known: set[str] = set()
    for path in sorted(LISTS.glob("*/requirements.tsv")):
        rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:]]
        rows = [row for row in rows if not options.role or options.role in re.split(r"[ ,/]+", row[3])]
        proved = [row for row in rows if row[0] in found]
        known |= {row[0] for row in rows}
        print(f"── {path.parent.name}: {len(proved)} of {len(rows)} clauses proved")
        for row in rows:
            tests = found.get(row[0], [])
            if tests and options.open:
                continue
            print(f"{row[0]} §{row[1]} [{row[3]}] {'OPEN  ' if not tests else ''}{row[4]}")
            for test in tests:
                print(f"      {test}")
    if not known:
        print("The requirement lists are not here; the clauses that tests name:")
        for clause, tests in sorted(found.items()):
            print(clause, *tests, sep="\n      ")
    elif not options.role and (stray := set(found) - known):
        print("named by tests but in no list:", *sorted(stray))


if __name__ == "__main__":
    main()
