"""Builds the location tables that commentd ships: static/places4.db and static/places6.db.

    python3 .ci/build_places.py

It wants Debian 12 (apt-get, dpkg-deb), Python 3.11 or newer with pip, 250 MB of room for
temporary files, and half a minute. Built again with the same SQLite, the files are the same to
the byte; they replace the old ones only if every address in KNOWN is found where it belongs.

IPv4: ip2region, as the Python package xdb-location 0.1.39 carries it; Apache-2.0 or MIT. Country,
    and province and city in China. Upstream made that copy on 2025-09-06, but place for place it is
    what it published on 2024-02-28, so that is its date here.
IPv6: IPFire's location database of 2026-06-25, as Debian's package tor-geoipdb
    0.4.9.11-0+deb12u1 carries it; CC BY-SA 4.0. Country only. It has a file of its own, so that
    share-alike ends there.
Country names: Unicode CLDR 47, as the Python package babel 2.18.0 carries it; Unicode-3.0.
"""

import re
import sqlite3
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from importlib import import_module
from ipaddress import IPv6Address, IPv6Network, ip_address
from itertools import groupby
from pathlib import Path
from subprocess import run
from tempfile import TemporaryDirectory

Place = tuple[str, str]  # country, location
Range = tuple[int, int, Place]  # its first number, the number after its last

STATIC = Path(__file__).resolve().parent.parent / "static"
PYTHON_PACKAGES = """
xdb-location==0.1.39 --hash=sha256:c88bbd9fde669be4b0b7c9814bf3fee1c71d6fd20a5c9e7874e8c37d2dbdd054
babel==2.18.0 --hash=sha256:e2b422b277c2b9a9630c1d7903c2a00d0830c409c59ac8cae9081c92f1aeba35
"""
DEBIAN_PACKAGE = "tor-geoipdb=0.4.9.11-0+deb12u1"
IP2REGION = ("ip2region", "xdb-location 0.1.39", "2024-02-28", "Apache-2.0 OR MIT")
IPFIRE = ("IPFire Location", "tor-geoipdb 0.4.9.11-0+deb12u1", "2026-06-25", "CC-BY-SA-4.0")
CLDR = ("Unicode CLDR", "47, babel 2.18.0", "2025-03-13", "Unicode-3.0")

SCHEMA = """
PRAGMA page_size = 4096; PRAGMA journal_mode = DELETE;
PRAGMA application_id = 0x706C6163; PRAGMA user_version = 1;
CREATE TABLE place (id INTEGER PRIMARY KEY, country TEXT NOT NULL, location TEXT NOT NULL) STRICT;
CREATE TABLE range (start INTEGER PRIMARY KEY, place INTEGER NOT NULL) STRICT;
CREATE TABLE source (name TEXT NOT NULL, version TEXT NOT NULL, date TEXT NOT NULL,
                     licence TEXT NOT NULL) STRICT;
"""
LOOK_UP = """SELECT country, location FROM range JOIN place ON place.id = range.place
             WHERE start <= ? ORDER BY start DESC LIMIT 1"""

NOWHERE: Place = ("", "")
SHORT = {"HK": "香港", "MO": "澳门", "TW": "台湾"}
MUNICIPALITIES = {"北京", "上海", "天津", "重庆"}
NO_COUNTRIES = {"EU", "EZ", "QO", "UN", "XA", "XB", "ZZ"}  # named by CLDR all the same
# What ip2region calls otherwise than CLDR, and then what it knows no country of.
OTHER_NAMES = {
    "阿联酋": "AE", "波黑": "BA", "孟加拉": "BD", "刚果金": "CD", "中非": "CF", "刚果布": "CG",
    "多米尼加": "DO", "南乔治亚岛和南桑威奇群岛": "GS", "圣马丁": "MF", "马其顿": "MK",
    "蒙塞拉特岛": "MS", "巴勒斯坦": "PS", "留尼旺": "RE", "法国南部领地": "TF", "托克劳群岛": "TK",
    "瓦利斯和富图纳群岛": "WF",
}  # fmt: skip
VAGUE_NAMES = ("0", "亚太地区", "北美地区", "安的列斯", "欧洲", "非洲地区")
SUFFIX = re.compile("(?<=..)(省|市|地区|盟|特别行政区|((壮|回|藏|羌)族|维吾尔)*自治[区州])$")
ODD = re.compile("[0-9A-Za-z省市盟]|地区|自治|行政")
# The IETF's own, Teredo and 6to4: whoever routes them, they are in no country.
NOT_PLACES = (IPv6Network("2001::/23"), IPv6Network("2002::/16"))

KNOWN = {
    "8.8.8.8": ("US", "美国"), "114.114.114.114": ("CN", "江苏 南京"),
    "223.5.5.5": ("CN", "浙江 杭州"), "202.106.0.20": ("CN", "北京"),
    "1.36.0.1": ("HK", "香港"), "202.175.3.3": ("MO", "澳门"), "168.95.1.1": ("TW", "台湾"),
    "2400:3200::1": ("CN", "中国"), "2001:4860:4860::8888": ("US", "美国"),
    "2001:da8::1": ("CN", "中国"), "2001:b000:168::1": ("TW", "台湾"),
}  # fmt: skip
KNOWN_NOWHERE = """
0.0.0.0 10.0.0.1 100.64.0.1 127.0.0.1 169.254.1.1 172.16.0.1 192.0.2.1 192.168.1.1 198.18.0.1
198.51.100.1 203.0.113.1 224.0.0.1 255.255.255.255
:: ::1 100::1 2001::1 2001:db8::1 2002::1 3fff::1 fd00::1 fe80::1 ff02::1
"""


