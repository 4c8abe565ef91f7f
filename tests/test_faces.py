"""Pictures beside comments: readers choose one of the owner's gallery or show one of their own, and
the service looks for those of guests elsewhere, if the owner wants that."""

import base64
import hashlib
import io
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from commentd import App, Config, make_app
from support.admin import owner as owner  # a fixture
from support.client import PAGE, Visitor
from support.commands import findings, run_here
from support.inside import sql
from support.world import FakeWorld

EMAIL = "Ann@Example.com"


def drawn(color: str = "teal", format: str = "PNG", side: int = 64) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (side, side), color).save(file, format)
    return file.getvalue()


def noise(side: int) -> bytes:
    """A picture of many bytes."""
    file = io.BytesIO()
    Image.effect_noise((side, side), 100).save(file, "PNG")
    return file.getvalue()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A gallery of two pictures, beside files that are none."""
    made = tmp_path / "faces"
    made.mkdir()
    (made / "Fox.png").write_bytes(drawn("orange"))
    (made / "猫.webp").write_bytes(drawn("gray", "WEBP"))
    (made / "notes.txt").write_text("<svg onload=alert(1)>")
    (made / "large.png").write_bytes(noise(300))
    (made / "broken.png").write_bytes(b"\x89PNG\r\n")
    (made / "inside").mkdir()
    return made


@pytest.fixture
def settings(folder: Path) -> dict[str, Any]:
    return {"comments_faces": str(folder), "limits_enabled": False}


@pytest.fixture
def guest(app: App) -> Visitor:
    """Somebody who is not signed in."""
    return Visitor(app, "203.0.113.8")


def gallery(visitor: Visitor) -> dict[str, str]:
    return {face["title"]: face["picture"] for face in visitor.get("/faces").json["faces"]}


def picture(visitor: Visitor) -> Any:
    """That beside the newest comment."""
    return visitor.listing()["comments"][0]["picture"]


# The gallery


def test_a_gallery_is_listed_by_the_names_of_its_files(visitor: Visitor) -> None:
    faces = gallery(visitor)
    assert [*faces] == ["Fox", "猫"]
    assert visitor.get(f"/pictures/{faces['Fox']}").body == drawn("orange")
    response = visitor.get(f"/pictures/{faces['猫']}")
    assert (response.body, response.content_type) == (drawn("gray", "WEBP"), "image/webp")
    assert "max-age=31536000" in response.headers["Cache-Control"]
    assert visitor.listing(view="threads")["settings"]["faces"] is True


def test_a_guest_shows_a_picture_of_the_gallery(visitor: Visitor, folder: Path) -> None:
    fox = gallery(visitor)["Fox"]
    assert visitor.say("hi", face=fox)["comment"]["picture"] == fox
    assert picture(visitor) == fox
    assert f"/pictures/{fox}" in visitor.get("/fragment", {"url": PAGE}).text
    visitor.say("without")
    assert picture(visitor) == ""


def test_a_picture_that_is_not_in_the_gallery_leaves_the_letter(visitor: Visitor) -> None:
    for face in ("0" * 32, "Fox", "../Fox.png", ""):
        visitor.say(f"with {face}", face=face)
        assert picture(visitor) == ""
    visitor.get("/pictures/" + "0" * 32, status=404)


def test_a_comment_keeps_its_picture_when_the_owner_takes_it_from_the_gallery(
    config: Config, settings: dict[str, Any], fake_world: FakeWorld, folder: Path
) -> None:
    config = replace(config, **settings)
    with closing(make_app(config, fake_world.world, rounds=1)) as app:
        visitor = Visitor(app)
        fox = gallery(visitor)["Fox"]
        visitor.say("hi", face=fox)
    (folder / "Fox.png").unlink()
    with closing(make_app(config, fake_world.world, rounds=1)) as app:
        visitor = Visitor(app)
        assert "Fox" not in gallery(visitor)
        assert picture(visitor) == fox
        assert visitor.get(f"/pictures/{fox}").body == drawn("orange")
        sql(app, "UPDATE comment SET status = 'spam', hidden_at = 1")
        for _ in range(2):
            fake_world.time += 61
            app.tick()
        assert sql(app, "SELECT count(*) FROM face") == [(0,)]
        visitor.get(f"/pictures/{fox}", status=404)


def test_an_account_shows_a_picture_of_the_gallery_beside_all_its_comments(
    ann: Visitor, guest: Visitor
) -> None:
    ann.say("before")
    fox, cat = gallery(ann).values()
    assert ann.post_json("/me/picture", {"face": "0" * 32}, status=400).json["code"] == (
        "face_invalid"
    )
    name = ann.post_json("/me/picture", {"face": fox}).json["picture"]
    assert picture(guest) == name != fox
    assert guest.get(f"/pictures/{name}").body == drawn("orange")
    ann.say("again", face=cat)  # that is for guests
    assert picture(guest) == name
    ann.delete_json("/me/picture", {})
    assert picture(guest) == ""
    # A gallery alone lets nobody send a file.
    upload(ann, drawn(), status=400)


@pytest.mark.parametrize("settings", [{"comments_faces": "/nowhere"}])
def test_a_gallery_that_is_not_there_stops_no_service(visitor: Visitor) -> None:
    assert visitor.get("/faces").json == {"faces": []}
    visitor.say("hi", face="0" * 32)
    assert picture(visitor) == ""
    assert "faces" not in visitor.listing(view="threads")["settings"]


@pytest.mark.parametrize("settings", [{}])
def test_a_blog_without_faces_offers_none(visitor: Visitor, app: App) -> None:
    assert visitor.get("/faces").json == {"faces": []}
    visitor.say("hi", face="0" * 32)
    assert "picture" not in visitor.listing()["comments"][0]
    assert not {"faces", "pictures"} & {*visitor.listing(view="threads")["settings"]}


def test_check_names_the_files_that_readers_do_not_see(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "commentd.ini").write_text("[comments]\nfaces = faces\n")
    _, text, _ = run_here(tmp_path, "check")
    for name in ("notes.txt", "large.png", "broken.png", "inside"):
        assert f"{name} is no still PNG, JPEG or WebP of at most 20 kB" in text
    assert "Fox.png" not in text
    (tmp_path / "commentd.ini").write_text("[comments]\nfaces = nowhere\n")
    _, text, _ = run_here(tmp_path, "check")
    assert "nowhere: readers see no gallery" in text


def test_check_says_that_readers_see_two_hundred_faces_at_most(tmp_path: Path) -> None:
    faces = tmp_path / "faces"
    faces.mkdir()
    (faces / "1.png").write_bytes(drawn())
    for number in range(2, 201):
        (faces / f"{number}.png").hardlink_to(faces / "1.png")
    chosen = {"COMMENTD_COMMENTS_FACES": str(faces)}
    assert findings("faces", tmp_path, **chosen) == []
    (faces / "ours.png").hardlink_to(faces / "1.png")
    said = f"{faces} has more than 200 files: readers see the first ones"
    assert findings("faces", tmp_path, **chosen) == [("warn", said)]
    config = Config(database_path=str(tmp_path / "x.db"), comments_faces=str(faces))
    with closing(make_app(config)) as app:
        shown = gallery(Visitor(app))
    assert (len(shown), "ours" in shown) == (200, False)


# A picture of one's own


with_pictures = pytest.mark.parametrize("settings", [{"comments_pictures": True}])


def upload(visitor: Visitor, body: bytes, status: int = 200) -> Any:
    text = base64.b64encode(body).decode()
    return visitor.post_json("/me/picture", {"picture": text}, status=status).json


@with_pictures
def test_an_account_shows_a_picture_of_its_own(ann: Visitor, guest: Visitor) -> None:
    ann.say("hi")
    assert ann.get("/me").json["picture"] == ""
    for body in (drawn(), drawn("red", "JPEG"), drawn("blue", "WEBP")):
        name = upload(ann, body)["picture"]
        assert picture(guest) == ann.get("/me").json["picture"] == name
        shown = guest.get(f"/pictures/{name}")
        assert Image.open(io.BytesIO(shown.body)).size == (128, 128)
        assert len(shown.body) <= 20_000
    guest.post_json("/me/picture", {"picture": "x"}, status=401)


@with_pictures
def test_a_file_that_is_no_picture_is_refused(ann: Visitor) -> None:
    svg = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"
    for body in (svg, b"GIF89a", b"\x89PNG\r\n", drawn()[:80], b""):
        code = "picture_invalid" if body else "picture_missing"
        assert upload(ann, body, status=400)["code"] == code
    for text in ("not Base64!", "A"):
        refused = ann.post_json("/me/picture", {"picture": text}, status=400)
        assert refused.json["code"] == "picture_invalid"
    assert ann.get("/me").json["picture"] == ""


@with_pictures
def test_a_picture_loses_what_else_stood_in_its_file(ann: Visitor, guest: Visitor) -> None:
    file = io.BytesIO()
    image = Image.new("RGB", (64, 64), "teal")
    image.save(file, "JPEG", exif=image.getexif().tobytes() + b"secret place")
    name = upload(ann, file.getvalue())["picture"]
    assert b"secret place" not in guest.get(f"/pictures/{name}").body


@with_pictures
def test_an_account_changes_its_picture_twenty_times_an_hour(ann: Visitor) -> None:
    for _ in range(20):
        upload(ann, drawn())
    assert upload(ann, drawn(), status=429)["code"] == "too_many"


@with_pictures
def test_a_blocked_account_has_no_picture_any_more(
    ann: Visitor, guest: Visitor, owner: Visitor, app: App
) -> None:
    ann.say("hi")
    first = upload(ann, drawn())["picture"]
    email = ann.get("/me").json["email"]
    owner.post_json("/admin/blocks", {"kind": "email", "value": email, "sure": True})
    assert picture(guest) == ""
    guest.get(f"/pictures/{first}", status=404)
    second = upload(ann, drawn())["picture"]
    user_id = sql(app, "SELECT user_id FROM picture")[0][0]
    owner.patch_json(f"/admin/users/{user_id}", {"blocked": True})
    guest.get(f"/pictures/{second}", status=404)


# Pictures from elsewhere


class Elsewhere:
    """The servers of others: what they send for a URL, and what they were asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answers: dict[str, tuple[int, bytes]] = {}  # by the beginning of the URL
        self.fails = False

    def fetch(
        self,
        url: str,
        message: bytes | None = None,
        headers: Any = None,
        /,
        most: int = 0,
        *,
        is_named_by_others: bool = False,
    ) -> tuple[int, bytes]:
        assert is_named_by_others  # from the open internet alone
        assert headers == {"accept": "image/webp, image/png, image/jpeg"}
        self.asked.append(url)
        if self.fails:
            raise OSError("down")
        found = [answer for start, answer in self.answers.items() if url.startswith(start)]
        status, body = found[0] if found else (404, b"")
        return status, body[:most]


