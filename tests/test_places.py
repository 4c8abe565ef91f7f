"""Where IP addresses are: the bundled tables, and the owner's own file, which wins where it
knows a place. Whatever happens to it harms no comment: then the tables answer."""

import importlib.util
import mmap
import random
import re
import sqlite3
import sys
import threading
from bisect import bisect
from contextlib import closing
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address, ip_network
from pathlib import Path
from typing import Any

import pytest
from mmdb_writer import MMDBWriter
from netaddr import IPSet

from commentd import App, Config, Places, make_app
from support.admin import do, new_owner
from support.client import Visitor
from support.commands import run_here
from support.sources import ROOT, STATIC

NOWHERE, US, HANGZHOU = ("", ""), ("US", "美国"), ("CN", "浙江 杭州")
FRANCE, CHINA = ("FR", "法国"), ("CN", "中国")
HERE = "20.1.2.3"  # in the shipped table: US
SIX = "2001:4860:4860::8888"  # there: US


# The bundled tables

KNOWN = {
    "8.8.8.8": US,
    "2001:4860:4860::8888": US,
    "[2001:4860:4860::8888]:443": US,
    "223.5.5.5": HANGZHOU,
    "::ffff:223.5.5.5": HANGZHOU,
    "114.114.114.114": ("CN", "江苏 南京"),
    "202.106.0.20": ("CN", "北京"),
    "2400:3200::1": CHINA,
    "1.36.0.1": ("HK", "香港"),
    "202.175.3.3": ("MO", "澳门"),
    "168.95.1.1": ("TW", "台湾"),
}
OF_NO_PLACE = """10.0.0.1 100.64.0.1 127.0.0.1 192.0.2.1 198.18.0.1 224.0.0.1 0.0.0.0 ::1 :: fd00::1
    fe80::1%eth0 2001:db8::1 ff02::1 ::ffff:10.0.0.1 2002:808:808::1 2001::1 unknown 8.8.8 8.8.8.8.8
    localhost""".split()  # noqa: SIM905


@pytest.mark.parametrize("settings", [{"limits_enabled": False}], ids=["no limits"])
def test_a_comment_has_country_and_location_of_its_ip_address(app: App) -> None:
    for peer, place in (KNOWN | dict.fromkeys([*OF_NO_PLACE, ""], NOWHERE)).items():
        comment = Visitor(app, ip=peer).say(f"from {peer}")["comment"]
        assert (comment["country"], comment["location"]) == place, peer


def test_a_location_is_found_in_whatever_thread_asks_for_it(app: App) -> None:
    found = []

    def ask(ip: str) -> None:
        found.append(Visitor(app, ip=ip).say("hi")["comment"]["country"])

    ask(HERE)
    thread = threading.Thread(target=ask, args=["20.1.2.4"])
    thread.start()
    thread.join()
    assert found == ["US", "US"]


def test_a_reply_of_the_owner_has_country_and_location_too(app: App) -> None:
    Visitor(app).say("hi")
    owner = new_owner(app)
    owner.extra_environ["REMOTE_ADDR"] = "223.5.5.5"
    reply = do(owner, "reply", parent_id=1, content="hello")["comment"]
    assert (reply["country"], reply["location"]) == HANGZHOU


class Ranges:
    """A bundled table, searched without SQL: the range of a number is the last one that starts at
    it or before it."""

    def __init__(self, path: Path) -> None:
        with closing(sqlite3.connect(path)) as db:
            self.places = {
                number: (country, location)
                for number, country, location in db.execute(
                    "SELECT id, country, location FROM place"
                )
            }
            ranges = db.execute("SELECT start, place FROM range ORDER BY start").fetchall()
        self.starts = [start for start, _ in ranges]
        self.place_numbers = [place for _, place in ranges]

    def place_of(self, number: int) -> tuple[str, str]:
        return self.places[self.place_numbers[bisect(self.starts, number) - 1]]


def test_any_ipv4_address_has_the_place_of_the_range_that_holds_it() -> None:
    chance = random.Random(1)
    table = Ranges(STATIC / "places4.db")
    numbers = [0, 2**32 - 1]
    numbers += [chance.getrandbits(32) for _ in range(500)]
    for start in chance.sample(table.starts[1:], 500):
        numbers += [start - 1, start]
    with closing(Places(STATIC)) as places:
        for number in numbers:
            address = IPv4Address(number)
            expected = table.place_of(number) if address.is_global else NOWHERE
            assert places.of(str(address)) == expected, address


