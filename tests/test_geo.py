"""The owner's own file of places: it wins where it knows, whatever it is or becomes it harms no
comment, and what it does not know the tables that ship answer."""

import gc
import os
import random
import re
import sqlite3
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from conftest import PAGE, Visitor
from hypothesis import given
from hypothesis import strategies as st
from mmdb_writer import MMDBWriter
from netaddr import IPSet
from test_comments import at_once
from test_server import COMMENT, Start, services

from commentd import Config, Places, load_config, main, make_app

STATIC = Path(__file__).parent.parent / "static"
NOWHERE, US, HANGZHOU = ("", ""), ("US", "美国"), ("CN", "浙江 杭州")
FRANCE, CHINA = ("FR", "法国"), ("CN", "中国")
HERE = "20.1.2.3"  # in the shipped table: US
SIX = "2001:4860:4860::8888"  # there: US

Make = Callable[..., Path]


def mmdb(path: Path, records: dict[str, Any], ip_version: int = 6) -> Path:
    """Networks and what MaxMind, DB-IP or IPinfo would say of them."""
    writer = MMDBWriter(ip_version, ipv4_compatible=ip_version == 6, description="by a test")
    for network, record in records.items():
        writer.insert_network(IPSet([network]), record)
    writer.to_db_file(str(path))
    return path


def xdb(path: Path, regions: dict[str, str], version: int = 2, ip_version: int = 4) -> Path:
    """As ip2region publishes it: 256 bytes of header, for each first two bytes of an address
    where its segments begin and end, the texts, the segments."""
    width, order = (4, "little") if ip_version == 4 else (16, "big")
    last = "255.255.0.0/16" if ip_version == 4 else "ffff::/16"  # real files have no gap there
    texts, segments, cells = b"", b"", bytearray(256 * 256 * 8)
    places = {}
    for text in {*regions.values(), "0|0|0|内网IP|内网IP"}:
        places[text] = 256 + len(cells) + len(texts), len(text.encode())
        texts += text.encode()
    begin = 256 + len(cells) + len(texts)
    known = {
        ip_network(net): text for net, text in [*regions.items(), (last, "0|0|0|内网IP|内网IP")]
    }
    for whole in sorted(known):
        text = known[whole]
        for part in whole.subnets(new_prefix=16) if whole.prefixlen < 16 else [whole]:
            ends = [int(part[0]).to_bytes(width, order), int(part[-1]).to_bytes(width, order)]  # type: ignore[arg-type]
            cell = int.from_bytes(part[0].packed[:2]) * 8
            here = begin + len(segments)
            segments += b"".join(ends) + struct.pack("<HI", places[text][1], places[text][0])
            first = struct.unpack_from("<I", cells, cell)[0] or here
            struct.pack_into("<II", cells, cell, first, begin + len(segments))
    end = begin + len(segments) - (2 * width + 6)
    header = struct.pack("<HHIIIHH", version, 1, 1_757_000_000, begin, end, ip_version, 4)
    path.write_bytes(header.ljust(256, b"\0") + cells + texts + segments)
    return path


def opened(file: Path) -> closing[Places]:
    return closing(Places(STATIC, str(file)))


def found(file: Path, *ips: str) -> list[tuple[str, str]]:
    with opened(file) as places:
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


BOTH = pytest.mark.parametrize("make", [mmdb, xdb])
FRENCH = {"mmdb": maxmind("FR", "法国"), "xdb": "法国|0|0|0|0"}
HANGZHOU_IN = {
    "mmdb": maxmind("CN", "中国", "浙江省", "杭州市"),
    "xdb": "中国|浙江省|杭州市|电信|CN",
}


def france(make: Make, path: Path, network: str = "20.1.0.0/16") -> Path:
    """A small file that knows one network, and says it is French."""
    return make(path, {network: FRENCH[make.__name__]})


# What it says

