"""The program in a process of its own, over real sockets: its responses, what it refuses before
any route is asked, whom it serves first, how it starts and stops. `test_origins.py` has the headers
that pages of other sites depend on, `test_hostile_clients.py` has hostile peers."""

import contextlib
import gc
import json
import re
import shutil
import signal
import socket
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest
import waitress

from commentd import BODY_LIMIT, Config, main, make_app
from support import inside
from support.campaign import Campaign
from support.client import CANARY, COMMENT, PAGE
from support.database import assert_whole
from support.patience import PATIENCE
from support.service import (
    AS_JSON,
    BLOG,
    CHUNKED,
    FOREIGN,
    HEALTH,
    LIST,
    LOGIN,
    LOOPS,
    PIECES,
    POLICY,
    Answer,
    Service,
    Start,
    answer_on,
    chunked,
    copied_program,
    held_at_rest,
    held_descriptors,
    memory,
    padded,
    request,
    rows,
    services,
    with_comments,
)
from support.service import start as start  # a fixture
from support.serving import (
    PATIENT,
    UNHURRIED,
    GatedServer,
    RunningServer,
    fast_and_stock_servers,
    until,
)
from support.world import FakeWorld

pytestmark = pytest.mark.slow

JSON = "application/json; charset=utf-8"


@pytest.fixture(scope="module")
def shared_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that tests share: what they compare is on a page of their own, or a change."""
    with services(tmp_path_factory.mktemp("quiet")) as start:
        yield start(server={"trusted_proxy": "127.0.0.1"})


@pytest.fixture(scope="module")
def stock_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service behind a stock waitress."""
    with services(tmp_path_factory.mktemp("stock")) as start:
        yield start(server=LOOPS["stock"])


@pytest.fixture(params=["shared_service", "stock_service"])
def each_service(request: pytest.FixtureRequest) -> Service:
    service: Service = request.getfixturevalue(request.param)
    return service