@pytest.fixture
def elsewhere() -> Elsewhere:
    return Elsewhere()


GRAVATAR = "https://www.gravatar.com/avatar/"
OpenBlog = Callable[..., App]


@pytest.fixture
def open_blog(config: Config, fake_world: FakeWorld, elsewhere: Elsewhere) -> Iterator[OpenBlog]:
    """Opens a blog that looks for pictures at these services."""
    apps = []

    def open_blog(*services: str) -> App:
        world = replace(fake_world.world, fetch=elsewhere.fetch)
        wanted = replace(config, comments_avatars=services, limits_enabled=False)
        apps.append(make_app(wanted, world, rounds=1))
        return apps[-1]

    yield open_blog
    for app in apps:
        app.close()


def look_up(app: App) -> None:
    """Does all that is due."""
    for _ in range(5):
        for work in app.listeners():
            assert work() == 2  # seconds to the next one


def test_the_picture_of_a_guest_is_looked_for_once_a_week(
    open_blog: OpenBlog, elsewhere: Elsewhere, fake_world: FakeWorld
) -> None:
    elsewhere.answers[GRAVATAR] = (200, drawn())
    app = open_blog("gravatar")
    visitor = Visitor(app)
    visitor.say("hi", email=EMAIL)
    assert (picture(visitor), elsewhere.asked) == ("", [])
    look_up(app)
    hashed = hashlib.sha256(b"ann@example.com").hexdigest()
    assert elsewhere.asked == [f"{GRAVATAR}{hashed}?s=128&d=404&r=g"]
    name = picture(visitor)
    assert Image.open(io.BytesIO(visitor.get(f"/pictures/{name}").body)).size == (128, 128)
    assert name not in hashed
    visitor.say("again", email=EMAIL)
    assert picture(visitor) == name  # at once
    look_up(app)
    assert len(elsewhere.asked) == 1
    fake_world.time += 7 * 86400
    look_up(app)
    assert len(elsewhere.asked) == 2
    assert picture(visitor) == name  # it is the same: caches keep it
    elsewhere.answers[GRAVATAR] = (200, drawn("red"))
    fake_world.time += 7 * 86400
    look_up(app)
    newer = picture(visitor)
    assert newer not in ("", name)
    visitor.get(f"/pictures/{newer}")
    elsewhere.answers.clear()
    fake_world.time += 7 * 86400
    look_up(app)
    assert picture(visitor) == ""


