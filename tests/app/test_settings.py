"""Settings are typed, named in full when wrong, and never hold a secret."""

from pathlib import Path

import pytest

from heliograph.app import reading
from heliograph.app.describing import describe
from heliograph.app.settings import FILE_VARIABLE, LogLevel, Settings, load, secret_of
from heliograph.wire.malformed import Malformed
from tests.secrets import inspect, planted


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    """A settings file with two sections."""
    file = tmp_path / "heliograph.toml"
    file.write_text('[server]\nport = 9000\n[log]\nlevel = "debug"\n[egress]\nextra_ports = [8443]\n')
    return file


def test_a_first_start_needs_no_settings() -> None:
    """Every setting has a default, and the database has a place."""
    settings = load(environ={}).settings

    assert settings.server.port == 8080
    assert settings.database_url() == "sqlite:///heliograph-data/heliograph.sqlite3"
    assert settings.keys_directory() == Path("heliograph-data/keys")
    assert settings.providers == {}


def test_the_environment_is_stronger_than_the_command_line_and_that_than_the_file(toml: Path) -> None:
    """And each value knows where it came from."""
    loaded = load(
        toml,
        {"HELIOGRAPH__SERVER__HOST": "::1", "HELIOGRAPH__LOG__LEVEL": "error", "HOME": "/"},
        {"log.level": "warning", "worker.batch": "7"},
    )

    effective = {path: (value, source) for path, value, source in loaded.effective()}
    assert loaded.settings.log.level is LogLevel.ERROR
    assert effective["server.port"] == ("9000", "heliograph.toml")
    assert effective["server.host"] == ('"::1"', "HELIOGRAPH__SERVER__HOST")
    assert effective["log.level"] == ('"error"', "HELIOGRAPH__LOG__LEVEL")
    assert effective["worker.batch"] == ("7", "command line")
    assert effective["worker.lease_ms"] == ("60000", "default")


def test_the_environment_may_name_the_file(toml: Path) -> None:
    """For containers, which have no command line of their own."""
    assert load(environ={FILE_VARIABLE: str(toml)}).settings.server.port == 9000


@pytest.mark.parametrize(
    ("variable", "text", "path", "value"),
    [
        ("HELIOGRAPH__EGRESS__EXTRA_PORTS", "[1, 2]", "egress.extra_ports", "[1, 2]"),
        ("HELIOGRAPH__EGRESS__IP_LITERALS", "true", "egress.ip_literals", "true"),
        ("HELIOGRAPH__SERVER__SOCKET", "/run/h.sock", "server.socket", '"/run/h.sock"'),
        ("HELIOGRAPH__GATEWAY__PUBLIC_URL", "https://a.example", "gateway.public_url", '"https://a.example"'),
        ("HELIOGRAPH__PROVIDERS__STUB__URL", "http://b.example", "providers.stub.url", '"http://b.example"'),
        ("HELIOGRAPH__PROVIDERS__STUB__URL", "5", "providers.stub.url", '"5"'),
        ("HELIOGRAPH__DATA_DIR", "/var/lib/h", "data_dir", '"/var/lib/h"'),
    ],
)
def test_the_environment_is_read_by_the_type_of_the_setting(
    variable: str, text: str, path: str, value: str
) -> None:
    """Texts as they are, everything else as TOML spells it."""
    effective = {at: shown for at, shown, _ in load(environ={variable: text}).effective()}

    assert effective[path] == value


@pytest.mark.parametrize(
    ("document", "error"),
    [
        ("[servr]\nport = 1", "servr: is not a setting; did you mean server?"),
        ("[server]\nprot = 1", "server.prot: is not a setting; did you mean port?"),
        (
            "[providers.webpsh]\nsubject = 'x'",
            "providers.webpsh.adapter: must be set, for webpsh is no adapter; did you mean webpush?",
        ),
        ("server = 1", "server: is a section, not a value"),
        ("[server]\nport = 'a'", "server.port: Expected `int`, got `str`"),
        ("[server]\nport = true", "server.port: Expected `int`, got `bool`"),
        ("[server]\nport = 65536", "server.port: Expected `int` <= 65535"),
        ("[server]\nsocket = 5", "server.socket: must be a text"),
        ("[egress]\nextra_ports = [443, 'x']", "egress.extra_ports[1]: Expected `int`, got `str`"),
        ("[log]\nlevel = 'loud'", "log.level: must be one of debug, info, warning, error"),
        ("[providers.webpush]\nhosts = []", "providers.webpush: Object missing required field `subject`"),
        ("[database]\nurl = 'mysql://x/y'", "database.url: must begin with sqlite:/// or postgresql://"),
        ("[database]\nurl = 'sqlite://x'", "database.url: must name a file after sqlite:///"),
    ],
)
def test_a_wrong_setting_is_named_in_full(tmp_path: Path, document: str, error: str) -> None:
    """The path, and what it must be; never a traceback."""
    file = tmp_path / "h.toml"
    file.write_text(document)

    with pytest.raises(Malformed) as caught:
        load(file, {})
    assert str(caught.value) == error