def assert_safe(response: Answer) -> None:
    """Checks the headers that every response of the API has, and those that none has."""
    headers = response.headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Content-Security-Policy"] == POLICY
    assert headers["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert headers["Vary"] == "Accept-Encoding, Origin, Authorization"
    assert not {"Server", "Via", "X-Powered-By", "Set-Cookie"} & {h.title() for h in headers}
    assert "Access-Control-Allow-Credentials" not in headers


# What is served


def post(*headers: str, body: bytes = b"{}", target: str = "/comments") -> bytes:
    return request("POST", target, *headers, body=body)


ELSEWHERE = {**COMMENT, "page_url": "/wire/"}


def test_a_comment_is_posted_and_listed_over_the_wire(each_service: Service) -> None:
    target = "/comments?url=/listed/"
    head = each_service.ask("HEAD", target)
    posted = each_service.ask("POST", "/comments", body={**COMMENT, "page_url": "/listed/"})
    listed = each_service.ask("GET", target)
    assert (head.status, posted.status, listed.status) == (200, 200, 200)
    assert (head.body, listed.json["views"]) == (b"", 1), "HEAD is no view"
    assert posted.json.keys() == {"success", "comment", "edit_token"}
    assert listed.json["comments"] == [
        {key: value for key, value in posted.json["comment"].items() if key != "status"}
    ]
    for response in (head, posted, listed):
        assert response.headers["Content-Type"] == JSON
        assert_safe(response)
    again, get = each_service.ask("HEAD", target).headers, each_service.ask("GET", target).headers
    for headers in (again, get):
        del headers["Date"], headers["Etag"]  # the view is in the body
    assert again.items() == get.items()


def test_a_connection_serves_many_requests(each_service: Service) -> None:
    asked = [
        (request("POST", "/comments", body=ELSEWHERE), 200),
        (request("HEAD", f"/comments?url={PAGE}"), 200),
        (request("GET", "/nothing/here"), 404),
        (request("POST", "/comments", "Content-Type: text/plain", body=b"x"), 415),
        (LIST, 200),
    ]
    with each_service.connect() as connection:
        for raw, status in asked:
            connection.sendall(raw)
            assert answer_on(connection, raw.split()[0].decode()).status == status, raw


def test_a_body_may_have_64_kib_and_a_url_8(each_service: Service) -> None:
    body = json.dumps(ELSEWHERE).encode().ljust(BODY_LIMIT)
    assert each_service.raw(post(AS_JSON + "; charset=UTF-8", body=body)).status == 200
    target = "/comments?limit=1&url=/&x=".ljust(8 * 1024, "a")
    assert each_service.ask("GET", target).status == 200


def test_a_pipeline_of_any_length_is_answered(shared_service: Service) -> None:
    last = request("GET", "/health", "Connection: close")
    with shared_service.sent(LIST * 200 + last) as connection:
        answered = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answered.count(b"HTTP/1.1 200 OK") == 201
    assert answered.endswith(b'{"ok":true}')


def test_a_backup_comes_whole_and_the_connection_serves_on(
    config: Config, fake_world: FakeWorld, tmp_path: Path
) -> None:
    how = replace(config, server_listen="127.0.0.1:0")
    with closing(make_app(how, fake_world.world, rounds=1)) as app:
        with_comments(inside.database_path(app), 4000)
        inside.add_account(app, "ann@example.com", "Ann", CANARY, "admin")
        token = inside.token_of(app, "ann@example.com", "admin")
        form = {"password": CANARY}
        asked = request("POST", "/admin/backup", f"Authorization: Bearer {token}", body=form)
        with fast_and_stock_servers(app) as servers:
            for server in servers:
                backup, health = server.responses(asked, HEALTH)
                copy = tmp_path / "copy.db"
                copy.write_bytes(backup.partition(b"\r\n\r\n")[2])
                assert_whole(str(copy))
                with closing(sqlite3.connect(copy)) as db:
                    assert db.execute("SELECT count(*) FROM comment").fetchone() == (100,)
                assert health.endswith(b'{"ok":true}')


# What is refused

ENDLESS = f"Content-Length: {2 * BODY_LIMIT}"  # announced, not sent
REFUSED = {
    "no such path": (request("GET", "/nothing/here"), 404, "not_found"),
    "no such file": (request("GET", "/nothing"), 404, "not_found"),
    "method": (request("DELETE", "/comments"), 405, "method_not_allowed"),
    "odd method": (request("BREW", "/comments"), 405, "method_not_allowed"),
    "body": (post(AS_JSON, body=padded(BODY_LIMIT + 1)), 413, "body_too_large"),
    "body announced": (post(AS_JSON, ENDLESS, body=b""), 413, "body_too_large"),
    "long URL": (request("GET", "/" + "a" * 16 * 1024), 431, "headers_too_large"),
    "no type": (post(), 415, "content_type"),
    "headers": (request("GET", "/", "X-Long: " + "a" * 16 * 1024), 431, "headers_too_large"),
    "no header": (request("GET", "/", "no colon"), 400, "http_invalid"),
    "no length": (request("POST", "/comments", "Content-Length: -1"), 400, "http_invalid"),
    "chunks": (post(AS_JSON, CHUNKED, body=chunked(b"{}")), 411, "length_required"),
    "other coding": (post(AS_JSON, "Transfer-Encoding: gzip"), 411, "length_required"),
    "no request": (b"\x16\x03\x01 hello\r\n\r\n", 400, "http_invalid"),
}


def assert_refused(response: Answer) -> None:
    assert response.json.keys() == {"error", "code"}
    assert response.json["error"]
    assert response.headers["Content-Type"] == JSON
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    assert_safe(response)


def test_every_refusal_is_json_with_security_headers(shared_service: Service) -> None:
    before = shared_service.ask("GET", f"/comments?url={PAGE}").json["total"]
    for case, (raw, status, code) in REFUSED.items():
        response = shared_service.raw(raw)
        assert (response.status, response.json["code"]) == (status, code), case
        assert_refused(response)
        if status == 405:
            assert set(response.headers["Allow"].split(",")) == {"GET", "POST"}
    assert shared_service.ask("GET", f"/comments?url={PAGE}").json["total"] == before


def test_refusals_of_admin_routes_have_no_cors_headers(shared_service: Service) -> None:
    long = (f"Origin: {BLOG}", "Content-Length: 1000000")
    response = shared_service.raw(request("POST", "/admin/login", *long))
    assert response.status == 413
    assert not [name for name in response.headers if name.lower().startswith("access-control-")]
    assert response.headers["Cache-Control"] == "no-store"


def test_a_verification_that_is_too_large_fails_like_any_other(shared_service: Service) -> None:
    response = shared_service.raw(post(AS_JSON, body=padded(BODY_LIMIT + 1), target="/auth/verify"))
    assert (response.status, response.body.decode()) == (413, "验证码错误或已过期")
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert_safe(response)


ALLOWED = {BLOG: BLOG, FOREIGN: None, "null": None}
BROKEN = {400: request("GET", "/", "Content-Length: x"), 413: post(AS_JSON, ENDLESS, body=b"")}


def test_refusals_of_the_parser_follow_the_settings(config: Config, fake_world: FakeWorld) -> None:
    how = replace(
        config,
        server_listen="127.0.0.1:0",
        site_origins=(BLOG,),
        server_public_url="https://comments.example",
    )
    with contextlib.ExitStack() as stack:
        app = stack.enter_context(closing(make_app(how, fake_world.world, rounds=1)))
        server = stack.enter_context(closing(RunningServer(app, fast=True)))
        for (origin, allowed), (status, raw) in product(ALLOWED.items(), BROKEN.items()):
            connection = server.connect()
            connection.sendall(raw.replace(b"\r\n", f"\r\nOrigin: {origin}\r\n".encode(), 1))
            response = answer_on(connection)
            assert response.status == status
            assert response.headers["Access-Control-Allow-Origin"] == allowed, (origin, status)
            assert response.headers["Strict-Transport-Security"] == "max-age=31536000"
            assert_safe(response)


# Whatever comes over the wire

LIKE = {"page_url": "/liked/"}
SEEDS = [
    request("GET", f"/comments?url={PAGE}&view=threads&page=1&limit=2"),
    request("GET", "/pages?url=/a/&url=/b/", f"Origin: {BLOG}", "Accept-Encoding: gzip"),
    request("HEAD", "/embed.js", "Connection: keep-alive", 'If-None-Match: "x"'),
    request("OPTIONS", "/comments", "Access-Control-Request-Method: POST", "Content-Length: 0"),
    request("GET", "/me", "Authorization: Bearer x.y.z", "X-Forwarded-For: 6.6.6.6"),
    request("POST", "/page/like", body=LIKE),
    request("POST", "/page/like", AS_JSON, CHUNKED, body=chunked(json.dumps(LIKE).encode())),
    request("POST", "/comments", "Expect: 100-continue", body=COMMENT),
    request("PATCH", "/comments/1", "Connection: close", body={"content": "x", "edit_token": "y"}),
    request("POST", "/auth/verify", body={"email": "ann@example.com", "token": "123456"}),
    request("POST", "/mail?do=stop&mac=x", body=b"List-Unsubscribe=One-Click"),
    request("GET", "http://other.example/health"),
    request("GET", "http://[::1/health"),
    b"GET /health HTTP/1.0\r\n\r\n",
]
STARTS = [b"", b"GET ", b"GET /comments", b"POST /comments HTTP/1.1\r\nHost: x\r\n"]


def mangled(chance: Random) -> bytes:
    """Requests that were cut, repeated and mixed with pieces of others."""
    raw = b"".join(chance.choices(SEEDS, k=chance.choice([1, 1, 1, 2, 3, 12])))
    if chance.random() < 0.2:
        raw = chance.choice(STARTS) + b"".join(chance.choices(PIECES, k=chance.randrange(12)))
    for _ in range(chance.choice([0, 1, 1, 2, 3, 8])):
        at, end = sorted(chance.choices(range(len(raw) + 1), k=2))
        if chance.random() < 0.5:  # where something begins
            at = chance.choice([0, *(found.end() for found in re.finditer(rb"[ \r\n:/]", raw))])
        end = at + min(abs(end - at), chance.choice([0, 1, 4, 40]))
        piece = chance.choice([*PIECES, chance.randbytes(3), raw[at:end] * 2, b"", b""])
        raw = raw[:at] + piece + raw[end:]
    return raw[: chance.randrange(len(raw) + 1)] if chance.random() < 0.3 else raw


def answers_in(received: bytes, sent: bytes) -> list[int]:
    """The statuses of the responses in a stream. Each must be whole and valid."""
    statuses = []
    while received:
        head, ended, received = received.partition(b"\r\n\r\n")
        found = re.match(rb"HTTP/1\.[01] (\d{3}) [A-Za-z -]+\r\n", head + b"\r\n")
        assert ended
        assert found, head
        if head == b"HTTP/1.1 100 Continue":
            continue
        headers = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        bare = b"HEAD" in sent and received[:5] in (b"", b"HTTP/")  # or there is no body to take
        size = 0 if bare else int(headers.get(b"content-length", b"0"))
        assert len(received) >= size, "a part of an answer"
        body, received = received[:size], received[size:]
        statuses.append(int(found[1]))
        if body and headers[b"content-type"].startswith(b"application/json"):
            value = json.loads(body)
            assert statuses[-1] < 400 or value.keys() == {"error", "code"}
        assert b"Traceback" not in body
    return statuses


def test_random_bytes_do_not_make_the_server_fail(
    shared_service: Service, campaign: Campaign
) -> None:
    """Each stream gets whole responses and is closed, and nothing leaks, also if a client does not
    wait for the responses."""
    before, logged, used = held_at_rest(shared_service), shared_service.output, 0
    for number, chance in enumerate(campaign.rounds(6)):
        listens = number % 3 > 0
        streams = [mangled(chance) for _ in range(40)]
        peers = [shared_service.connect() for _ in streams]
        for peer, raw in zip(peers, streams, strict=True):
            with contextlib.suppress(OSError):  # it may be refused before it was all sent
                peer.sendall(raw)
                peer.shutdown(socket.SHUT_WR if listens else socket.SHUT_RDWR)
        for peer, raw in zip(peers, streams, strict=True):
            received = b""
            with peer, contextlib.suppress(ConnectionError):
                while data := peer.recv(1 << 16):
                    received += data
                statuses = answers_in(received, raw) if listens else []
                assert max(statuses, default=0) < 500, raw
                campaign.figures["answers"] += len(statuses)
        shared_service.opened.clear()
        assert shared_service.ask("GET", "/health").json == {"ok": True}
        until(lambda: held_descriptors(shared_service) == before)
        used = used or memory(shared_service)
        campaign.figures["streams"] += len(streams)
        campaign.measured("MiB more", memory(shared_service) - used)
        assert shared_service.output == logged, "a stranger writes the log"
    assert campaign.most["MiB more"] <= 20


# Many at once


def test_a_burst_of_comments_is_saved_while_readers_are_served(start: Start) -> None:
    service = start(program=PATIENT, server={"trusted_proxy": "127.0.0.1"})

    def say(number: int) -> int:
        body = {**COMMENT, "content": f"{number}"}
        client = f"X-Forwarded-For: 192.0.2.{number % 100}"
        return service.raw(request("POST", "/comments", client, body=body)).status

    with ThreadPoolExecutor(400) as pool:
        saved = [pool.submit(say, number) for number in range(400)]
        while not all(each.done() for each in saved):
            assert service.ask("GET", f"/comments?url={PAGE}").status == 200
    assert {each.result() for each in saved} == {200}
    assert service.ask("GET", f"/comments?url={PAGE}").json["total"] == 400


# How it stops


def left_behind(service: Service) -> int:
    """The size of the -wal."""
    wal = service.path.with_name(service.path.name + "-wal")
    return wal.stat().st_size if wal.exists() else 0


@pytest.mark.parametrize(("loop", "number"), [("fast", signal.SIGTERM), ("stock", signal.SIGINT)])
def test_a_stop_completes_requests_and_writes_views(start: Start, loop: str, number: int) -> None:
    service = start(program=PATIENT, server=LOOPS[loop])
    # Two passwords are hashed at a time, two wait. Connections are accepted and read in order, so
    # these requests were read when a later one is answered.
    flights = [service.sent(request("POST", "/auth/login", body=LOGIN)) for _ in range(4)]
    for _ in range(3):
        assert service.ask("GET", f"/comments?url={PAGE}").status == 200
    code = service.stop(number)
    answers = [answer_on(flight) for flight in flights]
    assert [response.json["code"] for response in answers] == ["wrong_credentials"] * 4
    assert code == 0
    assert left_behind(service) == 0
    assert_whole(str(service.path))
    assert rows(service, "SELECT page_url, views FROM page") == [(PAGE, 3)]


def test_a_stop_responds_to_requests_sent_before(start: Start) -> None:
    service = start()
    listing = request("GET", "/embed.js", "User-Agent: a bot")
    like = request("POST", "/page/like", body={"page_url": PAGE})
    kept, slow = service.sent(like), service.connect()
    assert answer_on(kept).status == 200
    whole = service.raw(listing).body
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.sendall(listing)
    assert slow.recv(1, socket.MSG_PEEK)
    # The kernel accepts connections and data for a stopped process.
    service.process.send_signal(signal.SIGSTOP)
    new = [service.sent(raw) for raw in [like, listing] * 3]
    kept.sendall(like)
    service.process.send_signal(signal.SIGTERM)
    service.process.send_signal(signal.SIGCONT)
    assert [answer_on(line).status for line in (kept, *new)] == [200] * 7
    assert answer_on(slow).body == whole
    assert service.process.wait(PATIENCE) == 0


# How it starts


def refused(service: Service) -> str:
    """The log of a service that does not start."""
    assert service.process.wait(PATIENCE) == 1, service.output
    assert service.output.startswith("commentd: ")
    assert service.output.count("\n") == 1, service.output
    return service.output


def test_only_one_of_several_starts_on_one_file_serves(start: Start, tmp_path: Path) -> None:
    path = str(tmp_path / "commentd.db")
    all_ = [start(tmp_path / name, waits=False, database={"path": path}) for name in "abc"]
    until(lambda: sum(each.process.poll() is not None for each in all_) == 2)
    (serves,) = [each for each in all_ if each.process.poll() is None]
    assert serves.greeted().ask("POST", "/comments", body=COMMENT).status == 200
    late = start(tmp_path / "late", waits=False, database={"path": path})
    for each in [late, *all_]:
        if each is not serves:
            assert f"another commentd is running on {path}" in refused(each)
    assert serves.stop() == 0
    assert_whole(path)


def test_a_service_goes_on_while_an_upgrade_replaces_its_files(
    start: Start, tmp_path: Path
) -> None:
    service = start(program=copied_program(tmp_path / "program"))
    shutil.rmtree(tmp_path / "program")
    assert service.ask("POST", "/comments", body=COMMENT).status == 200
    for target in (
        "/admin",
        "/embed.js",
        "/words/de.json",
        "/feed.atom",
        f"/comments?url={PAGE}",
        f"/fragment?url={PAGE}",
        f"/thread?url={PAGE}",
    ):
        assert service.ask("GET", target).status == 200, target


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_failure_to_listen_names_the_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COMMENTD_DATABASE_PATH", str(tmp_path / "commentd.db"))
    monkeypatch.setenv("COMMENTD_CAPTCHA_PROVIDER", "none")
    path = str(tmp_path / "s")
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.socket(socket.AF_UNIX) as other:
        other.bind(path)
        other.listen()
        for listen, reason in (
            (f"127.0.0.1:{taken.getsockname()[1]}", "Address already in use"),
            (f"unix:{path}", "Address already in use"),
            (f"unix:{tmp_path}/no/folder", "No such file or directory"),
        ):
            monkeypatch.setenv("COMMENTD_SERVER_LISTEN", listen)
            assert main([]) == 1
            error = capsys.readouterr().err
            assert error.startswith(f"commentd: can't listen on {listen} ({reason})"), error
            assert error.count("\n") == 1
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(path)  # the socket file still belongs to the other
    gc.collect()  # what waitress left open, as the process ends here


def test_a_socket_file_serves_its_group(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "s"
    service = start(server={"listen": f"unix:{path}"})
    assert path.stat().st_mode & 0o777 == 0o660
    assert service.ask("GET", f"/comments?url={PAGE}").status == 200
    service.process.kill()
    service.process.wait()
    # The socket file that it left does not stop the next one, nor does a link to it.
    (tmp_path / "link").symlink_to("s")
    assert start(server={"listen": f"unix:{tmp_path}/link"}).ask("GET", "/health").status == 200
    assert (tmp_path / "link").is_symlink()
    assert path.is_socket()


def other_waitress(folder: Path, old: str, new: str) -> str:
    """A program that serves with a waitress in which a name was changed."""
    shutil.copytree(Path(waitress.__file__).parent, folder / "waitress")
    for file in (folder / "waitress").glob("*.py"):
        file.write_text(file.read_text().replace(old, new))
    return f"""import sys
sys.path.insert(0, {str(folder)!r})
import commentd
{UNHURRIED}
sys.exit(commentd.main())"""


def test_a_similar_waitress_protects_as_the_known_one(start: Start, tmp_path: Path) -> None:
    """Nothing that `commentd` uses has changed in it: it is only not cached from."""
    program = other_waitress(tmp_path / "other", "Zope Foundation", "Another Foundation")
    service = start(program=program.replace(UNHURRIED, "commentd.REQUEST_SECONDS = 1"))
    assert service.output.count("WARNING this waitress is not the version") == 1
    assert service.ask("POST", "/comments", body=COMMENT).status == 200
    assert service.ask("GET", f"/comments?url={PAGE}").json["total"] == 1
    for case in ("no length", "no request", "headers", "body announced"):
        raw, status, code = REFUSED[case]
        response = service.raw(raw)
        assert (response.status, response.json["code"]) == (status, code), case
    with service.connect() as slow:
        slow.sendall(b"GET /health HT")
        assert not slow.recv(1), "a request that does not end is cut"
    assert service.stop() == 0


@pytest.mark.parametrize("old", ["total_outbufs_len", "ReadOnlyFileBasedBuffer"])
def test_an_unknown_waitress_serves_as_stock(start: Start, tmp_path: Path, old: str) -> None:
    service = start(program=other_waitress(tmp_path / "other", old, "another"))
    assert service.output.count("WARNING this waitress is not the version") == 1
    assert service.ask("POST", "/comments", body=COMMENT).status == 200
    with service.connect() as connection:
        for _ in range(3):
            connection.sendall(LIST)
            assert answer_on(connection).json["total"] == 1
    assert service.ask("GET", "/embed.js").status == 200
    assert service.ask("GET", "/comments", "Content-Length: x").status == 400
    flights = [service.sent(request("POST", "/auth/login", body=LOGIN)) for _ in range(2)]
    assert service.ask("GET", "/health").status == 200
    assert service.stop() == 0
    assert [answer_on(flight).status for flight in flights] == [401] * 2
    assert left_behind(service) == 0
    assert "Traceback" not in service.output


def test_the_installed_waitress_is_known(shared_service: Service) -> None:
    # Otherwise read what changed in waitress, and write its digest in Serving.
    assert "WARNING this waitress" not in shared_service.output


# Who is served when


def test_short_reads_are_answered_while_another_process_writes(
    config: Config, fake_world: FakeWorld
) -> None:
    """What writes would be refused after a while."""
    how = replace(config, server_listen="127.0.0.1:0", site_contact="mailto:ann@example.com")
    with contextlib.ExitStack() as stack:
        app = stack.enter_context(closing(make_app(how, fake_world.world, rounds=1)))
        inside.add_account(app, "ann@example.com", "Ann", CANARY)
        bearer = f"Authorization: Bearer {inside.token_of(app, 'ann@example.com')}"
        server = stack.enter_context(closing(RunningServer(app, fast=True)))
        with inside.writes_held_up(app):
            for label in inside.quick_paths():
                path = label.split()[1].replace("words/{name}", "words/de.json")
                path = path.replace("admin_page/{name}", "admin_page/page.js")
                target = f"{path.format(name='embed.js')}?url={PAGE}"
                answered = server.ask(request("GET", target, bearer))
                # No account has a picture, there are no stickers, and nobody has signed the way in.
                is_missing = label in (
                    "GET /pictures/{name}",
                    "GET /stickers/{file}",
                    "GET /way-in",
                )
                status = b"404 Not Found" if is_missing else b"200 OK"
                assert answered.startswith(b"HTTP/1.1 " + status), label


@pytest.fixture
def start_gated_server(
    config: Config, fake_world: FakeWorld
) -> Iterator[Callable[..., GatedServer]]:
    with contextlib.ExitStack() as stack:

        def make(**settings: Any) -> GatedServer:
            stack.close()  # what was made before
            how = replace(config, server_listen="127.0.0.1:0", **settings)
            app = stack.enter_context(closing(make_app(how, fake_world.world, rounds=1)))
            return stack.enter_context(closing(GatedServer(app, fake_world)))

        yield make


def named(name: str, method: str = "GET", *headers: str) -> bytes:
    """A request that is not cached; its User-Agent is this name."""
    target = f"/comments?url=/{name}" if method == "GET" else "/comment/like"
    return request(method, target, f"User-Agent: {name}", *headers)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_clients_are_served_in_turn(
    start_gated_server: Callable[..., GatedServer], method: str
) -> None:
    made = start_gated_server()
    for name in ("a1", "a2", "a3", "a4", "b1", "b2", "c1"):
        made.ask(named(name, method), f"127.0.1.{ord(name[0])}")
    made.statuses()
    assert made.served == ["a1", "a2", "b1", "c1", "a3", "b2", "a4"]


def test_a_thread_at_work_holds_no_stop_up(start_gated_server: Callable[..., GatedServer]) -> None:
    made = start_gated_server()
    made.ask(named("a1"))
    assert {thread.daemon for thread in made.loop.workers.reading.threads} == {True}


FORWARDED = {
    "a1": "192.0.2.1",
    "a2": "192.0.2.1",
    "a3": "192.0.2.3, 192.0.2.1",
    "b1": "192.0.2.2",
    # IPv6 by /64
    "c1": "2001:db8:0:1::1",
    "c2": "2001:db8:0:1::2",
    "d1": "2001:db8:0:2::1",
}


def test_clients_behind_a_trusted_proxy_are_served_in_turn(
    start_gated_server: Callable[..., GatedServer],
) -> None:
    in_turn = ["a1", "a2", "b1", "c1", "d1", "a3", "c2"]
    for trusted, served in ((("127.0.0.1",), in_turn), ((), [*FORWARDED])):
        made = start_gated_server(server_trusted_proxy=trusted)
        for name, client in FORWARDED.items():
            made.ask(named(name, "GET", f"X-Forwarded-For: {client}"))
        assert set(made.statuses()) == {200}
        assert made.served == served
