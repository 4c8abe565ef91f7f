"""Pictures of accounts beside their comments: offered by a provider, fetched once by the service,
and served from it."""

import base64
import io
import socket
import struct
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import webtest
from PIL import Image

import commentd
from commentd import App, Config, make_app
from support import inside
from support.admin import owner as owner  # a fixture
from support.captcha import Siteverify
from support.client import CANARY, PAGE, Visitor
from support.inside import sql
from support.login import BLOG, SECRET, SERVICE, Reader, Refusing, section
from support.mail import certificates as certificates  # a fixture
from support.provider import Provider
from support.serving import until
from support.shared import shared_app
from support.sources import STATIC
from support.world import FakeWorld


def drawn(side: int = 64, format: str = "PNG", **more: Any) -> bytes:
    """A picture with so many pixels on each side."""
    file = io.BytesIO()
    Image.new("RGB", (side, side), (0, 128, 128)).save(file, format, **more)
    return file.getvalue()


def chunk(name: bytes, content: bytes) -> bytes:
    body = name + content
    return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))


def png_that_says(width: int, height: int) -> bytes:
    """A small file whose head promises so many pixels."""
    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    empty = zlib.compress(b"")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", empty) + chunk(b"IEND", b"")


def segment(marker: int, content: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, 2 + len(content)) + content


def jpeg_head(side: int) -> bytes:
    return segment(0xC0, struct.pack(">BHHBBBB", 8, side, side, 1, 1, 0x11, 0))


def png_head(side: int) -> bytes:
    return chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))


def png_with(*chunks: bytes) -> bytes:
    """A whole PNG of 3000 pixels on each side, all black. Its first chunks are these."""
    body = chunk(b"IDAT", zlib.compress(bytes(3001 * 3000))) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks) + body


def jpeg_of_scans(count: int) -> bytes:
    """A grey JPEG of 64 pixels on each side, drawn in so many steps that add nothing."""
    one_code = bytes([1] + [0] * 15)
    frame = segment(0xC2, struct.pack(">BHHBBBB", 8, 64, 64, 1, 1, 0x11, 0))
    tables = segment(0xDB, b"\0" + bytes([1] * 64)) + segment(0xC4, b"\x10" + one_code + b"\x60")
    # One code that stands for the end of all 64 blocks.
    scan = segment(0xDA, b"\x01\x01\x00\x01\x3f\x00") + bytes([0b00000001])
    return b"\xff\xd8" + frame + tables + scan * count + b"\xff\xd9"


def noise(side: int) -> bytes:
    """A picture of many bytes."""
    file = io.BytesIO()
    Image.effect_noise((side, side), 100).save(file, "PNG")
    return file.getvalue()


def moving(format: str) -> bytes:
    file = io.BytesIO()
    frames = [Image.new("RGB", (32, 32), color) for color in ("red", "blue")]
    frames[0].save(file, format, save_all=True, append_images=frames[1:], duration=100)
    return file.getvalue()


def offer_picture(provider: Provider, world: FakeWorld) -> None:
    """From now on its Ann has a picture."""
    provider.now = int(world.time)
    provider.person["picture"] = f"{provider.issuer}/ann"
    show(provider, drawn())


@pytest.fixture
def provider(fake_world: FakeWorld) -> Iterator[Provider]:
    with closing(Provider()) as server:
        offer_picture(server, fake_world)
        yield server


def show(provider: Provider, body: bytes, status: str = "200 OK", head: str = "") -> None:
    """What the provider sends as the picture of Ann."""
    start = f"HTTP/1.1 {status}\r\n{head}Content-Length: {len(body)}\r\n\r\n"
    provider.raw["/ann"] = [start.encode(), body], 0


def settings_with(provider: Provider) -> dict[str, Any]:
    return {
        "login_providers": (section("own", provider), section("github", provider, "github")),
        "server_public_url": SERVICE,
        "site_origins": (BLOG,),
        "limits_enabled": False,
        "comments_pictures": True,
    }


@pytest.fixture
def settings(provider: Provider) -> dict[str, Any]:
    return settings_with(provider)


@pytest.fixture
def reader(app: App) -> Reader:
    return Reader(app)


@pytest.fixture(scope="module")
def shared(
    tmp_path_factory: pytest.TempPathFactory, empty_database: Path
) -> Iterator[tuple[App, Provider]]:
    folder = tmp_path_factory.mktemp("shared")
    with (
        closing(Provider()) as provider,
        shared_app(folder, empty_database, FakeWorld(), **settings_with(provider)) as app,
    ):
        yield app, provider