IN_CHINA = {
    "浙江省 杭州市": "浙江 杭州", "浙江 杭州": "浙江 杭州", "北京市 北京": "北京",
    "重庆市 重庆市": "重庆", "重庆市 万州区": "重庆", "吉林省 吉林市": "吉林 吉林",
    "内蒙古自治区 呼和浩特": "内蒙古 呼和浩特", "广西壮族自治区 南宁市": "广西 南宁",
    "宁夏回族自治区": "宁夏", "新疆维吾尔自治区 喀什地区": "新疆 喀什",
    "四川省 阿坝藏族羌族自治州": "四川 阿坝", "内蒙古自治区 锡林郭勒盟": "内蒙古 锡林郭勒",
    "": "中国",
}  # fmt: skip
OF_MMDB: list[tuple[dict[str, Any], tuple[str, str]]] = [
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
    ({"country": "法国", "country_code": "fr"}, FRANCE),
    # A country that no table names
    ({"country": {"iso_code": "BV", "names": {"zh-CN": "布韦岛"}}}, ("BV", "布韦岛")),
    ({"country": {"names": {"zh-CN": "法国"}}}, FRANCE),
    ({"country": {"names": {"en": "Nowhere"}}}, US),
]
OF_XDB = {
    "中国|0|浙江省|杭州市|电信": HANGZHOU, "中国|浙江省|杭州市|电信|CN": HANGZHOU,
    "中国|浙江省|杭州市|电信": HANGZHOU, "中国|0|北京|北京市|联通": ("CN", "北京"),
    "中国|0|广西|南宁市|0": ("CN", "广西 南宁"), "中国|0|西藏自治区|0|0": ("CN", "西藏"),
    "中国|天津市|天津市|0|CN": ("CN", "天津"), "中国|北京|北京市|铁通": ("CN", "北京"),
    "中国|0|0|0|教育网": CHINA, "中国|0|0|阿里云": CHINA, "中国|0|香港|0|0": ("HK", "香港"),
    "中国|香港特别行政区|0|0|CN": ("HK", "香港"), "中国|香港|0|0": ("HK", "香港"),
    "中国|0|澳门|0|0": ("MO", "澳门"), "中国|0|台湾省|台北市|中华电信": ("TW", "台湾"),
    "中国|台湾省|台北市|0|TW": ("TW", "台湾"), "中国|台湾省|0|中华电信": ("TW", "台湾"),
    "法国|0|巴黎|巴黎|0": FRANCE, "France|Île-de-France|Paris|Orange|FR": FRANCE, "法国": FRANCE,
    "法国|0|巴黎|巴黎|XL": FRANCE,  # the name of a company
    # Which say nothing; a country without a code is none.
    **dict.fromkeys(("0|0|0|0|0", "0|0|0|0|", "0|0|0|内网IP|内网IP", "||||"), US),
    **dict.fromkeys(("布韦岛|0|0|0|0", "美国|加利福尼亚|洛杉矶|谷歌"), US),
}  # fmt: skip


@BOTH
@pytest.mark.every_case
def test_what_a_file_says_comes_in_the_words_of_the_tables_that_ship(
    tmp_path: Path, make: Make
) -> None:
    said: list[tuple[Any, tuple[str, str]]] = OF_MMDB if make is mmdb else [*OF_XDB.items()]
    # Each in a network of its own, with nothing known beside it: there the tables answer.
    networks = {f"20.{number}.2.0/24": record for number, (record, _) in enumerate(said)}
    for version in (4, 6) if make is mmdb else (2, 3):
        with opened(make(tmp_path / f"own.{make.__name__}", networks, version)) as places:
            for number, (record, place) in enumerate(said):
                assert places.of(f"20.{number}.2.3") == place, record
                assert places.of(f"20.{number}.3.1") == US
            assert [places.of(ip) for ip in ("223.5.5.5", SIX)] == [HANGZHOU, US]


def test_a_country_that_ip2region_names_otherwise_is_told_by_the_tables_that_ship(
    tmp_path: Path,
) -> None:
    ips = {"5.30.0.1": "阿联酋", "31.176.128.1": "波黑", "45.64.132.1": "孟加拉"}
    regions = {f"{ip_network(f'{ip}/24', strict=False)}": f"{n}|0|0|0|0" for ip, n in ips.items()}
    with closing(Places(STATIC)) as shipped:
        expected = [shipped.of(ip) for ip in ips]
    assert [code for code, _ in expected] == ["AE", "BA", "BD"]
    assert found(xdb(tmp_path / "own.xdb", regions), *ips) == expected


