"""`commentd add`: a further blog beside the first one, and the service that takes it up."""

import configparser
import itertools
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from commentd import Arguments, BlogSettings, BlogsToServe, Sites, load_config, make_app
from support.client import CANARY, COMMENT, PAGE, registration
from support.commands import run_here
from support.database import assert_whole
from support.service import LOOPS, Service
from support.serving import until

A, B = "comments.a.example", "comments.b.example"
LIST = f"/comments?url={PAGE}"
SETTINGS = {
    "server": {"listen": "127.0.0.1:0", "public_url": f"https://{A}"},
    "site": {"origins": "https://a.example", "timezone": "Europe/Berlin"},
}
# In the environment, for all blogs.
WITHOUT_LIMITS = {"COMMENTD_CAPTCHA_PROVIDER": "none", "COMMENTD_LIMITS_ENABLED": "no"}


def write_first(folder: Path, **sections: dict[str, str]) -> Path:
    """The settings of an owner with one blog."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_dict(SETTINGS)
    parser.read_dict(sections)
    file = folder / "commentd.ini"
    with file.open("w") as text:
        parser.write(text)
    file.chmod(0o600)
    return file


def settings_in(file: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    assert parser.read(file) == [str(file)]
    return parser


def test_a_blog_is_added_by_one_command_that_says_what_comes_next(tmp_path: Path) -> None:
    write_first(tmp_path)
    code, output, errors = run_here(tmp_path, "add", "b.example")
    assert (code, errors) == (0, "")
    assert output.startswith("https://b.example is added: blogs/b.example.ini\n")
    assert "The service is not running: it serves this blog when it starts.\n" in output
    assert re.search(rf"Become admin: https://{B}/admin#link=[0-9a-f]{{32}} \(works once", output)
    assert f'<script src="https://{B}/embed.js" async></script>' in output
    assert f"{B} leads to this machine" in output
    file = tmp_path / "blogs/b.example.ini"
    settings = settings_in(file)
    assert settings["server"]["public_url"] == f"https://{B}"
    assert settings["site"]["origins"] == "https://b.example"
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert_whole(str(tmp_path / "blogs/b.example.db"))
    assert sorted(path.name for path in (tmp_path / "blogs").glob("*.part")) == []


def added_beside_proxies(folder: Path, *words: str) -> tuple[int, str]:
    """`add` on a machine with nginx and Caddy: the exit code, and what it says."""
    for name in ("nginx", "caddy"):
        program = folder / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    code, output, _ = run_here(folder, "add", *words, PATH=str(folder / "bin"))
    return code, output


def test_an_owner_who_adds_a_blog_reads_what_nginx_and_caddy_need(tmp_path: Path) -> None:
    write_first(tmp_path)
    _, output = added_beside_proxies(tmp_path, "b.example")
    steps = output.partition("leads to this machine\n\n")[2]
    command = re.search(r"\S+ .*example nginx", steps)
    assert command, output
    assert steps.startswith(f"""\
nginx, as root (the file of all blogs is written anew):
  certbot certonly --nginx -d {B} --deploy-hook "systemctl reload nginx"
  {command[0]} > /etc/nginx/conf.d/commentd.conf
  nginx -t && systemctl reload nginx

Caddy: add this to /etc/caddy/Caddyfile, and run systemctl reload caddy:
  https://{B} {{
""")


def test_settings_that_an_owner_has_for_all_blogs_are_written_for_the_new_one(
    tmp_path: Path,
) -> None:
    mail = {"host": "mail.example", "user": "me@a.example", "password": "100% se;cret"}
    write_first(
        tmp_path,
        mail=mail,
        notify={"owner": "me@a.example", "pages": "/x/* = ann@a.example"},
        site={"name": "The blog A"},
        token={"key": CANARY * 4},
    )
    assert run_here(tmp_path, "add", "b.example")[0] == 0
    settings = settings_in(tmp_path / "blogs/b.example.ini")
    assert dict(settings["mail"]) == mail
    assert dict(settings["notify"]) == {"owner": "me@a.example"}
    assert dict(settings["site"]) == {"origins": "https://b.example", "timezone": "Europe/Berlin"}
    assert "token" not in settings
    assert "listen" not in settings["server"]


def test_the_database_of_a_new_blog_is_beside_that_of_the_first(tmp_path: Path) -> None:
    """As in Debian's package, where the service writes to no other folder."""
    (tmp_path / "settings").mkdir()
    (tmp_path / "data").mkdir()
    data = tmp_path / "data"
    write_first(
        tmp_path / "settings",
        database={"path": str(data / "commentd.db")},
        backup={"folder": str(data / "backups")},
    )
    assert run_here(tmp_path / "settings", "add", "b.example")[0] == 0
    settings = settings_in(tmp_path / "settings/blogs/b.example.ini")
    assert settings["database"]["path"] == str(data / "b.example.db")
    assert settings["backup"]["folder"] == str(data / "backups")
    assert_whole(str(data / "b.example.db"))