@pytest.fixture
def refusing(shared: tuple[App, Provider]) -> Refusing:
    """Nobody has an account, and nothing was asked of the provider."""
    app, provider = shared
    provider.start_anew()
    offer_picture(provider, FakeWorld())
    sql(app, "DELETE FROM account")
    return Refusing(app, Reader(app), provider)


@pytest.fixture
def without_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)


def fetched(provider: Provider) -> int:
    """How often the service has asked for the picture."""
    return [path for path, _ in provider.asked].count("/ann")


def signed_in(app: App, token: str) -> Visitor:
    visitor = Visitor(app)
    visitor.authorization = ("Bearer", token)
    return visitor


@pytest.fixture
def ann(app: App, reader: Reader, provider: Provider) -> Visitor:
    """A reader who shows her picture, and has written a comment."""
    ann = signed_in(app, reader.sign_in(provider, nickname="Ann", picture=True)["token"])
    ann.say("hello")
    return ann


def listed(app: App) -> str:
    """The picture beside the newest comment."""
    name: str = Visitor(app).listing()["comments"][0]["picture"]
    return name


def test_a_picture_is_offered_and_never_taken_without_a_word(
    app: App, reader: Reader, provider: Provider
) -> None:
    voucher = reader.fetch_voucher(provider)
    assert reader.log_in(voucher, 403)["picture"] is True
    ann = signed_in(app, reader.log_in(voucher, nickname="Ann")["token"])
    ann.say("hello")
    assert (listed(app), fetched(provider)) == ("", 0)
    assert provider.issuer + "/ann" not in str(sql(app, "SELECT * FROM voucher"))