CHINESE = """贵州省 黔南布依族苗族自治州 黔东南苗族侗族自治州 黔西南布依族苗族自治州
云南省 楚雄彝族自治州 红河哈尼族彝族自治州 文山壮族苗族自治州 西双版纳傣族自治州
云南省 大理白族自治州 德宏傣族景颇族自治州 怒江傈僳族自治州 迪庆藏族自治州
四川省 凉山彝族自治州 甘孜藏族自治州 阿坝藏族羌族自治州
青海省 海西蒙古族藏族自治州 海南藏族自治州 玉树藏族自治州 果洛藏族自治州
新疆维吾尔自治区 伊犁哈萨克自治州 博尔塔拉蒙古自治州 巴音郭楞蒙古自治州
新疆维吾尔自治区 克孜勒苏柯尔克孜自治州 昌吉回族自治州 阿克苏地区
甘肃省 临夏回族自治州 甘南藏族自治州
吉林省 延边朝鲜族自治州
湖南省 湘西土家族苗族自治州
湖北省 恩施土家族苗族自治州
内蒙古自治区 兴安盟 阿拉善盟 赤峰市
黑龙江省 大兴安岭地区
陕西省 西安市"""


def test_every_kind_of_place_in_china_is_called_as_the_tables_call_it(tmp_path: Path) -> None:
    lines = [line.split() for line in CHINESE.splitlines()]
    pairs = [(province, city) for province, *cities in lines for city in cities]
    texts = {f"20.{n}.0.0/16": f"中国|{p}|{city}|0|CN" for n, (p, city) in enumerate(pairs)}
    with closing(sqlite3.connect(STATIC / "places4.db")) as db:
        names = {name for (name,) in db.execute("SELECT location FROM place WHERE country = 'CN'")}
    with opened(xdb(tmp_path / "own.xdb", texts, version=3)) as places:
        for number, (_, city) in enumerate(pairs):
            country, name = places.of(f"20.{number}.1.1")
            assert country == "CN"
            assert name in names
            assert city.startswith(name.split()[1])


def test_an_xdb_of_ipv6_leaves_ipv4_to_the_tables_that_ship(tmp_path: Path) -> None:
    regions = {"2001:4860::/32": "法国|0|0|0|0", "2400:3200::/32": "中国|浙江省|杭州市|0|CN"}
    file = xdb(tmp_path / "own.xdb", regions, version=3, ip_version=6)
    ips = (SIX, "2400:3200::1", "2600::1", HERE, "223.5.5.5")
    assert found(file, *ips) == [FRANCE, HANGZHOU, US, US, HANGZHOU]


@BOTH
def test_addresses_of_no_place_have_none_whatever_the_file_says(tmp_path: Path, make: Make) -> None:
    says = FRENCH[make.__name__]
    four = "10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 192.0.2.0/24 198.18.0.0/15 224.0.0.0/8 20.1.0.0/16"
    six = "fd00::/16 fe80::/16 ::1/128 2001:db8::/32 ff02::/16 2001:4860::/32"
    for nets, how in ((four, ()), (six, (6,) if make is mmdb else (3, 6))):
        known = nets.split()
        file = make(tmp_path / f"own.{make.__name__}", dict.fromkeys(known, says), *how)
        *private, public = [str(ip_network(net)[-1]) for net in known]
        assert found(file, public, "", *private) == [FRANCE, *[NOWHERE] * len(known)]


@BOTH
def test_a_comment_tells_what_the_file_says(tmp_path: Path, config: Config, make: Make) -> None:
    file = france(make, tmp_path / f"own.{make.__name__}")
    with closing(make_app(replace(config, geo_file=str(file)), rounds=1)) as app:
        for peer in (HERE, f"::ffff:{HERE}", f"[::ffff:{HERE}]:443", f"{HERE}:80"):
            comment = Visitor(app, ip=peer).say(peer)["comment"]
            assert (comment["country"], comment["location"]) == FRANCE


