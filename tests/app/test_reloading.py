"""Credentials come, turn and go while a process runs; settings that could not work change nothing."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from heliograph.ambient.entropy import SystemEntropy
from heliograph.ambient.telemetry import Level, LogFormat, Telemetry
from heliograph.app.in_force import AppInForce, CredentialInForce, InForce
from heliograph.app.opening import KEYS, bind_applications, build_credentials, open_keyring
from heliograph.app.processes import Notice, is_within_reach, notices, posted
from heliograph.app.reloading import Cause, FileWatch, Reloaded, Reloader, marks_of
from heliograph.app.settings import Settings, load
from heliograph.delivery.applications import HELD_MS, Applications
from heliograph.delivery.model import Route
from heliograph.delivery.provider import Provider
from heliograph.wire import base64url
from heliograph.wire.secret import Secret
from tests.deliveries import VAPID_SCALAR
from tests.secrets import planted

pytestmark = pytest.mark.anyio

ONE = """
data_dir = "{folder}/data"
[providers.stub]
[providers.browsers]
adapter = "webpush"
subject = "mailto:operator@example.com"
vapid_key = "file:{folder}/vapid"
[apps."com.example.web"]
provider = "browsers"
[apps."com.example.app"]
provider = "stub"
"""


WORKS = InForce({"a": CredentialInForce("stub", "00")}, {"com.x": AppInForce("a", "")})


class Bench:
    """A settings file, a key file, and a reloader over them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "heliograph.toml"
        self.key = folder / "vapid"
        self.key.write_text(VAPID_SCALAR)
        self.write(ONE)
        settings = self.read()
        credentials = build_credentials(settings, open_keyring(settings))
        self.applications = Applications(bind_applications(settings, credentials))
        self.telemetry = Telemetry(Level.ERROR, LogFormat.JSON)
        self.told: list[tuple[InForce, Reloaded | None]] = []
        self.reloader = Reloader(
            read=self.read,
            settings=settings,
            credentials=credentials,
            applications=self.applications,
            telemetry=self.telemetry,
            told=lambda works, ended: self.told.append((works, ended)),
        )

    def write(self, text: str) -> None:
        self.file.write_text(text.replace("{folder}", str(self.folder)))

    def read(self) -> Settings:
        return load(self.file, {}).settings

    def provider(self, app_id: str) -> Provider | None:
        found = self.applications.resolve(app_id)
        return None if found is None else found.provider


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


async def test_a_new_credential_and_its_application_are_in_force_at_once(bench: Bench) -> None:
    """And what did not change is the very object it was, with its tokens and pauses."""
    web = bench.provider("com.example.web")
    bench.write(
        ONE + '[providers.second]\nadapter = "stub"\nurl = "http://127.0.0.1:1/"\n'
        '[apps."com.second.*"]\nprovider = "second"\n'
    )

    ended = await bench.reloader.reload(Cause.SIGNAL)

    assert ended == Reloaded(changes=("application com.second.* added", "credential second added"))
    assert bench.provider("com.second.app") is bench.reloader.credentials["second"].provider
    assert bench.provider("com.example.web") is web
    assert bench.told == [(bench.reloader.in_force, ended)]
    assert bench.telemetry.value("heliograph_settings_reloads_total", outcome="in_force") == 1


async def test_a_key_that_was_rotated_under_its_name_is_seen(bench: Bench) -> None:
    """The settings are the same to the letter; the old provider still finishes what it has begun."""
    old = bench.provider("com.example.web")
    bench.key.write_text(base64url.encode(SystemEntropy().octets(32)))

    ended = await bench.reloader.reload(Cause.FILE)

    assert ended.changes == ("credential browsers replaced",)
    assert bench.provider("com.example.web") not in (None, old)


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda bench: bench.write("[providers.stub\n"), "is not TOML"),
        (lambda bench: bench.write(ONE.replace("mailto:operator@example.com", "x")), "providers.browsers.su"),
        (lambda bench: bench.write(ONE + "[providers.x]\n"), "providers.x.adapter: must be set"),
        (lambda bench: bench.write(ONE.replace("[providers.stub]", "")), "names a provider that has no"),
        (lambda bench: bench.key.write_text(planted("half a key")), "providers.browsers.vapid_key"),
        (lambda bench: bench.key.unlink(), "names a file that cannot be read"),
        (lambda bench: bench.file.unlink(), "cannot be read"),
    ],
)
async def test_settings_that_could_not_work_change_nothing_and_are_told(
    bench: Bench, spoil: Callable[[Bench], object], problem: str
) -> None:
    """Whether the file, a section, an application or a secret is bad."""
    before, web = bench.reloader.settings, bench.provider("com.example.web")
    spoil(bench)

    ended = await bench.reloader.reload(Cause.SIGNAL)

    assert problem in ended.problem
    assert "planted" not in ended.problem
    assert bench.reloader.settings is before
    assert bench.provider("com.example.web") is web
    assert bench.telemetry.value("heliograph_settings_reloads_total", outcome="refused") == 1


async def test_whoever_keeps_count_of_a_credential_hears_when_its_past_is_over(bench: Bench) -> None:
    """What rests because a provider refused the old key need not rest longer; a failure undoes nothing."""
    heard: list[frozenset[str]] = []

    async def renewed(names: frozenset[str]) -> None:
        heard.append(names)
        raise ConnectionError

    reloader = Reloader(
        read=bench.read,
        settings=bench.reloader.settings,
        credentials=bench.reloader.credentials,
        applications=bench.applications,
        telemetry=bench.telemetry,
        renewed=renewed,
    )
    await reloader.reload(Cause.SIGNAL)
    bench.key.write_text(base64url.encode(SystemEntropy().octets(32)))
    ended = await reloader.reload(Cause.SIGNAL)

    assert heard == [frozenset({"browsers"})]
    assert ended.problem == ""


