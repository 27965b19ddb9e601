"""What the documents name exists: files, headings, commands, flags, settings, metrics."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from heliograph.ambient.catalogue import metrics_page
from heliograph.app.describing import describe
from heliograph.app.settings import Settings
from heliograph.cli import app

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    path for folder in (ROOT, ROOT / "docs", ROOT / "docs" / "decisions") for path in folder.glob("*.md")
)
NAMES = [str(path.relative_to(ROOT)) for path in DOCUMENTS]

PROMISED = {ROOT / "docs" / "reliability.md", ROOT / "docs" / "performance.md"}
"""Pages that README.md leads to and that are still being measured for."""


def anchors(document: str) -> set[str]:
    """Return the anchors of a document's headings."""
    headings = re.findall(r"^#+ (.*)$", document, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def code(document: str) -> Iterator[str]:
    """Yield every line of code and every piece of it in a sentence."""
    fenced = re.findall(r"^```\w*\n(.*?)^```$", document, re.DOTALL | re.MULTILINE)
    rest = re.sub(r"^```.*?^```$", "", document, flags=re.DOTALL | re.MULTILINE)
    indented = re.findall(r"^    (.*)$", rest, re.MULTILINE)
    for block in (*fenced, "\n".join(indented)):
        yield from block.replace("\\\n", " ").splitlines()
    yield from re.findall(r"`([^`\n]+)`", rest)


@pytest.mark.parametrize("name", NAMES)
def test_every_link_leads_somewhere(name: str) -> None:
    """To a file of ours and, where it names one, to a heading in it."""
    path = ROOT / name
    lost = []
    for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", link):
            continue
        file, _, anchor = link.partition("#")
        target = (path.parent / file) if file else path
        if target in PROMISED and not target.exists():
            continue
        if not target.exists() or (anchor and anchor not in anchors(target.read_text(encoding="utf-8"))):
            lost.append(link)

    assert lost == []


@pytest.mark.parametrize("name", NAMES)
def test_every_command_that_is_named_exists_with_its_flags(name: str) -> None:
    """A person who types what stands there must not be told that there is no such thing."""
    unknown = []
    for line in code((ROOT / name).read_text(encoding="utf-8")):
        for typed in commands(line):
            unknown += unknown_words(typed)

    assert unknown == []


def commands(line: str) -> Iterator[str]:
    """Yield what follows each call of the program in a line of a shell, one inside another too."""
    while inner := re.search(r"\$\([^()]*\)", line):
        yield from commands(inner[0][2:-1])
        line = line.replace(inner[0], "…")
    for part in re.split(r" *[|;>#] *", line):
        yield from re.findall(r"^heliograph ([a-z].*)$", part)


def unknown_words(typed: str) -> list[str]:
    """Return the command or the flags of a line that the command line does not know."""
    words = typed.split()
    command = app
    for at, word in enumerate(words):
        if word.startswith("-") or word not in set(command):
            if at == 0:
                return [typed]
            known = {name for argument in command.assemble_argument_collection() for name in argument.names}
            flags = [one.partition("=")[0] for one in words[at:] if one.startswith("--")]
            return [f"{typed}: {flag}" for flag in flags if flag not in known | {"--help", "--version"}]
        command = command[word]
    return []


@pytest.mark.parametrize("name", [name for name in NAMES if "decisions" not in name])
def test_every_setting_that_is_named_exists(name: str) -> None:
    """By its full path."""
    known = {setting.path for setting in describe(Settings)}
    sections = {path.partition(".")[0] for path in known if "." in path} - {"providers", "apps"}
    named = {
        piece
        for piece in re.findall(
            r"`([a-z_]+\.[a-z_]+)(?: = [^`]*)?`", (ROOT / name).read_text(encoding="utf-8")
        )
        if piece.partition(".")[0] in sections and not piece.endswith((".md", ".py", ".sql", ".toml"))
    }

    assert named - known == set()


@pytest.mark.parametrize("name", NAMES)
def test_every_metric_that_is_named_exists(name: str) -> None:
    """As the generated page lists it."""
    listed = set(re.findall(r"heliograph_\w+", metrics_page()))

    assert set(re.findall(r"\bheliograph_[a-z_]+\b", (ROOT / name).read_text(encoding="utf-8"))) <= listed


@pytest.mark.parametrize(
    ("typed", "fault"),
    [
        ("heliograph stations add x --hardened", []),
        ("heliograph nonsense", ["nonsense"]),
        ("heliograph doctor --fast", ["doctor --fast: --fast"]),
        ("heliograph keys rotate master --force", ["keys rotate master --force: --force"]),
    ],
)
def test_a_command_that_does_not_exist_is_noticed(typed: str, fault: list[str]) -> None:
    """So that silence above means something."""
    assert unknown_words(typed.removeprefix("heliograph ")) == fault