def test_the_path_is_relative_to_the_folder_of_the_settings(tmp_path: Path) -> None:
    ini = tmp_path / "commentd.ini"
    ini.write_text("[geo]\nfile = data/own.mmdb\n")
    assert load_config(ini, {}).geo_file == str(tmp_path / "data/own.mmdb")
    assert load_config(ini, {"COMMENTD_GEO_FILE": "/srv/x.xdb"}).geo_file == "/srv/x.xdb"


# What it may not do


ODD = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2**31 - 1) | st.text(max_size=9) | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


NAMES = ["FR", "CN", "fr", "FRA", "法国", "台湾", "a\nb", "\u202e", "x" * 10**5]


NAME = st.sampled_from(NAMES) | ODD


NAMED = st.dictionaries(
    st.sampled_from(["iso_code", "names"]), NAME | st.dictionaries(st.just("zh-CN"), NAME)
)


HOSTILE = st.fixed_dictionaries(
    {"country": NAMED | NAME},
    optional={"subdivisions": st.lists(NAMED) | ODD, "city": NAMED | ODD, "country_code": NAME},
)


def assert_place(place: tuple[str, str]) -> None:
    """What may be shown and kept: a code or none, and a short text that is all to be seen."""
    country, location = place
    assert isinstance(country, str)
    assert isinstance(location, str)
    assert re.fullmatch("([A-Z]{2})?", country)
    assert location.isprintable()
    assert len(location) <= 100


@given(record=HOSTILE | ODD)
def test_hostile_records_end_as_places_and_spoil_no_other(
    tmp_path_factory: pytest.TempPathFactory, record: Any
) -> None:
    path = tmp_path_factory.getbasetemp() / "hostile.mmdb"
    try:
        file = mmdb(path, {"20.1.2.0/24": record, "20.9.0.0/16": maxmind("FR", "法国")})
    except (TypeError, ValueError, struct.error):
        return  # the writer has no form for it
    place, fine, us, six = found(file, HERE, "20.9.1.1", "8.8.8.8", SIX)
    assert_place(place)
    assert fine in (FRANCE, US)
    assert us == six == US


def test_hostile_regions_end_as_places(tmp_path: Path) -> None:
    regions = ["a\nb|0|\x1b[31m|\u202e|0", "法国\n|0|0|0|0", "|||||||||", "中国|0|浙江\x00|杭州|0"]
    for region in [*regions, "中国|0|" + "长" * 9999 + "|0|0"]:
        (place,) = found(xdb(tmp_path / "own.xdb", {"20.1.2.0/24": region}), HERE)
        assert_place(place)


# Damage