def test_a_blog_that_is_added_twice_is_left_as_it_is(tmp_path: Path) -> None:
    write_first(tmp_path)
    first_time = run_here(tmp_path, "add", "b.example")[1]
    file = tmp_path / "blogs/b.example.ini"
    before = file.read_text()
    code, output, errors = run_here(tmp_path, "add", "https://b.example/a/post/")
    assert (code, errors) == (0, "")
    assert output.startswith(
        "https://b.example is there already, in blogs/b.example.ini: nothing was changed.\n"
    )
    assert file.read_text() == before
    assert [*(tmp_path / "blogs").glob("*.ini")] == [file]
    link = re.compile(r"#link=\w+")
    assert link.sub("", output.partition("\n")[2]) == link.sub("", first_time.partition("\n")[2])


SPELLINGS = {
    "B.Example": ("b.example", "https://b.example", f"https://{B}"),
    "https://b.example/": ("b.example", "https://b.example", f"https://{B}"),
    "http://b.example": ("b.example", "http://b.example", f"https://{B}"),
    "www.b.example": ("www.b.example", "https://www.b.example", f"https://{B}"),
    "b.example:8443": ("b.example-8443", "https://b.example:8443", f"https://{B}"),
    "博客.例子": (
        "xn--9krq6q.xn--fsqu00a",
        "https://xn--9krq6q.xn--fsqu00a",
        "https://comments.xn--9krq6q.xn--fsqu00a",
    ),
    "ｂ．ｅｘａｍｐｌｅ": ("b.example", "https://b.example", f"https://{B}"),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_blog_is_named_as_owners_write_it(tmp_path: Path, spelling: str) -> None:
    name, origin, public_url = SPELLINGS[spelling]
    write_first(tmp_path)
    code, _, errors = run_here(tmp_path, "add", spelling)
    assert (code, errors) == (0, "")
    settings = settings_in(tmp_path / f"blogs/{name}.ini")
    assert settings["site"]["origins"] == origin
    assert settings["server"]["public_url"] == public_url


def test_comments_of_a_new_blog_are_at_the_url_that_is_named(tmp_path: Path) -> None:
    write_first(tmp_path)
    url = "https://b.example/talk/"
    code, output = added_beside_proxies(tmp_path, "b.example", "--url", url)
    assert code == 0
    settings = settings_in(tmp_path / "blogs/b.example.ini")
    assert settings["server"]["public_url"] == "https://b.example/talk"
    assert "https://b.example/talk/admin#link=" in output
    lines = "nginx: put the lines that this command prints where they say:\n  "
    assert re.search(rf"\n{lines}\S+ .*example nginx\n\n", output)
    assert "certbot" not in output


def test_a_service_on_the_own_network_keeps_scheme_and_port(tmp_path: Path) -> None:
    write_first(tmp_path, server={"public_url": "http://comments.home.example:8080"})
    assert run_here(tmp_path, "add", "photos.home.example")[0] == 0
    settings = settings_in(tmp_path / "blogs/photos.home.example.ini")
    assert settings["server"]["public_url"] == "http://comments.photos.home.example:8080"
    assert settings["site"]["origins"] == "http://photos.home.example"


WRONG = {
    ("b",): "b: write the host of the blog, such as blog.example",
    ("",): ": write the host of the blog, such as blog.example",
    ("b example",): "b example: write the host of the blog, such as blog.example",
    ("me@b.example",): "me@b.example: write the host of the blog, such as blog.example",
    ("../b.example",): "../b.example: write the host of the blog, such as blog.example",
    ("--", "-b.example"): "-b.example: write the host of the blog, such as blog.example",
    ("ftp://b.example",): "ftp://b.example: write the host of the blog, such as blog.example",
    ("192.0.2.7",): "192.0.2.7: an IP address has no further hosts: name one with --url URL",
    ("b.example", "--url", "b"): "--url b: must be a URL such as https://comments.example",
    ("b.example", "--url", f"https://{A}/b"): (
        "blogs/b.example.ini: [server] public_url has the same host as in commentd.ini"
    ),
}


@pytest.mark.parametrize("words", WRONG)
def test_a_blog_of_a_wrong_name_or_url_is_refused_and_nothing_is_written(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    write_first(tmp_path)
    code, output, errors = run_here(tmp_path, "add", *words)
    assert (code, output) == (2, "")
    assert errors == f"commentd: {WRONG[words]}\n"
    assert [*tmp_path.glob("blogs/*")] == []


def test_a_first_blog_without_a_url_is_told_what_it_needs(tmp_path: Path) -> None:
    write_first(tmp_path, server={"public_url": ""})
    code, _, errors = run_here(tmp_path, "add", "b.example")
    text = "of several blogs, each needs its [server] public_url"
    assert (code, errors) == (2, f"commentd: commentd.ini: {text}\n")
    assert [*tmp_path.glob("blogs/*")] == []


def test_a_blog_is_not_added_over_a_settings_file_of_another(tmp_path: Path) -> None:
    write_first(tmp_path)
    assert run_here(tmp_path, "add", "c.example")[0] == 0
    file = (tmp_path / "blogs/c.example.ini").rename(tmp_path / "blogs/b.example.ini")
    before = file.read_text()
    code, output, errors = run_here(tmp_path, "add", "b.example")
    text = "blogs/b.example.ini is there already, for another blog: delete it, or correct it"
    assert (code, output, errors) == (1, "", f"commentd: {text}\n")
    assert file.read_text() == before
    assert [*(tmp_path / "blogs").glob("*.ini")] == [file]


def test_a_blog_that_a_service_does_not_take_up_is_told_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where it is of an older version, which looks for no further blogs."""
    file = write_first(tmp_path)
    monkeypatch.chdir(tmp_path)
    with closing(make_app(load_config(file, {}))):
        monkeypatch.setattr(time, "monotonic", itertools.count(0.0, 11.0).__next__)
        code, output, errors = run_here(tmp_path, "add", "b.example")
    assert (code, errors) == (0, "")
    assert "\nThe service that runs has not taken it up.\nTo use it" in output
    assert f"Become admin: https://{B}/admin#link=" in output


def test_check_speaks_of_all_blogs_and_names_what_is_wrong_with_one(tmp_path: Path) -> None:
    write_first(tmp_path)
    assert run_here(tmp_path, "add", "b.example")[0] == 0
    _, output, _ = run_here(tmp_path, "check")
    assert re.findall(r"^(\S+\.ini)$", output, re.M) == ["commentd.ini", "blogs/b.example.ini"]
    assert re.findall(r"public_url +(\S+) +\S+ini$", output, re.M) == [
        f"https://{A}",
        f"https://{B}",
    ]
    file = tmp_path / "blogs/b.example.ini"
    file.write_text(file.read_text().replace("public_url", "publik_url"))
    code, _, errors = run_here(tmp_path, "check")
    assert code == 2
    assert "blogs/b.example.ini: [server] publik_url: there is no such setting" in errors


@pytest.mark.slow
def test_commands_without_a_name_are_for_the_first_blog_also_while_another_is_wrong(
    tmp_path: Path,
) -> None:
    write_first(tmp_path)
    assert run_here(tmp_path, "add", "b.example")[0] == 0
    (tmp_path / "blogs/b.example.ini").write_text("nonsense")
    with running(tmp_path) as service:
        code, output, _ = run_here(tmp_path, "admin", "me@a.example")
        assert code == 0
        assert f"https://{A}/admin#link=" in output
        assert service.stop() == 0


def test_printed_files_for_systemd_and_proxies_serve_all_blogs(tmp_path: Path) -> None:
    write_first(tmp_path)
    before = run_here(tmp_path, "example", "systemd")[1]
    assert run_here(tmp_path, "add", "b.example")[0] == 0
    assert run_here(tmp_path, "example", "systemd")[1] == before
    for kind in ("nginx", "caddy"):
        printed = run_here(tmp_path, "example", kind)[1]
        assert A in printed
        assert B in printed


# The service


class Blogs(Service):
    """`commentd`, as an owner with one blog has it, in the folder of its settings."""

    def __init__(self, folder: Path, *arguments: str, **environ: str) -> None:
        self.log = folder / "log"
        self.path = folder / "commentd.db"
        self.begin("", *arguments, folder=folder, **WITHOUT_LIMITS, **environ)


@contextmanager
def running(folder: Path, *arguments: str, **environ: str) -> Iterator[Service]:
    service = Blogs(folder, *arguments, **environ)
    try:
        yield service.greeted()
    finally:
        service.end()


def contents(service: Service, host: str) -> list[str]:
    listed = service.ask("GET", LIST, host=host)
    assert listed.status == 200
    return [comment["content"] for comment in listed.json["comments"]]


def say(service: Service, host: str, content: str) -> None:
    said = service.ask("POST", "/comments", body={**COMMENT, "content": content}, host=host)
    assert said.status == 200, said


@pytest.mark.slow
@pytest.mark.parametrize("loop", LOOPS)
def test_a_running_service_takes_a_new_blog_up_at_once(tmp_path: Path, loop: str) -> None:
    write_first(tmp_path, server=LOOPS[loop])
    with running(tmp_path) as service:
        say(service, A, "of a")
        # The proxy of the new blog may be there before the blog.
        for _ in range(3):
            assert contents(service, B) == ["of a"]
        code, output, errors = run_here(tmp_path, "add", "b.example")
        assert (code, errors) == (0, "")
        assert "The service that runs has taken it up: no restart is needed.\n" in output
        assert contents(service, B) == []
        assert contents(service, A) == ["of a"]
        say(service, B, "of b")
        assert contents(service, B) == ["of b"]
        assert contents(service, A) == ["of a"]
        account = registration("lu@b.example")
        assert service.ask("POST", "/auth/register", body=account, host=B).status == 200
        until(lambda: "lu@b.example" in service.output)  # where the email with the code is printed
        (link,) = re.findall(rf"https://{B}/admin#link=(\w+)", output)
        form = {"email": "me@b.example", "nickname": "Me", "password": CANARY, "link": link}
        refused = service.ask("POST", "/admin/claim", body=form, host=A)
        assert refused.json["code"] == "link_invalid"
        # It is good after a restart, too.
        assert service.stop() == 0
    with running(tmp_path) as service:
        assert contents(service, B) == ["of b"]
        assert service.ask("POST", "/admin/claim", body=form, host=B).status == 200
        assert service.ask("GET", "/health", host="127.0.0.1").json == {"ok": True}
        assert service.stop() == 0
        assert "Traceback" not in service.output
    for path in (tmp_path / "commentd.db", tmp_path / "blogs/b.example.db"):
        assert_whole(str(path))
    _, output, _ = run_here(tmp_path, "add", "b.example")
    assert f"  Moderate: https://{B}/admin\n" in output


@pytest.mark.slow
def test_a_blog_is_added_where_the_first_one_is_set_by_the_environment(tmp_path: Path) -> None:
    """As in a container. What the environment says of the first blog is not for the new one."""
    environ = {
        "COMMENTD_SERVER_LISTEN": "127.0.0.1:0",
        "COMMENTD_SERVER_PUBLIC_URL": f"https://{A}",
        "COMMENTD_SITE_ORIGINS": "https://a.example",
        "COMMENTD_SITE_NAME": "The blog A",
        "COMMENTD_TOKEN_KEY": "a key of the first blog, of enough characters",
    }
    with running(tmp_path, **environ) as service:
        code, output, errors = run_here(tmp_path, "add", "b.example", **environ)
        assert (code, errors) == (0, "")
        assert "has taken it up" in output
        for host, other in ((A, "b.example"), (B, "a.example")):
            say(service, host, f"on {host}")
            assert contents(service, host) == [f"on {host}"]
            feed = service.ask("GET", "/feed.atom", host=host).body.decode()
            assert other not in feed
        assert service.stop() == 0


@pytest.mark.slow
def test_a_blog_is_served_although_the_settings_of_another_are_wrong(tmp_path: Path) -> None:
    write_first(tmp_path)
    for name in ("b", "c"):
        assert run_here(tmp_path, "add", f"{name}.example")[0] == 0
    file = tmp_path / "blogs/b.example.ini"
    right = file.read_text()
    file.write_text(right + "\n[mail]\nhots = mail.example\n")
    with running(tmp_path) as service:
        for host in (A, "comments.c.example"):
            say(service, host, f"on {host}")
        assert "blogs/b.example.ini is not served: " in service.output
        assert "[mail] hots: there is no such setting; did you mean [mail] host?" in service.output
        assert service.ask("GET", LIST, host=B).status == 421
        assert service.ask("GET", "/health", host="127.0.0.1").status == 503
        assert service.ask("GET", "/health", host=A).status == 200
        file.write_text(right)
        until(lambda: service.ask("GET", LIST, host=B).status == 200)
        until(lambda: service.ask("GET", "/health", host="127.0.0.1").status == 200)
        assert service.stop() == 0


@pytest.mark.slow
@pytest.mark.parametrize("broken", [A, B])
def test_a_blog_is_served_although_the_database_of_another_is_broken(
    tmp_path: Path, broken: str
) -> None:
    write_first(tmp_path)
    assert run_here(tmp_path, "add", "b.example")[0] == 0
    with running(tmp_path) as service:
        for host in (A, B):
            say(service, host, f"on {host}")
        assert service.stop() == 0
    paths = {A: tmp_path / "commentd.db", B: tmp_path / "blogs/b.example.db"}
    whole = B if broken == A else A
    kept = paths[broken].with_suffix(".kept")
    shutil.copy(paths[broken], kept)
    paths[broken].write_bytes(b"no database at all " * 300)
    with running(tmp_path) as service:
        assert contents(service, whole) == [f"on {whole}"]
        say(service, whole, "more")
        refused = service.ask("GET", LIST, host=broken)
        assert (refused.status, refused.json["code"]) == (503, "storage")
        assert service.ask("GET", "/health", host=broken).status == 503
        assert service.ask("GET", "/health", host="127.0.0.1").status == 503
        assert service.ask("GET", "/health", host=whole).status == 200
        assert f"{paths[broken]}" in service.output
        assert service.stop() == 0
        assert "Traceback" not in service.output


def test_no_service_starts_where_no_blog_can_be_served(tmp_path: Path) -> None:
    write_first(tmp_path)
    (tmp_path / "commentd.db").write_bytes(b"no database at all " * 300)
    code, _, errors = run_here(tmp_path, "serve")
    assert code == 1
    assert f"{tmp_path / 'commentd.db'}" in errors


def test_a_blog_whose_database_is_a_copy_is_not_served_until_it_has_a_key_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write_first(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert run_here(tmp_path, "add", "b.example")[0] == 0
    first = BlogSettings(Path("commentd.ini"), load_config(Path("commentd.ini"), {}))
    make_app(first.config).close()
    shutil.copy("commentd.db", "blogs/b.example.db")
    with closing(Sites([])) as sites:
        blogs = BlogsToServe(Arguments(command="serve", blogs=[first]), sites)
        blogs.look()
        assert [app.site.config.public_host for app in sites.apps] == [A]
        assert sites.missing_hosts == {B}
        assert "blogs/b.example.ini is not served: " in caplog.text
        assert "as a copy has: set a [token] key for this blog" in caplog.text
        with Path("blogs/b.example.ini").open("a") as file:
            file.write(f"[token]\nkey = {CANARY * 4}\n")
        blogs.look()
        assert [app.site.config.public_host for app in sites.apps] == [A, B]
        assert sites.missing_hosts == set()


def test_a_blog_with_the_key_of_another_one_is_not_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An admin of one would be an admin of both."""
    write_first(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in ("b.example", "c.example"):
        assert run_here(tmp_path, "add", name)[0] == 0
        with Path(f"blogs/{name}.ini").open("a") as file:
            file.write(f"[token]\nkey = {CANARY * 4}\n")
    first = BlogSettings(Path("commentd.ini"), load_config(Path("commentd.ini"), {}))
    with closing(Sites([])) as sites:
        BlogsToServe(Arguments(command="serve", blogs=[first]), sites).look()
    assert [app.site.config.public_host for app in sites.apps] == [A, B]
    assert "[token] key is the same as in blogs/b.example.ini" in caplog.text


def test_a_blog_is_served_as_soon_as_its_named_file_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file = write_first(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert run_here(tmp_path, "add", "b.example")[0] == 0
    away = Path("blogs/b.example.ini").rename("away.ini")
    first = BlogSettings(file, load_config(file, {}))
    arguments = Arguments(command="serve", named=(str(file), "b.ini"), blogs=[first])
    with closing(Sites([])) as sites:
        blogs = BlogsToServe(arguments, sites)
        blogs.look()
        assert [app.site.config.public_host for app in sites.apps] == [A]
        assert "b.ini is not served: " in caplog.text
        away.rename("b.ini")
        blogs.look()
        assert [app.site.config.public_host for app in sites.apps] == [A, B]


# Who is an admin of several blogs


def claim(service: Service, host: str, link: str, email: str) -> str:
    """The header of who has become an admin by that link."""
    form = {"email": email, "nickname": email, "password": CANARY, "link": link}
    claimed = service.ask("POST", "/admin/claim", body=form, host=host)
    assert claimed.status == 200, claimed
    return f"Authorization: Bearer {claimed.json['token']}"


def links_for(service: Service, host: str) -> list[str]:
    return re.findall(rf"https://{host}/admin#link=(\w+)", service.output)


def other_blogs(service: Service, host: str, token: str) -> list[dict[str, object]]:
    listed = service.ask("GET", "/admin/comments", token, host=host)
    assert listed.status == 200
    found: list[dict[str, object]] = listed.json["blogs"]
    return found


@pytest.mark.slow
def test_an_admin_of_several_blogs_finds_all_from_each_and_nobody_else_hears_of_them(
    tmp_path: Path,
) -> None:
    write_first(tmp_path, site={"name": "The blog A"})
    for words in (["b.example"], ["博客.cn", "--url", "https://comments.c.example"]):
        assert run_here(tmp_path, "add", *words)[0] == 0
    file = tmp_path / "blogs/b.example.ini"
    file.write_text(f"{file.read_text()}[moderation]\nhold = all\n")
    c = "comments.c.example"
    with running(tmp_path) as service:
        until(lambda: all(links_for(service, host) for host in (A, B, c)))
        mine = {
            host: claim(service, host, links_for(service, host)[0], "me@a.example")
            for host in (A, B)
        }
        theirs = claim(service, c, links_for(service, c)[0], "they@c.example")
        say(service, B, "please read this")
        of_a = {"name": "The blog A", "url": f"https://{A}/admin", "waiting": 0}
        of_b = {"name": "b.example", "url": f"https://{B}/admin", "waiting": 1}
        assert other_blogs(service, A, mine[A]) == [of_b]
        assert other_blogs(service, B, mine[B]) == [of_a]
        assert other_blogs(service, c, theirs) == []
        of_file = ("--config", "blogs/xn--9krq6q.cn.ini")
        output = run_here(tmp_path, *of_file, "admin", "me@a.example")[1]
        (link,) = re.findall(r"#link=(\w+)", output)
        claim(service, c, link, "me@a.example")
        of_c = {"name": "博客.cn", "url": f"https://{c}/admin", "waiting": 0}
        assert other_blogs(service, A, mine[A]) == [of_b, of_c]
        # An admin of one is a reader on the other.
        output = run_here(tmp_path, "--config", str(file), "admin", "bob@b.example")[1]
        (link,) = re.findall(r"#link=(\w+)", output)
        assert other_blogs(service, B, claim(service, B, link, "bob@b.example")) == []
        # While the database of one is away, the others are moderated.
        path = tmp_path / "blogs/b.example.db"
        away = path.rename(path.with_suffix(".away"))
        until(lambda: service.ask("GET", "/health", host=B).status == 503)
        assert other_blogs(service, A, mine[A]) == [of_c]
        away.rename(path)
        until(lambda: other_blogs(service, A, mine[A]) == [of_b, of_c])
        assert service.stop() == 0


@pytest.mark.slow
def test_blogs_of_files_that_are_named_may_be_of_different_people(tmp_path: Path) -> None:
    """They hear nothing of each other, although both name the same email address."""
    write_first(tmp_path)
    assert run_here(tmp_path, "add", "b.example")[0] == 0
    file = (tmp_path / "blogs/b.example.ini").rename(tmp_path / "b.ini")
    with running(tmp_path, "serve", "commentd.ini", file.name) as service:
        until(lambda: all(links_for(service, host) for host in (A, B)))
        for host in (A, B):
            token = claim(service, host, links_for(service, host)[0], "me@a.example")
            assert other_blogs(service, host, token) == []
        assert service.stop() == 0
