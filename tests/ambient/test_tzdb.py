"""The time zone data is the pinned release, from its package, and its table is what it says."""

import os
import zoneinfo
from pathlib import Path

import pytest

from heliograph.ambient.tzdb import Tzdb, TzdbUnusable, open_tzdb
from heliograph.wire.zones import TZDB_VERSION, ZONES
from tests import zone_table
from tests.shared import shared_json


@pytest.mark.clause("R332", "R333")
def test_the_table_of_canonical_zones_is_that_of_the_data() -> None:
    """Generated, and fresh."""
    assert zone_table.TABLE.read_text(encoding="utf-8") == zone_table.page()
    assert zone_table.version() == TZDB_VERSION
    assert frozenset(zone_table.zones()) == ZONES


@pytest.mark.clause("R332")
def test_no_link_is_canonical() -> None:
    """What the release itself calls an alias, and the published list agrees."""
    links = zone_table.links()

    assert ZONES.isdisjoint(links)
    assert set(links.values()) <= ZONES | set(links)
    assert {"UTC", "GMT", "EST", "Asia/Calcutta", "Europe/Amsterdam"} <= set(links)
    assert sorted(ZONES) == sorted(
        shared_json("spec/arkret/fixtures/tzdb-2025b.canonical-zones.json")["zones"]
    )


@pytest.mark.clause("R333", "R334")
def test_the_data_comes_from_its_package_and_not_from_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the system's own data out of sight every zone still opens."""
    monkeypatch.setattr(zoneinfo, "TZPATH", ())
    monkeypatch.setenv("PYTHONTZPATH", os.devnull)
    tzdb = open_tzdb()

    assert tzdb.version == "2025b"
    assert all(tzdb.clock(zone) is tzdb.clock(zone) for zone in ZONES)


@pytest.mark.clause("R333")
@pytest.mark.parametrize("first", ["# version 2025c", "# version 2025b-dirty", "", "Z Etc/UTC 0 - UTC"])
def test_another_release_is_refused_by_name(tmp_path: Path, first: str) -> None:
    """Before a single zone is read."""
    (tmp_path / "tzdata.zi").write_text(f"{first}\n", encoding="utf-8")

    with pytest.raises(TzdbUnusable, match=r"install tzdata==2025\.2"):
        Tzdb(tmp_path)


@pytest.mark.clause("R334")
def test_missing_data_is_an_error_and_no_reason_to_guess(tmp_path: Path) -> None:
    """Neither a folder without data, nor a package that is not there, nor one zone that is missing."""
    with pytest.raises(TzdbUnusable, match="no time zone data"):
        Tzdb(tmp_path)
    with pytest.raises(TzdbUnusable, match="no time zone data"):
        open_tzdb("no_such_package_here")
    (tmp_path / "tzdata.zi").write_text("# version 2025b\n", encoding="utf-8")
    with pytest.raises(TzdbUnusable, match="Asia/Shanghai"):
        Tzdb(tmp_path).clock("Asia/Shanghai")


@pytest.mark.clause("R332")
@pytest.mark.parametrize("zone", ["UTC", "Asia/Calcutta", "asia/shanghai", "../tzdata.zi", ""])
def test_only_canonical_names_open_a_clock(zone: str) -> None:
    """A name is looked up before it becomes a path."""
    with pytest.raises(KeyError):
        open_tzdb().clock(zone)