def test_any_ipv6_address_has_the_place_of_the_range_that_holds_it() -> None:
    chance = random.Random(1)
    table = Ranges(STATIC / "places6.db")
    numbers = [0, 2**128 - 1]
    numbers += [chance.getrandbits(128) for _ in range(500)]
    for start in chance.sample(table.starts[1:], 500):
        # The table holds the network half of an address, shifted into SQLite's signed numbers.
        first = (start + 2**63) << 64
        numbers += [first - 1, first]
    with closing(Places(STATIC)) as places:
        for number in numbers:
            address = IPv6Address(number)
            expected = table.place_of((number >> 64) - 2**63) if address.is_global else NOWHERE
            assert places.of(str(address)) == expected, address


def damaged(whole: bytes) -> dict[str, bytes | None]:
    """What may lie where a table should be; None for nothing at all."""
    return {
        "missing": None,
        "text": b"version https://git-lfs.example/spec/v1\n" * 20,
        "overwritten": whole[:4096] + b"\xff" * (len(whole) - 4096),
        # The start, which is read first, is whole.
        "overwritten at the end": whole[: len(whole) * 7 // 8] + b"\xff" * (len(whole) // 8),
    }


@pytest.mark.parametrize("broken", ["places4.db", "places6.db"])
def test_an_unreadable_location_table_is_named_and_its_ip_addresses_are_unknown(
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
        warned = {(record.levelname, broken in record.getMessage()) for record in caplog.records}
        assert warned == {("WARNING", True)}, kind


def test_the_sources_of_the_location_tables_are_named_with_their_licences() -> None:
    names = ("Unicode CLDR", "Unicode-3.0")
    for file, source in (
        ("places4.db", ("ip2region", "Apache-2.0 OR MIT")),
        ("places6.db", ("IPFire Location", "CC-BY-SA-4.0")),
    ):
        with closing(sqlite3.connect(STATIC / file)) as db:
            rows = db.execute("SELECT name, licence, version, date FROM source").fetchall()
        assert {row[:2] for row in rows} == {source, names}
        for text in ((ROOT / name).read_text("utf-8") for name in ("README.md", "LICENSE")):
            assert {name for name, *_ in rows if name not in " ".join(text.split())} == set()
            # CC-BY-SA, section 3(a)(1): a notice that refers to the licence.
            assert "https://creativecommons.org/licenses/by-sa/4.0/" in text
            assert "static/places6.db" in text
        assert rows[0][3] in (ROOT / "README.md").read_text("utf-8")


def test_the_script_that_builds_the_location_tables_finds_them_whole() -> None:
    spec = importlib.util.spec_from_file_location("build_places", ROOT / ".ci/build_places.py")
    assert spec
    assert spec.loader
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.check(STATIC / "places4.db")
    script.check(STATIC / "places6.db")


# The owner's file


def mmdb(path: Path, records: dict[str, Any], ip_version: int = 6) -> Path:
    """Networks and what MaxMind, DB-IP or IPinfo would say of them."""
    writer = MMDBWriter(ip_version, ipv4_compatible=ip_version == 6, description="by a test")
    for network, record in records.items():
        writer.insert_network(IPSet([network]), record)
    writer.to_db_file(str(path))
    return path


def open_places(file: Path) -> closing[Places]:
    return closing(Places(STATIC, str(file)))


def places_of(file: Path, *ips: str) -> list[tuple[str, str]]:
    with open_places(file) as places:
        return [places.of(ip) for ip in ips]


def named(name: str, **more: str) -> dict[str, Any]:
    return {"names": {"en": "a name", **({"zh-CN": name} if name else {})}, **more}


def maxmind(code: str, country: str, *parts: str) -> dict[str, Any]:
    """GeoLite2-City: province and city where they are known."""
    record: dict[str, Any] = {"country": named(country, iso_code=code)}
    record["registered_country"] = named("法国", iso_code="FR")
    if parts:
        record["subdivisions"] = [named(parts[0], iso_code="XX"), named("区")]
    if parts[1:]:
        record["city"] = named(parts[1])
    return record


def france(path: Path, network: str = "20.1.0.0/16") -> Path:
    """A small file that knows one network, and says it is French."""
    return mmdb(path, {network: maxmind("FR", "法国")})


# What it says

IN_CHINA = {
    "浙江省 杭州市": "浙江 杭州",
    "浙江 杭州": "浙江 杭州",
    "北京市 北京": "北京",
    "重庆市 重庆市": "重庆",
    "重庆市 万州区": "重庆",
    "吉林省 吉林市": "吉林 吉林",
    "内蒙古自治区 呼和浩特": "内蒙古 呼和浩特",
    "广西壮族自治区 南宁市": "广西 南宁",
    "宁夏回族自治区": "宁夏",
    "新疆维吾尔自治区 喀什地区": "新疆 喀什",
    "四川省 阿坝藏族羌族自治州": "四川 阿坝",
    "内蒙古自治区 锡林郭勒盟": "内蒙古 锡林郭勒",
    "": "中国",
}
RECORDS: list[tuple[dict[str, Any], tuple[str, str]]] = [
    *((maxmind("CN", "中国", *text.split()), ("CN", IN_CHINA[text])) for text in IN_CHINA),
    (maxmind("CN", "中国", ""), CHINA),
    (maxmind("CN", ""), CHINA),
    (maxmind("CN", "中国", "香港特别行政区"), ("HK", "香港")),
    (maxmind("CN", "中国", "台湾省", "台北市"), ("TW", "台湾")),
    (maxmind("MO", "澳门特别行政区"), ("MO", "澳门")),
    (maxmind("TW", "中华民国", "台北市"), ("TW", "台湾")),
    (maxmind("FR", "法兰西共和国", "法兰西岛", "巴黎"), FRANCE),
    (maxmind("FR", ""), FRANCE),
    ({"registered_country": named("法国", iso_code="FR")}, US),
    ({"continent": named("欧洲", code="EU")}, US),
    ({}, US),
    # DB-IP lite: provinces in English only
    ({**maxmind("CN", "中国"), "subdivisions": [{"names": {"en": "Zhejiang"}}]}, CHINA),
    # IPinfo, which is flat: its files of today, and of yesterday
    ({"country": "France", "country_code": "FR", "continent": "Europe"}, FRANCE),
    ({"country": "FR", "country_name": "France", "asn": "AS3215"}, FRANCE),
    ({"country": "", "asn": "AS3215"}, US),
    ({"country": "France"}, US),
    # A country that the table of IPv4 does not name
    (maxmind("BV", ""), ("BV", "布韦岛")),
    ({"country": {"names": {"zh-CN": "法国"}}}, US),
]


def test_a_location_file_of_the_owner_is_read_in_the_words_of_the_tables(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # Each in a network of its own, with nothing known beside it: there the tables answer.
    networks = {f"20.{number}.2.0/24": record for number, (record, _) in enumerate(RECORDS)}
    for version in (4, 6):
        with open_places(mmdb(tmp_path / "own.mmdb", networks, version)) as places:
            for number, (record, place) in enumerate(RECORDS):
                assert places.of(f"20.{number}.2.3") == place, record
                assert places.of(f"20.{number}.3.1") == US
            assert [places.of(ip) for ip in ("223.5.5.5", SIX)] == [HANGZHOU, US]
    assert caplog.text == ""


REGIONS_OF_CHINA = [
    ("贵州省", "黔南布依族苗族自治州"),
    ("贵州省", "黔东南苗族侗族自治州"),
    ("云南省", "楚雄彝族自治州"),
    ("云南省", "红河哈尼族彝族自治州"),
    ("云南省", "西双版纳傣族自治州"),
    ("云南省", "大理白族自治州"),
    ("云南省", "德宏傣族景颇族自治州"),
    ("云南省", "怒江傈僳族自治州"),
    ("云南省", "迪庆藏族自治州"),
    ("四川省", "阿坝藏族羌族自治州"),
    ("青海省", "海西蒙古族藏族自治州"),
    ("新疆维吾尔自治区", "伊犁哈萨克自治州"),
    ("新疆维吾尔自治区", "巴音郭楞蒙古自治州"),
    ("新疆维吾尔自治区", "克孜勒苏柯尔克孜自治州"),
    ("新疆维吾尔自治区", "阿克苏地区"),
    ("甘肃省", "临夏回族自治州"),
    ("吉林省", "延边朝鲜族自治州"),
    ("湖北省", "恩施土家族苗族自治州"),
    ("内蒙古自治区", "兴安盟"),
    ("内蒙古自治区", "赤峰市"),
]


def test_regions_of_china_in_a_file_have_the_names_that_the_tables_give_them(
    tmp_path: Path,
) -> None:
    records = {
        f"20.{number}.0.0/16": maxmind("CN", "中国", province, city)
        for number, (province, city) in enumerate(REGIONS_OF_CHINA)
    }
    names = Ranges(STATIC / "places4.db").places.values()
    with open_places(mmdb(tmp_path / "own.mmdb", records)) as places:
        for number, (_, city) in enumerate(REGIONS_OF_CHINA):
            place = places.of(f"20.{number}.1.1")
            assert place in names, city
            assert city.startswith(place[1].split()[1]), city


def test_private_ip_addresses_have_no_location_whatever_the_file_says(tmp_path: Path) -> None:
    four = "10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 192.0.2.0/24 198.18.0.0/15 20.1.0.0/16"
    six = "fd00::/16 fe80::/16 ::1/128 2001:db8::/32 2001:4860::/32"
    for known in (four.split(), six.split()):
        file = mmdb(tmp_path / "own.mmdb", dict.fromkeys(known, maxmind("FR", "法国")))
        *private, public = [str(ip_network(net)[-1]) for net in known]
        assert places_of(file, public, "", *private) == [FRANCE, *[NOWHERE] * len(known)]


def test_a_comment_has_the_location_of_the_owners_file_and_check_warns_if_it_is_unreadable(
    tmp_path: Path, config: Config, caplog: pytest.LogCaptureFixture
) -> None:
    for kind in ("good", "text", "half", "missing", "folder"):
        file = spoil(kind, france(tmp_path / f"{kind}.mmdb"))
        caplog.clear()
        with closing(make_app(replace(config, geo_file=str(file)), rounds=1)) as app:
            comment = Visitor(app, ip=HERE).say(kind)["comment"]
        assert (comment["country"], comment["location"]) == (FRANCE if kind == "good" else US), kind
        warned = [(r.levelname, str(file) in r.getMessage()) for r in caplog.records]
        assert warned == [("WARNING", True)] * (kind != "good"), kind
        code, text, _ = run_here(tmp_path, "check", COMMENTD_GEO_FILE=file.name)
        warnings = re.findall(rf"^  warn +rights +.*{file.name}", text, re.M)
        assert (code, len(warnings)) == (0, int(kind == "missing")), kind


# Damage


def spoil(kind: str, path: Path) -> Path:
    """A file that was good becomes one that can't be read."""
    if kind == "text":
        path.write_bytes(b"version 1\n" * 20)
    if kind == "half":
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
    if kind in ("missing", "folder"):
        path.unlink()
    if kind == "folder":
        path.mkdir()
    return path


def test_a_damaged_location_file_never_fails_a_look_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    says = [maxmind("CN", "中国", "浙江省", "杭州市"), maxmind("FR", "法国"), maxmind("FR", "")]
    file = mmdb(tmp_path / "own.mmdb", {f"{n}.1.0.0/16": says[n % 3] for n in range(20, 60)})
    whole = file.read_bytes()
    for seed in range(20):
        chance, spoilt = random.Random(seed), bytearray(whole)
        for _ in range(chance.choice([1, 2, 5, 50, 500])):
            spoilt[chance.randrange(len(spoilt))] = chance.randrange(256)
        file.write_bytes(spoilt)
        caplog.clear()
        with open_places(file) as places:
            for n in range(19, 61):
                places.of(f"{n}.1.2.3")
            assert [places.of("8.8.8.8"), places.of("223.5.5.5")] == [US, HANGZHOU], seed
        assert {record.levelname for record in caplog.records} <= {"WARNING"}, seed


@pytest.mark.parametrize("kind", ["text", "half"])
def test_a_file_that_is_overwritten_while_it_is_open_fails_no_look_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    # Of several pages of memory: where one of a mapped file is gone, to read it ends a process.
    networks = ["223.5.0.0/16", *(f"20.{n}.{n}.0/24" for n in range(0, 256, 2))]
    file = mmdb(tmp_path / "own.mmdb", dict.fromkeys(networks, maxmind("FR", "法国")))
    assert file.stat().st_size > 2 * mmap.PAGESIZE
    ips = ["223.5.5.5", *(f"20.{n}.{n}.2" for n in range(0, 256, 2))]
    assert places_of(file, *ips) == [FRANCE] * len(ips)
    with open_places(file) as places:
        assert places.of("20.2.2.2") == FRANCE
        spoil(kind, file)
        assert places.of("8.8.8.8") == US
        assert places.of("223.5.5.5") in (HANGZHOU, FRANCE)
        for ip in ips:
            places.of(ip)
    assert {record.levelname for record in caplog.records} <= {"WARNING"}


def test_a_location_file_without_its_package_names_the_package(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "maxminddb", None)
    assert places_of(france(tmp_path / "own.mmdb"), HERE) == [US]
    (record,) = caplog.records
    for word in ("needs maxminddb: pip install maxminddb", "using the bundled tables"):
        assert word in record.getMessage()
