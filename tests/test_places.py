"""Where IP addresses are: the two tables that ship, and what happens when one can't be read."""

import importlib.util
import ipaddress
import random
import sqlite3
from bisect import bisect
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from conftest import Visitor

from commentd import App, Places

ROOT = Path(__file__).parent.parent
STATIC = ROOT / "static"
NOWHERE = ("", "")
US, HANGZHOU = ("US", "美国"), ("CN", "浙江 杭州")
KNOWN = {
    "223.5.5.5": HANGZHOU,
    "114.114.114.114": ("CN", "江苏 南京"),
    "202.106.0.20": ("CN", "北京"),
    "8.8.8.8": US,
    "1.36.0.1": ("HK", "香港"),
    "202.175.3.3": ("MO", "澳门"),
    "168.95.1.1": ("TW", "台湾"),
    "2001:4860:4860::8888": US,
    "2400:3200::1": ("CN", "中国"),
    "::ffff:223.5.5.5": HANGZHOU,
    "[2001:4860:4860::8888]:443": US,
}
OF_NO_PLACE = """10.0.0.1 100.64.0.1 127.0.0.1 192.0.2.1 198.18.0.1 224.0.0.1 0.0.0.0 ::1 :: fd00::1
    fe80::1%eth0 2001:db8::1 ff02::1 ::ffff:10.0.0.1 2002:808:808::1 2001::1 unknown 8.8.8 8.8.8.8.8
    localhost""".split()  # noqa: SIM905


@pytest.fixture
def places() -> Iterator[Places]:
    found = Places(STATIC)
    yield found
    found.close()


@pytest.mark.parametrize("settings", [{"limits_enabled": False}], ids=["no limits"])
def test_a_comment_tells_where_it_comes_from(app: App) -> None:
    for peer, place in (KNOWN | dict.fromkeys([*OF_NO_PLACE, ""], NOWHERE)).items():
        comment = Visitor(app, ip=peer).say(f"from {peer}")["comment"]
        assert (comment["country"], comment["location"]) == place, peer


def test_every_address_is_in_the_range_that_holds_it(places: Places) -> None:
    chance = random.Random(1)
    for version, bits in ((4, 32), (6, 128)):
        with closing(sqlite3.connect(STATIC / f"places{version}.db")) as db:
            names = {id: place for id, *place in db.execute("SELECT * FROM place")}
            ranges = db.execute("SELECT start, place FROM range ORDER BY start").fetchall()
        starts = [start for start, _ in ranges]
        # Both ends of the numbers, both sides of some borders, and anywhere.
        numbers = [0, 2**bits - 1, *(chance.getrandbits(bits) for _ in range(500))]
        for start in chance.sample(starts[1:], 500):
            first = start if version == 4 else (start + 2**63) << 64
            numbers += [first - 1, first]
        for number in numbers:
            address = (ipaddress.IPv4Address if version == 4 else ipaddress.IPv6Address)(number)
            counted = number if version == 4 else (number >> 64) - 2**63
            place = names[ranges[bisect(starts, counted) - 1][1]]
            expected = tuple(place) if address.is_global else NOWHERE
            assert places.of(str(address)) == expected


def damaged(healthy: bytes) -> dict[str, bytes | None]:
    """What may lie where a table should be; None for nothing at all."""
    size = len(healthy)
    return {
        "missing": None,
        "empty": b"",
        "text": b"version https://git-lfs.example/spec/v1\n" * 20,
        "cut in half": healthy[: size // 2],
        "overwritten": healthy[:4096] + b"\xff" * (size - 4096),
        # What is read first is whole.
        "overwritten behind": healthy[: size - size // 8] + b"\xff" * (size // 8),
    }


@pytest.mark.parametrize("broken", ["places4.db", "places6.db"])
@pytest.mark.every_case
def test_a_table_that_can_not_be_read_is_named_once_and_its_addresses_are_unknown(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, broken: str
) -> None:
    (whole,) = {"places4.db", "places6.db"} - {broken}
    (tmp_path / whole).symlink_to(STATIC / whole)
    with closing(sqlite3.connect(tmp_path / "another's")) as db:
        db.execute("CREATE TABLE range (start INTEGER PRIMARY KEY, place INTEGER)")
    cases = damaged((STATIC / broken).read_bytes())
    for kind, content in (cases | {"another's": (tmp_path / "another's").read_bytes()}).items():
        if content is not None:
            (tmp_path / broken).write_bytes(content)
        caplog.clear()
        with closing(Places(tmp_path)) as places:
            fours = [places.of(f"{n}.5.5.5") for n in (8, 43, 60, 101, 114, 180, 202, 210, 223)]
            nets = ("2001:4860", "2600", "2a00:1450", "2c0f:fb50")
            sixes = [places.of(f"{net}::8888") for net in nets]
        unknown, known = (fours, sixes) if broken == "places4.db" else (sixes, fours)
        assert NOWHERE in unknown, kind
        assert NOWHERE not in known, kind
        (record,) = caplog.records
        assert (record.levelname, broken in record.getMessage()) == ("WARNING", True), kind


def test_the_sources_are_named_with_their_licences() -> None:
    named = {}
    for path in (STATIC / "places4.db", STATIC / "places6.db"):
        with closing(sqlite3.connect(path)) as db:
            rows = db.execute("SELECT name, version, date, licence FROM source").fetchall()
        assert all(all(row) for row in rows)
        named[path.name] = {(name, licence) for name, _, _, licence in rows}
        readme, licences = ((ROOT / n).read_text("utf-8") for n in ("README.md", "LICENSE"))
        for name, _, _, licence in rows:
            for text in (readme, licences):
                assert name in " ".join(text.split())
            if licence.startswith("CC-BY-SA"):  # 3(a)(1): a notice that refers to the licence
                for text in (readme, licences):
                    assert "https://creativecommons.org/licenses/by-sa/4.0/" in text
                    assert f"static/{path.name}" in text
        assert rows[0][2] in readme
    names = ("Unicode CLDR", "Unicode-3.0")
    assert named["places4.db"] == {("ip2region", "Apache-2.0 OR MIT"), names}
    assert named["places6.db"] == {("IPFire Location", "CC-BY-SA-4.0"), names}


def test_the_script_that_builds_the_tables_knows_them_and_does_nothing_when_imported(
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = {path: path.stat().st_mtime_ns for path in STATIC.iterdir()}
    spec = importlib.util.spec_from_file_location("build_places", ROOT / ".ci/build_places.py")
    assert spec
    assert spec.loader
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert capsys.readouterr().out == ""
    script.check(STATIC / "places4.db")
    script.check(STATIC / "places6.db")
    assert capsys.readouterr().out.count(" ranges, ") == 2
    assert {path: path.stat().st_mtime_ns for path in STATIC.iterdir()} == before
