"""Every adapter has its row, its three files, and words for each of its settings."""

from pathlib import Path

import msgspec
import pytest

from heliograph import providers
from heliograph.providers import ADAPTERS

FOLDERS = sorted(
    path.name
    for path in Path(providers.__file__).parent.iterdir()
    if path.is_dir() and not path.name.startswith("__")
)


def test_every_folder_is_in_the_table() -> None:
    """A folder without a row would be an adapter that nobody can choose."""
    assert sorted(ADAPTERS) == FOLDERS


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_adapter_has_its_three_files(folder: str) -> None:
    """Settings, payload, exchange: a reader finds the same things in the same places."""
    here = Path(providers.__file__).parent / folder

    assert all((here / name).is_file() for name in ("settings.py", "payload.py", "exchange.py"))


@pytest.mark.parametrize("name", sorted(ADAPTERS))
def test_every_setting_is_documented(name: str) -> None:
    """In the docstring of its type, by name."""
    settings = ADAPTERS[name].settings
    fields = [field.name for field in msgspec.structs.fields(settings)]
    words = settings.__doc__ or ""

    assert fields
    assert [field for field in fields if f"        {field}: " not in words] == []
    assert settings.__struct_config__.forbid_unknown_fields
    assert settings.__struct_config__.frozen