def test_a_guest_without_an_email_address_is_looked_for_nowhere(
    open_blog: OpenBlog, elsewhere: Elsewhere
) -> None:
    app = open_blog("gravatar", "qq")
    visitor = Visitor(app)
    visitor.say("hi")
    look_up(app)
    assert elsewhere.asked == []
    visitor.say("hi", email=EMAIL)
    look_up(app)
    assert len(elsewhere.asked) == 1


def test_services_are_asked_in_their_order_for_what_they_may_know(
    open_blog: OpenBlog, elsewhere: Elsewhere
) -> None:
    elsewhere.answers["https://cravatar.com/"] = (200, drawn())
    app = open_blog("qq", "libravatar", "cravatar", "gravatar")
    visitor = Visitor(app)
    visitor.say("hi", email="10001@qq.com")
    look_up(app)
    sha256 = hashlib.sha256(b"10001@qq.com").hexdigest()
    assert elsewhere.asked == [
        "https://q1.qlogo.cn/g?b=qq&nk=10001&s=140",
        f"https://seccdn.libravatar.org/avatar/{sha256}?s=128&d=404&gravatarproxy=n",
        f"https://cravatar.com/avatar/{sha256}?s=128&d=404&r=g",
    ]
    assert picture(visitor) != ""
    elsewhere.asked.clear()
    visitor.say("hi", email="ann@qq.com")
    look_up(app)
    assert not any("qlogo" in url for url in elsewhere.asked)