async def test_a_key_ring_that_cannot_be_used_is_told_too(bench: Bench) -> None:
    """Keys that others could read are no keys; the process goes on with those it has."""
    keys = bench.reloader.settings.keys_directory()
    next(keys.iterdir()).chmod(0o644)

    ended = await bench.reloader.reload(Cause.FILE)

    assert ended.problem
    assert bench.provider("com.example.web") is not None


async def test_a_fault_of_ours_ends_no_process(bench: Bench) -> None:
    """It is logged with its place, told without its text, and the next reload is as good as any."""

    def broken() -> Settings:
        raise RuntimeError(planted("the text of a bug"))

    reloader = Reloader(
        read=broken,
        settings=bench.reloader.settings,
        credentials=bench.reloader.credentials,
        applications=bench.applications,
        telemetry=bench.telemetry,
    )

    ended = await reloader.reload(Cause.SIGNAL)

    assert ended.problem == "a fault of ours (RuntimeError); the log says where"
    assert bench.telemetry.value("heliograph_handler_failures_total", kind="reload") == 1


async def test_other_settings_wait_for_the_next_start_and_are_named(bench: Bench) -> None:
    """Nothing is built of half old and half new settings."""
    bench.write("[server]\nport = 1\n[egress]\nip_literals = true\n")
    bench.file.write_text(ONE.replace("{folder}", str(bench.folder)) + "[server]\nport = 1\n[egress]\n")

    ended = await bench.reloader.reload(Cause.SIGNAL)

    assert ended == Reloaded(next_start=("server.port",))
    assert bench.reloader.settings.server.port == 8080


async def test_an_application_that_was_removed_holds_what_is_on_its_way(bench: Bench) -> None:
    """So does one that moved to an adapter which cannot know the device; both are told for a while."""
    route = Route("stub", Secret("any"), "com.example.app")
    assert bench.applications.provider_of(route, 1) is not None

    bench.write(ONE.replace('[apps."com.example.app"]\nprovider = "stub"', ""))
    await bench.reloader.reload(Cause.SIGNAL)
    removed = bench.applications.provider_of(route, 1_000)
    told = bench.applications.holds(1_000 + HELD_MS), bench.applications.holds(1_001 + HELD_MS)
    bench.write(ONE.replace('provider = "stub"', 'provider = "browsers"'))
    await bench.reloader.reload(Cause.SIGNAL)

    assert removed is None
    assert told == (True, False)
    assert bench.applications.provider_of(route, 1_000) is None


def test_a_change_counts_once_it_has_rested(tmp_path: Path) -> None:
    """What is still being written is no settings yet; what was acted on is not acted on again."""
    file = tmp_path / "f"
    file.write_text("a")
    watch = FileWatch(marks_of([file]))
    quiet = watch.look(marks_of([file]))
    file.write_text("ab")
    growing = watch.look(marks_of([file]))
    file.write_text("abc")
    still = watch.look(marks_of([file]))
    rested = watch.look(marks_of([file]))
    again = watch.look(marks_of([file]))

    assert [quiet, growing, still, rested, again] == [False, False, False, True, False]


def test_a_file_that_is_replaced_or_comes_and_goes_has_changed(tmp_path: Path) -> None:
    """Orchestrators swap a link; the time and the size may be those of the old file."""
    file, other = tmp_path / "f", tmp_path / "other"
    file.write_text("a")
    other.write_text("b")
    os.utime(file, (1, 1))
    os.utime(other, (1, 1))
    before = marks_of([file])
    other.replace(file)
    replaced = marks_of([file])
    file.unlink()

    assert before != replaced
    assert marks_of([file]) == {file: None}


def test_a_process_is_seen_while_it_lives_and_no_longer(tmp_path: Path) -> None:
    """What a killed one left behind is cleared away by whoever looks."""
    notice = Notice(os.getpid(), "h.toml", 1)
    with posted(tmp_path, notice) as board:
        board.tell(InForce(), Reloaded(problem="x" * 100), 2)
        board.tell(WORKS, Reloaded(changes=("credential a added",)), 3)
        board.tell(WORKS, None, 4)
        seen = notices(tmp_path)
        stranger = Notice(os.getppid(), "h.toml", 1)
        reach = is_within_reach(tmp_path, notice), is_within_reach(tmp_path, stranger)
    left = tmp_path / "run" / "1-1.json"
    left.write_text("{}")

    assert seen == [Notice(os.getpid(), "h.toml", 1, 2, 3, Reloaded(changes=("credential a added",)), WORKS)]
    assert reach == (True, False)
    assert notices(tmp_path) == []
    assert not left.exists()


def test_a_directory_that_cannot_be_written_is_no_reason_not_to_run(tmp_path: Path) -> None:
    """Then nobody beside the process sees it."""
    (tmp_path / "run").write_text("in the way")

    with posted(tmp_path, Notice(1, "", 1)) as board:
        board.tell(InForce(), Reloaded(), 2)
    assert notices(tmp_path) == []


def test_a_reload_makes_no_key_that_a_start_would_not(bench: Bench) -> None:
    """The keyring that is opened anew is the one of the start."""
    assert set(open_keyring(bench.reloader.settings).names()) == set(KEYS)