def spoil(kind: str, path: Path) -> Path:
    """A file that was good becomes one that can't be read."""
    whole = path.read_bytes()
    first, last = (0, len(whole) // 3) if path.suffix == ".mmdb" else (256, len(whole))
    contents = {
        "empty": b"",
        "text": b"version https://git-lfs.example/spec/v1\n" * 20,
        "zeros": bytes(len(whole)),
        "noise": random.Random(1).randbytes(len(whole)),
        "another's": (STATIC / "places4.db").read_bytes(),
        "metadata": whole.replace(b"node_count", b"mode_count").replace(b"\2", b"\7", 1),
        # But for what is read first.
        "overwritten": whole[:first] + b"\xff" * (last - first) + whole[last:],
        "cut at its end": whole[:-9],
        "half": whole[: len(whole) // 2],
    }
    if kind in contents:
        path.write_bytes(contents[kind])
    if kind in ("missing", "folder"):
        path.unlink()
    if kind == "folder":
        path.mkdir()
    if kind == "no suffix":
        path.write_bytes(b"PK" + whole)
        return path.rename(path.with_name("own.dat"))
    if kind == "wrong suffix":
        return path.rename(path.with_suffix(".xdb" if path.suffix == ".mmdb" else ".mmdb"))
    return path


KINDS = [
    "missing", "folder", "empty", "text", "zeros", "noise", "another's", "wrong suffix",
    "no suffix", "metadata", "half", "overwritten", "cut at its end",
]  # fmt: skip


@BOTH
@pytest.mark.every_case
def test_a_file_that_can_not_be_read_is_named_once_and_the_tables_that_ship_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, make: Make
) -> None:
    for number, kind in enumerate(KINDS):
        (tmp_path / f"{number}").mkdir()
        file = spoil(kind, france(make, tmp_path / f"{number}" / f"own.{make.__name__}"))
        caplog.clear()
        with opened(file) as places:
            for _ in range(2):
                assert [places.of(ip) for ip in (HERE, "223.5.5.5", SIX)] == [US, HANGZHOU, US]
        (record,) = caplog.records
        assert record.levelname == "WARNING", kind
        assert str(file) in record.getMessage()
        assert "\n" not in record.getMessage()


@pytest.mark.parametrize(("make", "ip_version"), [(mmdb, 6), (mmdb, 4), (xdb, 4), (xdb, 6)])
def test_a_file_that_was_cut_anywhere_is_named_or_serves_as_before(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, make: Make, ip_version: int
) -> None:
    ip, network = (HERE, "20.1.0.0/16") if ip_version == 4 else (SIX, "2001:4860::/32")
    how = (ip_version,) if make is mmdb else (3, ip_version)
    file = make(tmp_path / f"own.{make.__name__}", {network: FRENCH[make.__name__]}, *how)
    whole, chance = file.read_bytes(), random.Random(1)
    cuts = [0, 1, 255, 256, 257, len(whole) - 1, *chance.sample(range(len(whole)), 20)]
    for cut in [*cuts, *range(len(whole) - 200, len(whole), 11)]:
        file.write_bytes(whole[:cut])
        caplog.clear()
        told = found(file, ip, "223.5.5.5"), [str(file) in r.getMessage() for r in caplog.records]
        # The end of an .mmdb may be a text that nobody asks for.
        whole_still = make is mmdb and cut > len(whole) - 20 and not told[1]
        assert told == (([FRANCE, HANGZHOU], []) if whole_still else ([US, HANGZHOU], [True])), cut


@pytest.mark.slow
@pytest.mark.parametrize(("make", "ip_version"), [(mmdb, 6), (xdb, 4), (xdb, 6)])
def test_no_damage_ever_fails_a_look_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, make: Make, ip_version: int
) -> None:
    name, six = make.__name__, ip_version == 6 and make is xdb
    nets = [f"2a{n}::/32" if six else f"{n}.1.0.0/16" for n in range(20, 60)]
    ips = [f"2a{n}::1" if six else f"{n}.1.2.3" for n in range(19, 61)]
    says: list[Any] = [HANGZHOU_IN[name], FRENCH[name]]
    says.append(maxmind("FR", "") if make is mmdb else "France|Paris|0|0|FR")
    how = (ip_version,) if make is mmdb else (3, ip_version)
    file = make(tmp_path / f"own.{name}", {net: says[i % 3] for i, net in enumerate(nets)}, *how)
    whole = file.read_bytes()
    used = [i for i, byte in enumerate(whole) if byte]  # an .xdb is mostly empty
    for seed in range(40):
        chance, spoilt = random.Random(seed), bytearray(whole)
        for _ in range(chance.choice([1, 2, 5, 50, 500])):
            spoilt[chance.choice(used)] = chance.randrange(256)
        file.write_bytes(spoilt)
        caplog.clear()
        with opened(file) as places:
            for ip in ips:
                assert_place(places.of(ip))
            assert [places.of("8.8.8.8"), places.of("223.5.5.5")] == [US, HANGZHOU], seed
        assert len(caplog.records) <= 1, seed


@BOTH
def test_a_file_that_changes_under_the_service_fails_no_comment(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, make: Make
) -> None:
    for kind in ("empty", "noise", "half", "cut at its end"):
        file = france(make, tmp_path / f"own.{make.__name__}", "223.5.0.0/16")
        caplog.clear()
        with opened(file) as places:
            assert places.of("223.5.5.5") == FRANCE
            spoil(kind, file)
            after = [places.of(ip) for ip in ("223.5.5.5", "8.8.8.8", "223.5.5.5", SIX)]
        assert after in ([HANGZHOU, US, HANGZHOU, US], [FRANCE, US, FRANCE, US]), kind
        assert len(caplog.records) <= 1