def test_a_picture_is_fetched_once_and_served_by_the_service(
    app: App, ann: Visitor, provider: Provider
) -> None:
    name = listed(app)
    response = Visitor(app).get(f"/pictures/{name}")
    assert fetched(provider) == 1
    assert response.content_type == "image/webp"
    with Image.open(io.BytesIO(response.body)) as image:
        assert image.size == (128, 128)
    assert len(response.body) <= 20_000
    headers = response.headers
    assert "max-age=31536000" in headers["Cache-Control"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert headers["Cross-Origin-Resource-Policy"] == "cross-origin"
    Visitor(app).get("/pictures/" + "0" * 32, status=404)


def test_a_comment_shows_its_picture_in_every_form(app: App, ann: Visitor) -> None:
    name = listed(app)
    reader = Visitor(app)
    script = reader.get("/embed.js").text
    assert script.endswith((STATIC / "portrait.js").read_text("utf-8") + "}\n")
    assert ".avatar img" in script
    assert reader.listing(view="threads")["comments"][0]["picture"] == name
    assert f'src="{SERVICE}/pictures/{name}"' in reader.get("/fragment", {"url": PAGE}).text
    assert reader.get("/comments/latest").json["comments"][0]["picture"] == name
    assert ann.say("again")["comment"]["picture"] == name


def test_a_comment_that_a_guest_signed_with_the_address_shows_no_picture(
    app: App, reader: Reader, provider: Provider
) -> None:
    Visitor(app).say("not hers", email="ann@example.com")
    reader.sign_in(provider, nickname="Ann", picture=True)
    assert sql(app, "SELECT user_id FROM comment") == [(1,)]
    assert listed(app) == ""


UNUSABLE = {
    "a drawing that may hold scripts": b"<svg xmlns='http://www.w3.org/2000/svg'></svg>",
    "a page": b"<html><script>alert(1)</script>",
    "a film": b"GIF89a" + bytes(100),
    "nothing": b"",
    "a head alone": b"\x89PNG\r\n\x1a\n",
    "a frame alone": b"\xff\xd8\xff\xc0\x00",
    "a JPEG without a frame": b"\xff\xd8\xff\xe0\x00\x04ab" * 50,
    "a WebP of an unknown sort": b"RIFF\x10\0\0\0WEBPVP9 " + bytes(40),
    "one that takes gigabytes": png_that_says(50_000, 50_000),
    "one without pixels": png_that_says(0, 10),
    "a PNG that hides its head": png_with(chunk(b"prVt", struct.pack(">II", 9, 9)), png_head(3000)),
    # A browser passes over the marker, and finds the large head that the comment seems to hold.
    "a JPEG that hides its head": b"\xff\xd8"
    + segment(0x01, jpeg_head(30_000) + b"\xff\xfe\0\x13")
    + jpeg_head(9)
    + bytes(8),
    "one that takes minutes": jpeg_of_scans(101),
    "one that moves": moving("PNG"),
    "another that moves": moving("WEBP"),
    "one that is too wide": drawn(2049),
    "one of too many bytes": drawn().ljust(1_000_001, b"\0"),
}


@pytest.mark.parametrize("with_pillow", [True, False])
@pytest.mark.parametrize("what", UNUSABLE)
def test_a_file_that_is_no_still_picture_is_refused_and_signs_in_all_the_same(
    refusing: Refusing, monkeypatch: pytest.MonkeyPatch, what: str, with_pillow: bool
) -> None:
    app, reader, provider = refusing
    show(provider, UNUSABLE[what])
    if not with_pillow:
        monkeypatch.setitem(sys.modules, "PIL", None)
    assert reader.sign_in(provider, nickname="Ann", picture=True)["token"]
    assert fetched(provider) == 1
    assert sql(app, "SELECT count(*) FROM picture") == [(0,)]


def test_pillow_takes_no_memory_for_a_second_head_that_is_larger(
    app: App, reader: Reader, provider: Provider
) -> None:
    show(provider, png_with(png_head(9), png_head(3000)))
    reader.sign_in(provider, nickname="Ann", picture=True)
    assert fetched(provider) == 1
    assert sql(app, "SELECT count(*) FROM picture") == [(0,)]


@pytest.mark.parametrize(
    ("status", "head"),
    [("404 No", ""), ("302 Found", "Location: http://127.0.0.1:1/\r\n"), ("500 No", "")],
)
def test_a_picture_that_is_elsewhere_or_not_there_is_left_out(
    refusing: Refusing, status: str, head: str
) -> None:
    app, reader, provider = refusing
    show(provider, drawn(), status, head)
    assert reader.sign_in(provider, nickname="Ann", picture=True)["token"]
    assert sql(app, "SELECT count(*) FROM picture") == [(0,)]


SMALL = {
    "PNG": drawn(1024),
    "JPEG": drawn(1024, "JPEG"),
    "JPEG in steps": drawn(1024, "JPEG", progressive=True),
    "JPEG in many steps": jpeg_of_scans(100),
    "WebP": drawn(1024, "WEBP"),
    "WebP without a loss": drawn(100, "WEBP", lossless=True),
    "as many bytes as are stored": drawn().ljust(20_000, b"\0"),
}


@pytest.mark.parametrize("name", SMALL)
def test_without_pillow_a_small_file_is_stored_as_it_is(
    app: App, reader: Reader, provider: Provider, without_pillow: None, name: str
) -> None:
    show(provider, SMALL[name])
    reader.sign_in(provider, nickname="Ann", picture=True)
    assert sql(app, "SELECT body FROM picture") == [(SMALL[name],)]


TOO_LARGE = [drawn().ljust(20_001, b"\0"), drawn(1025), drawn(1100, "JPEG")]


@pytest.mark.parametrize("picture", TOO_LARGE, ids=len)
def test_without_pillow_a_large_file_is_refused(
    refusing: Refusing, without_pillow: None, picture: bytes
) -> None:
    app, reader, provider = refusing
    show(provider, picture)
    reader.sign_in(provider, nickname="Ann", picture=True)
    assert sql(app, "SELECT count(*) FROM picture") == [(0,)]


def test_with_pillow_a_large_file_is_made_small_and_loses_what_else_it_told(
    app: App, reader: Reader, provider: Provider
) -> None:
    place = Image.Exif()
    place[0x010E] = "at home"
    show(provider, drawn(900, "JPEG", quality=100, exif=place))
    reader.sign_in(provider, nickname="Ann", picture=True)
    ((body, media_type),) = sql(app, "SELECT body, media_type FROM picture")
    assert media_type == "image/webp"
    assert b"at home" not in body


LARGEST = {
    "pixels": drawn(2048),
    "bytes": drawn().ljust(1_000_000, b"\0"),
    "bytes that all count": noise(800),
}


@pytest.mark.parametrize("most", LARGEST)
def test_with_pillow_the_largest_file_is_made_small(
    app: App, reader: Reader, provider: Provider, most: str
) -> None:
    show(provider, LARGEST[most])
    reader.sign_in(provider, nickname="Ann", picture=True)
    ((stored,),) = sql(app, "SELECT body FROM picture")
    assert Image.open(io.BytesIO(stored)).size == (128, 128)


def test_with_pillow_a_picture_is_the_middle_of_the_file_and_upright(
    app: App, reader: Reader, provider: Provider
) -> None:
    lying = Image.new("RGB", (400, 100), "white")
    lying.paste("red", (150, 0, 200, 100))
    lying.paste("blue", (200, 0, 250, 100))
    turned = Image.Exif()
    turned[0x0112] = 6  # its left side is the top
    file = io.BytesIO()
    lying.save(file, "PNG", exif=turned)
    show(provider, file.getvalue())
    reader.sign_in(provider, nickname="Ann", picture=True)
    ((stored,),) = sql(app, "SELECT body FROM picture")
    picture = Image.open(io.BytesIO(stored)).convert("RGB")
    assert picture.size == (128, 128)
    colours = [picture.resize((1, 1), box=(0, top, 128, top + 64)) for top in (0, 64)]
    (top, _, _), (bottom, _, _) = (each.tobytes() for each in colours)
    assert top > 200 > 50 > bottom  # how much red there is


def test_the_head_of_a_picture_tells_its_size() -> None:
    for format in ("PNG", "JPEG", "WEBP"):
        for more in ({}, {"lossless": True}) if format == "WEBP" else ({},):
            file = io.BytesIO()
            Image.new("RGB", (301, 77)).save(file, format, **more)
            assert commentd.picture_size(file.getvalue()) == (301, 77), (format, more)
    file = io.BytesIO()
    Image.new("RGBA", (301, 77)).save(file, "WEBP", exif=b"Exif\0\0II*\0\x08\0\0\0\0\0")
    assert commentd.picture_size(file.getvalue()) == (301, 77)


# What somebody may write as the URL of their picture must not lead into a private network.


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1/me",
        "http://pictures.example/me",
        "https://pictures.example:8443/me",
        "https://ann@pictures.example/me",
        "ftp://pictures.example/me",
        "file:///etc/passwd",
        "data:image/png;base64,AAAA",
        "//pictures.example/me",
        "https://pictures.example/\nme",
        "https://pictures.example/" + "x" * 1100,
        "https:///me",
        "https://[::1",
        7,
        None,
    ],
)
def test_a_picture_at_an_odd_url_is_not_offered(refusing: Refusing, url: object) -> None:
    refusing.provider.person["picture"] = url
    assert refusing.reader.sign_in(refusing.provider)["picture"] is False


