"""The rule language is a package of its own that touches nothing outside."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import heliograph.pushrules

PACKAGE = Path(heliograph.pushrules.__file__).parent
OUTSIDE = {
    *(
        "anyio",
        "asyncio",
        "h2",
        "http",
        "httptools",
        "nats",
        "os",
        "pathlib",
        "psycopg",
        "pyreqwest",
        "random",
    ),
    *("secrets", "shelve", "socket", "sqlite3", "ssl", "starlette", "subprocess", "tempfile", "threading"),
    *("random", "time", "urllib", "uvicorn"),
}


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


@pytest.mark.clause("M001", "M002", "M003")
def test_the_rule_language_imports_nothing_that_stores_or_speaks() -> None:
    """No database, no socket, no file, no clock; of our own rooms only how values are spelled."""
    for path in PACKAGE.rglob("*.py"):
        for name in imports(path):
            first, *rest = name.split(".")
            assert first not in OUTSIDE, (path, name)
            assert first != "heliograph" or rest[0] in {"pushrules", "wire"}, (path, name)


@pytest.mark.clause("M004", "M006", "M007", "M008")
def test_the_rule_language_has_a_module_for_each_of_its_parts() -> None:
    """The model, the predefined rules, the conditions, the globs, the evaluation."""
    modules = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.*") if path.suffix != ".pyc"}

    assert modules >= {
        "engine.py",
        "glob.py",
        "matrix/rule.py",
        "matrix/defaults.json",
        "matrix/conditions.py",
        "matrix/evaluation.py",
    }


@pytest.mark.clause("M007")
def test_no_text_of_a_user_ever_becomes_a_regular_expression() -> None:
    """Every regular expression is a constant of the module."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re."):
                assert isinstance(node.args[0], ast.Constant), (path, ast.unparse(node))