@BOTH
def test_a_file_that_is_replaced_beside_the_service_goes_on_till_the_next_start(
    tmp_path: Path, make: Make
) -> None:
    file = france(make, tmp_path / f"own.{make.__name__}")
    with opened(file) as places:
        other = france(make, tmp_path / "other", "20.2.0.0/16")
        other.replace(file)
        assert places.of(HERE) in (FRANCE, US)
        assert places.of("8.8.8.8") == US
    assert found(file, HERE, "20.2.2.3") == [US, FRANCE]


@BOTH
def test_a_package_that_is_missing_is_named(
    tmp_path: Path, make: Make, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = {"mmdb": "maxminddb", "xdb": "ip2region"}[make.__name__]
    file = france(make, tmp_path / f"own.{make.__name__}")
    monkeypatch.setitem(sys.modules, package, None)
    assert found(file, HERE) == [US]
    (record,) = caplog.records
    for word in (package, "pip install maxminddb py-ip2region", "the tables that ship are used"):
        assert word in record.getMessage()


# At once, and afterwards


@BOTH
def test_many_threads_look_up_right(tmp_path: Path, make: Make) -> None:
    name = make.__name__
    says: list[Any] = [FRENCH[name], HANGZHOU_IN[name]]
    says.append(maxmind("JP", "") if make is mmdb else "日本|0|0|0|0")
    expected = [FRANCE, HANGZHOU, ("JP", "日本")]
    file = make(tmp_path / f"own.{name}", {f"20.{n}.0.0/16": says[n % 3] for n in range(90)})

    def wrong(places: Places, first: int) -> list[int]:
        asked = {n: places.of(f"20.{n % 90}.{n % 256}.1") for n in range(first, first + 100)}
        return [n for n, place in asked.items() if place != expected[n % 90 % 3]]

    with opened(file) as places:
        assert at_once([lambda n=n: wrong(places, n * 7) for n in range(8)]) == [[]] * 8


@BOTH
def test_no_descriptor_stays_open(
    tmp_path: Path, make: Make, recwarn: pytest.WarningsRecorder
) -> None:
    if not Path("/proc/self/fd").exists():
        pytest.skip("this system does not tell which files are open")

    def held() -> list[str]:
        names = []
        for link in Path("/proc/self/fd").iterdir():
            try:
                names.append(os.readlink(link))
            except FileNotFoundError:  # it was the folder's own
                continue
        return [name for name in names if name.startswith(str(tmp_path))]

    gc.collect()
    gc.disable()
    try:
        for kind in ("good", "empty", "half", "cut at its end", "another's"):
            found(spoil(kind, france(make, tmp_path / f"own.{make.__name__}")), HERE)
            assert held() == [], kind
    finally:
        gc.enable()
    gc.collect()
    assert [w for w in recwarn if w.category is ResourceWarning] == []


# The program


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with services(tmp_path) as start:
        yield start


@pytest.mark.slow
def test_the_program_starts_with_a_spoilt_file_and_names_it_once(
    tmp_path: Path, start: Start
) -> None:
    file = spoil("half", france(mmdb, tmp_path / "own.mmdb"))
    service = start(geo={"file": "own.mmdb"})
    answer = service.ask("POST", "/comments", body=COMMENT)
    assert answer.status == 200
    assert service.ask("GET", f"/comments?url={PAGE}").json["total"] == 1
    service.stop()
    assert len([line for line in service.said.splitlines() if str(file) in line]) == 1
    assert "Warning" not in service.said


@pytest.mark.parametrize("kind", ["good", "half"])
def test_check_tells_whether_the_file_can_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    file = spoil(kind, france(mmdb, tmp_path / "own.mmdb"))
    ini = tmp_path / "commentd.ini"
    ini.write_text("[geo]\nfile = own.mmdb\n[captcha]\nprovider = none\n")
    assert main(["--config", str(ini), "check"]) == 0
    said = capsys.readouterr().out
    assert (f"[geo] file {file} can't be read" in said) == (kind == "half")


def test_no_file_is_no_matter(visitor: Visitor, caplog: pytest.LogCaptureFixture) -> None:
    visitor.extra_environ["REMOTE_ADDR"] = "223.5.5.5"
    assert visitor.say()["comment"]["location"] == HANGZHOU[1]
    assert caplog.records == []