def test_a_service_that_is_down_is_asked_again_the_next_day(
    open_blog: OpenBlog, elsewhere: Elsewhere, fake_world: FakeWorld
) -> None:
    elsewhere.answers[GRAVATAR] = (200, drawn())
    app = open_blog("gravatar")
    visitor = Visitor(app)
    visitor.say("hi", email=EMAIL)
    look_up(app)
    name = picture(visitor)
    fake_world.time += 7 * 86400
    for broken in (True, False):
        elsewhere.fails = broken
        elsewhere.answers[GRAVATAR] = (503, b"")
        look_up(app)
        assert picture(visitor) == name
        before = len(elsewhere.asked)
        fake_world.time += 86400 - 1
        look_up(app)
        assert len(elsewhere.asked) == before
        fake_world.time += 1


def test_a_response_that_is_no_picture_is_left_out(
    open_blog: OpenBlog, elsewhere: Elsewhere
) -> None:
    app = open_blog("gravatar")
    visitor = Visitor(app)
    for number, body in enumerate((b"<svg/>", b"", drawn()[:70], b"x" * 2_000_000)):
        elsewhere.answers[GRAVATAR] = (200, body)
        visitor.say(f"no. {number}", email=f"guest{number}@example.com")
        look_up(app)
        assert picture(visitor) == ""


def test_a_picture_that_was_chosen_wins_over_one_from_elsewhere(
    config: Config, fake_world: FakeWorld, elsewhere: Elsewhere, folder: Path
) -> None:
    elsewhere.answers[GRAVATAR] = (200, drawn())
    both = replace(config, comments_avatars=("gravatar",), comments_faces=str(folder))
    world = replace(fake_world.world, fetch=elsewhere.fetch)
    with closing(make_app(both, world, rounds=1)) as app:
        visitor = Visitor(app)
        visitor.say("plain", email=EMAIL)
        fox = gallery(visitor)["Fox"]
        visitor.say("chosen", email=EMAIL, face=fox)
        look_up(app)
        chosen, plain = visitor.listing()["comments"]
        assert chosen["picture"] == fox
        assert plain["picture"] not in ("", fox)


def test_pictures_from_elsewhere_go_with_the_comments_and_with_the_setting(
    open_blog: OpenBlog, elsewhere: Elsewhere, fake_world: FakeWorld
) -> None:
    elsewhere.answers[GRAVATAR] = (200, drawn())
    app = open_blog("gravatar")
    visitor = Visitor(app)
    posted = visitor.say("hi", email=EMAIL)
    look_up(app)
    token = {"edit_token": posted["edit_token"]}
    visitor.delete_json(f"/comments/{posted['comment']['id']}", token)
    fake_world.time += 61
    app.tick()
    assert sql(app, "SELECT count(*) FROM face") == sql(app, "SELECT count(*) FROM avatar")
    assert sql(app, "SELECT count(*) FROM face") == [(0,)]
    visitor.say("again", email=EMAIL)
    look_up(app)
    assert picture(visitor) != ""
    app.close()
    app = open_blog()
    app.tick()
    assert sql(app, "SELECT count(*) FROM face") == [(0,)]
    assert sql(app, "SELECT count(*) FROM avatar") == [(0,)]
    assert sql(app, "SELECT DISTINCT face FROM comment") == [("",)]