def test_a_picture_elsewhere_is_fetched_from_the_open_internet_alone() -> None:
    """Names of it may lead to any address. One of a private network is not even connected to: how
    long that takes would tell which servers are there, and TLS would send them the name."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"https://localhost:{server.getsockname()[1]}/"
        with pytest.raises(OSError, match="no server of the open internet"):
            commentd.fetch(url, is_named_by_others=True)
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.fixture
def pictures_elsewhere(
    certificates: Callable[[str], tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Siteverify]:
    """A server that counts as one of the open internet, with the name `pictures.example`."""
    certificate = certificates("DNS:pictures.example")
    monkeypatch.setenv("SSL_CERT_FILE", certificate[0])
    monkeypatch.setattr(commentd, "is_public_ip", lambda text: True)
    with closing(Siteverify("turnstile", certificate)) as server:
        yield server


@pytest.mark.parametrize(
    ("addresses", "is_reached"),
    [
        (["127.0.0.1"], True),
        (["::1", "127.0.0.1"], True),  # nobody listens at the first
        (["127.0.0.2", "127.0.0.1"], False),
    ],
)
def test_a_server_elsewhere_is_tried_once_by_each_version_of_ip(
    pictures_elsewhere: Siteverify,
    monkeypatch: pytest.MonkeyPatch,
    addresses: list[str],
    is_reached: bool,
) -> None:
    """A name with hundreds of addresses that do not respond would keep sign-ins waiting."""
    ask = socket.getaddrinfo

    def found(host: str, port: int, *how: Any, **named: Any) -> list[Any]:
        numbers = addresses if host == "pictures.example" else [host]
        return [each for number in numbers for each in ask(number, port, *how, **named)]

    monkeypatch.setattr(socket, "getaddrinfo", found)
    url = f"https://pictures.example:{pictures_elsewhere.server_address[1]}/"
    if is_reached:
        status, _ = commentd.fetch(url, is_named_by_others=True)
        assert status == 501  # it knows no GET
    else:
        with pytest.raises(OSError, match="can't be reached"):
            commentd.fetch(url, is_named_by_others=True)


@pytest.mark.parametrize(
    ("address", "is_public"),
    [
        ("8.8.8.8", True),
        ("2a00:1450:4001:82a::200e", True),
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("::1", False),
        ("fe80::1%eth0", False),
        ("fd00::1", False),
        ("ff02::1", False),
        ("::ffff:10.0.0.1", False),
        ("::ffff:224.0.0.1", False),
        ("::ffff:8.8.8.8", True),
    ],
)
def test_addresses_of_private_networks_are_known(address: str, is_public: bool) -> None:
    assert commentd.is_public_ip(address) is is_public


# Later


def voucher_of(app: App, provider: Provider) -> dict[str, str]:
    return {"voucher": Reader(app).fetch_voucher(provider), "voucher_secret": SECRET}


def test_a_reader_takes_a_picture_later_and_removes_it(
    app: App, reader: Reader, provider: Provider
) -> None:
    ann = signed_in(app, reader.sign_in(provider, nickname="Ann")["token"])
    ann.say("hello")
    assert ann.get("/me").json["picture"] == ""
    name = ann.post_json("/me/picture", voucher_of(app, provider)).json["picture"]
    assert listed(app) == name == ann.get("/me").json["picture"]
    again = ann.post_json("/me/picture", voucher_of(app, provider)).json["picture"]
    assert listed(app) == again != name
    Visitor(app).get(f"/pictures/{name}", status=404)
    ann.delete("/me/picture")
    assert listed(app) == "" == ann.get("/me").json["picture"]
    Visitor(app).get(f"/pictures/{again}", status=404)


def test_no_picture_comes_once_the_owner_has_turned_them_off(
    app: App, reader: Reader, provider: Provider
) -> None:
    ann = signed_in(app, reader.sign_in(provider, nickname="Ann")["token"])
    voucher = voucher_of(app, provider)
    inside.set_settings(app, comments_pictures=False)
    refused = ann.post_json("/me/picture", voucher, status=409)
    assert refused.json["code"] == "provider_no_picture"
    assert fetched(provider) == 0


def test_a_picture_comes_with_an_identity_that_joins_an_account(
    app: App, reader: Reader, provider: Provider
) -> None:
    inside.add_account(app, "ann@example.com", "Ann", CANARY)
    password = {"email": "ann@example.com", "password": CANARY, "captcha_token": "x"}
    joined = reader.log_in(reader.fetch_voucher(provider), **password, picture=True)
    signed_in(app, joined["token"]).say("hello")
    assert listed(app) != ""


def test_a_picture_comes_from_an_identity_of_the_reader_alone(
    app: App, ann: Visitor, provider: Provider
) -> None:
    provider.person |= {"sub": "Bob-2", "email": "bob@example.com"}
    refused = ann.post_json("/me/picture", voucher_of(app, provider), status=403)
    assert refused.json["code"] == "provider_refused"
    provider.person |= {"sub": "Ann-1"}
    used = voucher_of(app, provider)
    ann.post_json("/me/picture", used)
    ann.post_json("/me/picture", used, status=403)
    show(provider, b"no picture")
    refused = ann.post_json("/me/picture", voucher_of(app, provider), status=409)
    assert refused.json["code"] == "provider_no_picture"
    assert listed(app)  # the last one stays


def test_a_voucher_that_is_used_while_its_picture_is_fetched_brings_none(
    app: App, ann: Visitor, reader: Reader, provider: Provider
) -> None:
    ann.delete("/me/picture")
    proof = voucher_of(app, provider)
    parts, pause = provider.raw["/ann"]

    def after_a_sign_in() -> Iterator[bytes]:
        reader.log_in(proof["voucher"])
        yield from parts

    provider.raw["/ann"] = after_a_sign_in(), pause
    client = webtest.TestApp(app)  # the sign-in changes the database while this is refused
    client.authorization = ann.authorization
    assert client.post_json("/me/picture", proof, status=403).json["code"] == "provider_refused"
    assert ann.get("/me").json["picture"] == ""


def test_an_account_that_is_signed_out_while_its_picture_is_fetched_gets_none(
    app: App, ann: Visitor, reader: Reader, provider: Provider
) -> None:
    ann.delete("/me/picture")
    parts, pause = provider.raw["/ann"]

    def after_the_end() -> Iterator[bytes]:
        ann.post_json("/auth/logout", {})
        yield from parts

    provider.raw["/ann"] = after_the_end(), pause
    reader.sign_in(provider, picture=True)
    assert fetched(provider) == 2
    assert sql(app, "SELECT count(*) FROM picture") == [(0,)]


class Held:
    """The parts of a response that begins when a test says so."""

    def __init__(self) -> None:
        self.may_begin = threading.Event()

    def __iter__(self) -> Iterator[bytes]:
        self.may_begin.wait()
        yield b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"


def test_readers_sign_in_while_pictures_are_waited_for(
    app: App, ann: Visitor, provider: Provider
) -> None:
    proofs = [voucher_of(app, provider) for _ in range(2)]
    held = Held()
    provider.raw["/ann"] = held, 0
    with ThreadPoolExecutor(2) as threads:
        try:
            for proof in proofs:
                visitor = signed_in(app, ann.authorization[1])
                threads.submit(visitor.post_json, "/me/picture", proof, status="*")
            until(lambda: fetched(provider) == 3)
            came = voucher_of(app, provider)
        finally:
            held.may_begin.set()
    assert came["voucher"]


def test_an_admin_removes_a_picture(app: App, ann: Visitor, owner: Visitor) -> None:
    name = listed(app)
    users = owner.get("/admin/users").json["users"]
    (number,) = [user["id"] for user in users if user["picture"] == name]
    assert owner.delete(f"/admin/users/{number}/picture").json == {"success": True}
    assert listed(app) == ""
    Visitor(app).get(f"/pictures/{name}", status=404)
    assert owner.get("/admin/audit").json["audit"][0]["action"] == "remove_picture"
    owner.delete("/admin/users/999/picture", status=404)


def test_a_picture_is_exported_and_deleted_with_the_account(
    app: App, ann: Visitor, provider: Provider
) -> None:
    name = listed(app)
    stored = Visitor(app).get(f"/pictures/{name}").body
    exported = ann.get("/me/export").json["picture"]
    assert exported == {
        "url": f"data:image/webp;base64,{base64.b64encode(stored).decode()}",
        "stored_at": "2026-11-18 19:06:40",
    }
    reader = Reader(app)
    came = reader.come_back("own", **provider.approve(reader.begin(confirm="yes")))
    proof = {"voucher": came.voucher, "voucher_secret": SECRET}
    ann.delete_json("/me", {**proof, "comments": "keep"})
    assert listed(app) == ""
    assert sql(app, "SELECT count(*) FROM picture") == [(0,)]
    Visitor(app).get(f"/pictures/{name}", status=404)


@pytest.mark.parametrize(
    ("path", "query"), [("/ann", {"s": "128"}), ("/ann?v=4", {"v": "4", "s": "128"})]
)
def test_github_names_a_picture_that_is_asked_for_as_small_as_it_is_shown(
    reader: Reader, provider: Provider, path: str, query: dict[str, str]
) -> None:
    provider.person = {"id": 5, "login": "ann", "avatar_url": f"{provider.issuer}{path}"}
    provider.emails = [{"email": "ann@example.com", "primary": True, "verified": True}]
    reader.sign_in(provider, "github", nickname="Ann", picture=True)
    assert ("/ann", query) in provider.asked


def test_a_blog_without_pictures_pays_nothing_for_them(
    config: Config, settings: dict[str, Any], fake_world: FakeWorld, provider: Provider
) -> None:
    off = replace(config, **{**settings, "comments_pictures": False})
    with closing(make_app(off, fake_world.world, rounds=1)) as app:
        reader = Reader(app)
        voucher = reader.fetch_voucher(provider)
        assert reader.log_in(voucher, 403)["picture"] is False
        token = reader.log_in(voucher, nickname="Ann", picture=True)["token"]
        ann = signed_in(app, token)
        assert "picture" not in ann.say("hello")["comment"]
        assert "picture" not in ann.get("/me").json
        assert fetched(provider) == 0
        text = Visitor(app).get("/embed.js").text
        assert "pictures/" not in text
        assert ".avatar img" not in text
        assert "<img" not in Visitor(app).get("/fragment", {"url": PAGE}).text
        # Also one that is there since the setting was on.
        number = sql(app, "SELECT id FROM account")[0][0]
        inside.sql(
            app,
            "INSERT INTO picture (name, user_id, media_type, body, stored_at)"
            " VALUES ('aa', ?, 'image/png', ?, 1)",
            number,
            drawn(),
        )
        Visitor(app).get("/pictures/aa", status=404)