def test_a_file_that_is_not_toml_says_where() -> None:
    """Names the file and the line."""
    with pytest.raises(Malformed, match=r"absent\.toml: cannot be read"):
        load(Path("absent.toml"), {})


def test_a_broken_file_says_which_line(tmp_path: Path) -> None:
    """So that it can be mended."""
    file = tmp_path / "h.toml"
    file.write_text("[server]\nport = \n")

    with pytest.raises(Malformed, match="line 2"):
        load(file, {})


@pytest.mark.parametrize(
    ("variable", "problem"),
    [
        ("HELIOGRAPH__SERVER__PROT", "did you mean port"),
        ("HELIOGRAPH__SERVER", "names a section"),
        ("HELIOGRAPH__DATA_DIR__X", "goes below data_dir"),
        ("HELIOGRAPH__", "is not a setting"),
        ("HELIOGRAPH__SERVER__PORT", "TOML value"),
    ],
)
def test_a_wrong_variable_is_named(variable: str, problem: str) -> None:
    """As for the file."""
    with pytest.raises(Malformed, match=f"{variable}: .*{problem}"):
        load(environ={variable: "= nonsense"})


def test_a_secret_is_referred_to_and_never_shown(tmp_path: Path) -> None:
    """By file or by variable; what doctor prints shows neither."""
    marker = planted("database password")
    file = tmp_path / "password"
    file.write_text(marker + "\n")

    by_file = load(environ={"HELIOGRAPH__DATABASE__PASSWORD": f"file:{file}"})
    by_name = load(environ={"HELIOGRAPH__DATABASE__PASSWORD": "env:DB", "DB": marker})

    for loaded in (by_file, by_name):
        password = loaded.settings.database.password
        assert password is not None
        assert password.reveal() == marker
        inspect(repr(loaded.settings))
        inspect(str(list(loaded.effective())))
        assert ("database.password", "‹secret›", "HELIOGRAPH__DATABASE__PASSWORD") in list(loaded.effective())


@pytest.mark.parametrize(
    "environ",
    [
        {"HELIOGRAPH__DATABASE__PASSWORD": planted("pasted password")},
        {"HELIOGRAPH__DATABASE__URL": f"postgresql://u:{planted('url password')}@h/n"},
        {"HELIOGRAPH__DATABASE__URL": f"postgresql://h/n?password={planted('query password')}"},
        {
            "HELIOGRAPH__PROVIDERS__WEBPUSH__VAPID_KEY": planted("pasted key"),
            "HELIOGRAPH__PROVIDERS__WEBPUSH__SUBJECT": "mailto:a@b.org",
        },
    ],
)
def test_a_secret_pasted_as_a_setting_is_refused_without_repeating_it(environ: dict[str, str]) -> None:
    """It would stand in a file, in a process list and in what doctor prints."""
    with pytest.raises(Malformed, match=r"never the secret itself|must not hold the password") as caught:
        load(environ=environ)
    assert "planted" not in str(caught.value)


@pytest.mark.parametrize("reference", ["env:UNSET", "file:/absent", "file:", "file:\0"])
def test_a_reference_to_nothing_is_refused(reference: str) -> None:
    """At the start, not at the first use."""
    with pytest.raises(Malformed, match=r"^x: "):
        secret_of(reference, "x", {})


def test_a_reference_to_an_empty_or_a_huge_file_is_refused(tmp_path: Path) -> None:
    """Neither is a secret."""
    file = tmp_path / "secret"
    for text in ("\n", "x" * (reading.SECRET_OCTETS_MAX + 1)):
        file.write_text(text)

        with pytest.raises(Malformed, match=r"empty|more than"):
            secret_of(f"file:{file}", "x", {})


def test_every_setting_says_what_it_means() -> None:
    """And so the page of all settings can be written, with each variable once."""
    settings = list(describe(Settings))

    assert all(setting.says for setting in settings)
    variables = [setting.variable for setting in settings if setting.variable]
    assert len(set(variables)) == len(variables)
    assert {"server.port", "gateway.did", "providers.webpush.subject"} <= {s.path for s in settings}
