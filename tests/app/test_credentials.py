"""Credentials have names of the operator's choosing, and applications say which is theirs."""

from pathlib import Path

import pytest

from heliograph.ambient.entropy import SystemEntropy
from heliograph.ambient.keyring import KeyKind, Keyring
from heliograph.app.opening import bind_applications, build_credentials
from heliograph.app.settings import Settings, load, settings_page
from heliograph.wire.malformed import Malformed

NAMED = "must be named in at most 64 lower-case letters and digits, parted by single hyphens or underscores"

TWO = """
[providers.browsers]
adapter = "webpush"
subject = "mailto:operator@example.com"

[providers.stub]
url = "http://127.0.0.1:1/a"

[apps."com.example.web"]
provider = "browsers"

[apps."com.example.*"]
provider = "stub"

[apps."com.example.other"]
provider = "stub"
url = "http://127.0.0.1:1/b"
"""


def read(folder: Path, text: str, environ: dict[str, str] | None = None) -> Settings:
    file = folder / "heliograph.toml"
    file.write_text(text)
    return load(file, environ or {}).settings


def ring(folder: Path) -> Keyring:
    keys = Keyring.open(folder / "keys", {})
    keys.create_missing({"vapid": KeyKind.P256}, SystemEntropy())
    return keys


def test_a_section_may_bear_any_name_when_it_says_its_adapter(tmp_path: Path) -> None:
    """And needs not say it when its name is the adapter's, as before there were names."""
    settings = read(tmp_path, TWO)
    built = build_credentials(settings, ring(tmp_path))

    assert {each.provider.credential: each.provider.name for each in built.values()} == {
        "browsers": "webpush",
        "stub": "stub",
    }


def test_an_application_may_set_some_of_its_adapter_s_settings_for_itself(tmp_path: Path) -> None:
    """The others share the credential's own provider."""
    settings = read(tmp_path, TWO)
    built = build_credentials(settings, ring(tmp_path))
    bound = bind_applications(settings, built)

    assert bound["com.example.web"] is built["browsers"].provider
    assert bound["com.example.*"] is built["stub"].provider
    assert bound["com.example.other"] is not built["stub"].provider
    assert bound["com.example.other"].credential == "stub"


def test_what_an_application_sets_for_itself_is_judged_by_its_adapter(tmp_path: Path) -> None:
    """And named where it stands."""
    settings = read(
        tmp_path, '[providers.stub]\n[apps."com.example.x"]\nprovider = "stub"\nurl = "ftp://x"\n'
    )

    with pytest.raises(Malformed, match=r"^apps\.com\.example\.x\.url: must be an absolute"):
        bind_applications(settings, build_credentials(settings, ring(tmp_path)))


@pytest.mark.parametrize(
    ("document", "error"),
    [
        (
            "[providers.phones]\nadapter = 'webpsh'",
            "providers.phones.adapter: is no adapter; did you mean webpush?",
        ),
        ("[providers.phones]\nadapter = 5", "providers.phones.adapter: must be a text"),
        (
            "[providers.phones]\nadapter = 'stub'\nulr = 'x'",
            "providers.phones.ulr: is not a setting; did you mean url?",
        ),
        (
            "[providers.phones]\nadapter = 'webpush'\nsubject = 5",
            "providers.phones.subject: Expected `str`, got `int`",
        ),
        ("[providers]\nphones = 5", "providers.phones: is a section, not a value"),
        ("providers = 5", "providers: is a section, not a value"),
        (
            "[providers.Phones]\nadapter = 'stub'",
            f"providers.Phones: {NAMED}",
        ),
        (
            "[providers.phones__a]\nadapter = 'stub'",
            f"providers.phones__a: {NAMED}",
        ),
        (
            "[providers.phones]\nadapter = 'stub'\n[apps.'com.x']\nprovider = 'phone'",
            "apps.com.x.provider: names a provider that has no section; did you mean phones?",
        ),
        (
            "[apps.'com.x']\nprovider = 'stub'",
            "apps.com.x.provider: names a provider that has no section; there is none",
        ),
        ("[apps.'com.x']\nprovider = 5", "apps.com.x.provider: Expected `str`, got `int`"),
        ("[apps.'com.x']\n", "apps.com.x: Object missing required field `provider`"),
        (
            "[providers.stub]\n[apps.'com.x']\nprovider = 'stub'\nulr = 'x'",
            "apps.com.x.ulr: is not a setting; did you mean url?",
        ),
        (
            "[providers.webpush]\nsubject = 'x'\n[apps.'com.x']\nprovider = 'webpush'\nsubject = 'x'",
            "apps.com.x.subject: is not a setting; known are provider",
        ),
        (
            "[providers.stub]\n[apps.'a*']\nprovider = 'stub'\n[apps.'*a']\nprovider = 'stub'",
            "apps.a*: and apps.*a could both claim an id, and neither goes first",
        ),
        (
            "[gateway]\ndefault_app = 'com.y'\n[providers.stub]\n[apps.'com.x*']\nprovider = 'stub'",
            "gateway.default_app: names no application of the apps section",
        ),
    ],
)
def test_a_wrong_section_is_named_with_the_nearest_right_one(
    tmp_path: Path, document: str, error: str
) -> None:
    """Nothing is built, and no value is repeated."""
    with pytest.raises(Malformed) as caught:
        read(tmp_path, document)

    assert str(caught.value) == error


def test_a_named_section_may_be_set_in_the_environment(tmp_path: Path) -> None:
    """Whatever the order of the variables, the adapter is read first."""
    environ = {
        "HELIOGRAPH__PROVIDERS__BROWSERS__HOSTS": '["a.example.org"]',
        "HELIOGRAPH__PROVIDERS__BROWSERS__SUBJECT": "mailto:a@example.com",
        "HELIOGRAPH__PROVIDERS__BROWSERS__ADAPTER": "webpush",
        "HELIOGRAPH__APPS": '{"com.x" = {provider = "browsers"}}',
    }
    loaded = load(environ=environ)

    effective = {path: (value, source) for path, value, source in loaded.effective()}
    assert effective["providers.browsers.adapter"] == (
        '"webpush"',
        "HELIOGRAPH__PROVIDERS__BROWSERS__ADAPTER",
    )
    assert effective["providers.browsers.hosts"][0] == '["a.example.org"]'
    assert effective["apps.com.x.provider"] == ('"browsers"', "HELIOGRAPH__APPS")


@pytest.mark.parametrize(
    ("variable", "problem"),
    [
        ("HELIOGRAPH__PROVIDERS__BROWSERS", "names a section"),
        ("HELIOGRAPH__PROVIDERS__BROWSERS__URL", "must be set, for browsers is no adapter"),
        ("HELIOGRAPH__PROVIDERS__STUB__ULR", "did you mean url"),
        ("HELIOGRAPH__APPS__X__PROVIDER", "cannot be told by a variable"),
        ("HELIOGRAPH__APPS__X", "cannot be told by a variable"),
    ],
)
def test_a_variable_that_names_no_member_of_a_section_is_refused(variable: str, problem: str) -> None:
    """By its own name."""
    with pytest.raises(Malformed, match=f"^{variable}: .*{problem}"):
        load(environ={variable: "x"})


def test_the_page_of_settings_tells_of_names_globs_and_own_settings() -> None:
    """Each adapter's fields stand in one place."""
    page = settings_page()

    assert page.count("`providers.webpush.subject`") == 1
    assert '`[providers.NAME]` with `adapter = "webpush"`' in page
    assert "An application on `stub` may set for itself, as its provider does: `url`." in page