def fetch(folder: Path) -> None:
    """Puts the packages into the folder, unpacked: pip checks their hashes, apt its signatures."""
    wanted = folder / "wanted.txt"
    wanted.write_text(PYTHON_PACKAGES)
    pip = [sys.executable, "-m", "pip", "install", "-qq", "--no-deps", "--only-binary=:all:"]
    run([*pip, "--require-hashes", f"--requirement={wanted}", f"--target={folder}"], check=True)
    # As root: apt's own user may not write into the folder, and would say so.
    apt = ["apt-get", "download", "-qq", "-o=APT::Sandbox::User=root", DEBIAN_PACKAGE]
    run(apt, cwd=folder, check=True)
    run(["dpkg-deb", "--extract", next(folder.glob("*.deb")), folder], check=True)


def country_names(folder: Path) -> dict[str, str]:
    sys.path.insert(0, str(folder))
    territories: dict[str, str] = import_module("babel").Locale("zh").territories
    codes = {code for code in territories if re.fullmatch("[A-Z]{2}", code)} - NO_COUNTRIES
    return {code: territories[code] for code in codes} | SHORT


def number(address: str) -> int:
    """What the tables count by: IPv4's 32 bits; of IPv6 the upper 64, less 2^63 to fit."""
    ip = ip_address(address)
    return int(ip) if ip.version == 4 else (int(ip) >> 64) - 2**63


def place_in_china(province: str, city: str) -> Place:
    province, city = (SUFFIX.sub("", name) for name in (province, city))
    for code, name in SHORT.items():
        if province == name:
            return code, name
    known = [name for name in (province, city) if name != "0"]
    return "CN", " ".join(known[:1] if province in MUNICIPALITIES else known) or "中国"


def ranges_4(folder: Path, names: dict[str, str]) -> Iterator[Range]:
    places = {name: (code, name) for code, name in names.items()}
    places |= {name: (code, names[code]) for name, code in OTHER_NAMES.items()}
    places |= dict.fromkeys(VAGUE_NAMES, NOWHERE)
    for line in (folder / "xdb_location/data/ipv4_source.txt").read_text("utf-8").splitlines():
        first, last, country, province, city, _ = line.split("|")
        place = place_in_china(province, city) if country == "中国" else places[country]
        yield number(first), number(last) + 1, place


def ranges_6(folder: Path, names: dict[str, str]) -> Iterator[Range]:
    """Where a /64 has several countries (some 360 do), its last address speaks for all of it."""
    for line in (folder / "usr/share/tor/geoip6").read_text("ascii").splitlines():
        if line and not line.startswith("#"):
            first, last, code = line.replace("UK", "GB").split(",")
            place = (code, names[code]) if code in names else NOWHERE
            if not any(IPv6Address(first) in network for network in NOT_PLACES):
                yield number(first), (int(IPv6Address(last)) + 1 >> 64) - 2**63, place


def starts(ranges: Iterable[Range], lowest: int) -> dict[int, Place]:
    """Where each place starts: gaps become nowhere, neighbours of one place become one."""
    edges = {lowest: NOWHERE}
    for first, after, place in ranges:
        if first < after:
            edges |= {first: place, after: NOWHERE}
    by_place = groupby(sorted(edges.items()), key=lambda edge: edge[1])
    return {next(group)[0]: place for place, group in by_place}


def write(path: Path, found: dict[int, Place], source: tuple[str, ...]) -> None:
    ids = {place: n for n, place in enumerate(sorted({NOWHERE, *found.values()}))}
    with closing(sqlite3.connect(path)) as db:
        db.executescript(SCHEMA)
        db.executemany("INSERT INTO place VALUES (?, ?, ?)", ((ids[p], *p) for p in ids))
        db.executemany("INSERT INTO range VALUES (?, ?)", ((s, ids[p]) for s, p in found.items()))
        db.executemany("INSERT INTO source VALUES (?, ?, ?, ?)", (source, CLDR))
        db.commit()
        db.execute("VACUUM")


def check(path: Path) -> None:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as db:
        for address, place in (KNOWN | dict.fromkeys(KNOWN_NOWHERE.split(), NOWHERE)).items():
            if (":" in address) == (path.name == "places6.db"):
                found = db.execute(LOOK_UP, (number(address),)).fetchone()
                if found != place:
                    sys.exit(f"{path.name}: {address} in {found}, not {place}; nothing replaced")
        odd = [name for (name,) in db.execute("SELECT location FROM place") if ODD.search(name)]
        if odd:
            sys.exit(f"{path.name}: odd names {odd}; nothing replaced")
        (count,) = db.execute("SELECT count(*) FROM range").fetchone()
    print(f"{path.name}: {count} ranges, {path.stat().st_size} bytes")


def main() -> None:
    STATIC.mkdir(exist_ok=True)
    with TemporaryDirectory() as packages, TemporaryDirectory(dir=STATIC) as aside:
        folder = Path(packages)
        places4, places6 = Path(aside, "places4.db"), Path(aside, "places6.db")
        fetch(folder)
        names = country_names(folder)
        write(places4, starts(ranges_4(folder, names), 0), IP2REGION)
        write(places6, starts(ranges_6(folder, names), -(2**63)), IPFIRE)
        check(places4)
        check(places6)
        for path in (places4, places6):
            path.replace(STATIC / path.name)


if __name__ == "__main__":
    main()
