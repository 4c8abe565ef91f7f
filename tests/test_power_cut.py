"""What a power cut leaves: the program's writes are noted, and played again up to any moment. Of
what was not synced by then, anything may be there (support/power_cut.py)."""

import json
import shutil
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from random import Random
from signal import SIGKILL
from typing import Any

import pytest

from commentd import make_app
from support.campaign import Campaign
from support.client import COMMENT, stranger
from support.commands import run, run_here
from support.database import assert_whole, config_for
from support.power_cut import (
    MARK,
    Disk,
    Luck,
    LyingDisk,
    Recording,
    any_luck,
    built_library,
    responses,
)
from support.service import Service, Start, answer_on, request, services
from support.serving import PROGRAM, until

pytestmark = pytest.mark.slow

PAGES = ["/a/", "/b/", "/c/"]
LIKED = "/liked/"
SECTIONS = {"database": {"path": "data/commentd.db"}, "backup": {"folder": "data/backups"}}
# It empties the -wal all the time, and wipes the whole file ten times a second, not once a day.
EAGER = PROGRAM.format("""
commentd.PRAGMAS = (*commentd.PRAGMAS, "wal_autocheckpoint = 20")
usual = commentd.App.tick

def tick(app):
    wiper = app.site.store.wiper
    wiper.begin_file()
    wiper.empty_wal_if_due()
    usual(app)
    return 0.1

commentd.App.tick = tick
""")
# SQLite waits for the disk only when it empties the -wal.
HASTY = PROGRAM.format("""
hasty = [each.replace("synchronous = FULL", "synchronous = NORMAL") for each in commentd.PRAGMAS]
commentd.PRAGMAS = tuple(hasty)
""")
# It responds before it commits.
EARLY = PROGRAM.format("""
def work(shared):
    while shared.is_needed.wait() and not shared.is_closed:
        with shared.store.transaction():
            shared.may_run = True
            shared.wake_event_loop()
            result = commentd.TransactionResult(True, True, shared.handed_back.get())
            shared.results.put(result)
            shared.wake_event_loop()
            while not shared.results.empty():
                pass

commentd.SharedTransaction.work = work
""")
EXPORTED = {"page_key": "/old", "parent_id": None, "nickname": "Bob", "status": "visible"}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_library(tmp_path_factory.mktemp("library"))


# What programs do


class Author(threading.Thread):
    """Writes, edits and deletes comments, and likes the page and the first comment."""

    def __init__(self, service: Service, name: str, chance: Random, most: int) -> None:
        super().__init__(name=name)
        self.service = service
        self.chance = chance
        self.most = most  # requests
        self.done = 0
        # The texts of each comment, in the order in which they were sent; "" if it was deleted.
        self.texts: dict[int, list[str]] = {}
        self.tokens: dict[int, str] = {}
        self.sent: set[str] = set()  # also where no response told the number

    def run(self) -> None:
        acts = [self.write, self.edit, self.delete, self.like_page, self.like_comment]
        with suppress(OSError, HTTPException), self.service.connect() as connection:
            self.connection = connection
            while self.done < self.most:
                self.chance.choices(acts, [50, 15, 5, 5, 5])[0]()

    def ask(self, method: str, path: str, **body: Any) -> Any:
        agent = f"User-Agent: {self.name} {self.done}"  # whoever likes something is another one
        form = {"captcha_token": "x", **body}
        self.connection.sendall(request(method, path, agent, body=form))
        answer = answer_on(self.connection)
        assert answer.status == 200, (path, body, answer)
        self.done += 1
        return answer.json

    def text(self) -> str:
        text = f"{self.name} {self.done}" + " word" * self.chance.choice([0, 10, 300])
        self.sent.add(text)
        return text

    def write(self) -> None:
        text = self.text()
        form = {**COMMENT, "page_url": self.chance.choice(PAGES), "content": text}
        posted = self.ask("POST", "/comments", **form)
        self.texts[posted["comment"]["id"]] = [text]
        self.tokens[posted["comment"]["id"]] = posted["edit_token"]

    def change(self, method: str, text: str, **form: Any) -> None:
        there = [number for number, texts in self.texts.items() if texts[-1]]
        if there:
            number = self.chance.choice(there)
            self.texts[number].append(text)
            self.ask(method, f"/comments/{number}", edit_token=self.tokens[number], **form)

    def edit(self) -> None:
        text = self.text()
        self.change("PATCH", text, content=text)

    def delete(self) -> None:
        self.change("DELETE", "")

    def like_page(self) -> None:
        self.ask("POST", "/page/like", page_url=LIKED)

    def like_comment(self) -> None:
        self.ask("POST", "/comment/like", id=1)


@dataclass
class Promises:
    """What the service has acknowledged by some moment."""

    comments: Counter[int] = field(default_factory=Counter)  # how many texts of each
    tokens: dict[int, str] = field(default_factory=dict)  # which edit them
    page_likes: int = 0
    likes: int = 0

    def add(self, said: Any) -> None:
        if comment := said.get("comment"):
            self.comments[comment["id"]] += 1
            if "edit_token" in said:
                self.tokens[comment["id"]] = said["edit_token"]
        self.page_likes = max(self.page_likes, said.get("page_likes", 0))
        self.likes = max(self.likes, said.get("likes", 0))


@dataclass
class Life:
    """What was done, in which order, and what of it was acknowledged."""

    recording: Recording
    authors: list[Author] = field(default_factory=list)
    imported: set[str] = field(default_factory=set)
    kills: int = 0

    def end(self) -> None:
        """What was noted is all that is on the disk, but for the last call before a kill: it may
        have been killed before its note. A call changes one file, or two names."""
        self.steps = self.recording.steps()
        self.marks = {
            step.first.decode(): number
            for number, step in enumerate(self.steps)
            if step.kind == MARK
        }
        self.acknowledged = [
            (begun, json.loads(body))
            for begun, status, body in sorted(responses(self.steps))
            if status == 200 and body.startswith(b'{"success"')
        ]
        folder, disk = self.recording.folder, Disk(self.recording.folder)
        for number, step in enumerate(self.steps):
            disk.take(number, step)
        there = {
            str(path.relative_to(folder)): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file() and not path.name.endswith("-shm")
        }
        noted = disk.content()
        names = {name for name in noted.keys() | there if noted.get(name) != there.get(name)}
        assert len(names) <= 2 * self.kills, names

    @property
    def sent(self) -> set[str]:
        return self.imported.union(*(author.sent for author in self.authors))

    @property
    def texts(self) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        for author in self.authors:
            found |= author.texts
        return found

    def promises(self, moment: int) -> Promises:
        made = Promises()
        for begun, said in self.acknowledged:
            if begun < moment:
                made.add(said)
        return made

    def moments(self, chance: Random, first: int, last: int, many: int) -> list[int]:
        """Before which steps power is cut: a third of them beside a change of a name, another third
        beside a sync or a response, and the others anywhere."""
        found = [chance.randint(first, last) for _ in range(many // 3)]
        for kinds in ("nlum", "besS"):
            edges = [number for number in self.steps_of(kinds) if first <= number < last]
            found += [n + chance.randrange(2) for n in chance.choices(edges, k=many // 3)]
        return sorted(found)

    def steps_of(self, kinds: str) -> list[int]:
        return [number for number, step in enumerate(self.steps) if step.kind in kinds]


def write_export(path: Path, texts: set[str]) -> None:
    page = {"page_key": "/old", "page_url": "/old/"}
    comments = [
        {**EXPORTED, "id": number, "content": text, "created_at": "2020-01-01T00:00:00Z"}
        for number, text in enumerate(sorted(texts), 1)
    ]
    export = {"format": "commentd", "version": 1, "pages": [page], "comments": comments}
    path.write_text(json.dumps(export))


class Machine:
    """A service and commands in a folder, of which all that they write is noted."""

    def __init__(self, folder: Path, library: Path, start: Start, chance: Random) -> None:
        (folder / "data").mkdir(parents=True)
        self.folder = folder
        self.begin = start
        self.chance = chance
        self.life = Life(Recording(folder / "data", folder / "notes", library))

    def start(self, program: str) -> None:
        with self.life.recording.running():
            self.service = self.begin(self.folder, program=program, **SECTIONS)

    def kill(self) -> None:
        self.life.kills += 1
        self.service.stop(SIGKILL)

    def command(self, *words: str) -> None:
        self.life.recording.mark(f"{words[0]} begins")
        with self.life.recording.running():
            code, _, errors = run(self.folder, *words)
        assert code == 0, errors
        self.life.recording.mark(f"{words[0]} is done")

    def first_comment(self) -> None:
        author = Author(self.service, "first", self.chance, 1)
        self.life.authors.append(author)
        with self.service.connect() as author.connection:
            author.write()

    def authors(self, most: int) -> list[Author]:
        """Some who write at once, until each has done so much."""
        begun = len(self.life.authors)
        authors = [
            Author(self.service, f"author {number}", Random(self.chance.random()), most)
            for number in range(begun, begun + 4)
        ]
        self.life.authors += authors
        for author in authors:
            author.start()
        return authors


def join(authors: list[Author]) -> None:
    for author in authors:
        author.join()


def lived(folder: Path, library: Path, chance: Random, program: str, most: int) -> Life:
    """A service that starts for the first time, commands beside it, a stop, a start, a kill."""
    with services(folder) as start:
        machine = Machine(folder, library, start, chance)
        machine.life.imported = {f"imported {number}" for number in range(120)}
        write_export(folder / "export.json", machine.life.imported)
        machine.start(program)
        machine.first_comment()
        authors = machine.authors(most)
        machine.command("backup")
        machine.command("import", "export.json")
        join(authors)
        assert machine.service.stop() == 0
        machine.start(program)
        authors = machine.authors(1_000_000)
        until(lambda: sum(author.done for author in authors) >= most)
        machine.kill()
        join(authors)
    machine.life.end()
    return machine.life


# What is left

Rows = dict[int, tuple[str, str]]


def rows_in(path: Path) -> Rows:
    """The text and the status of each comment."""
    with closing(sqlite3.connect(path)) as db:
        found = db.execute("SELECT id, content, status FROM comment").fetchall()
    return {number: (content, status) for number, content, status in found}


def assert_kept(life: Life, moment: int, folder: Path, chance: Random) -> None:
    """The program starts on what a power cut has left, has all that it acknowledged before, and
    goes on."""
    made, path = life.promises(moment), folder / "commentd.db"
    with closing(make_app(config_for(path), rounds=1)) as app:
        client, rows = stranger(app), rows_in(path)
        assert_comments(life, made, rows)
        assert_likes(made, path)
        for page in [*PAGES, "/old/"]:
            assert_list(client, path, page)
        editable = [number for number in made.tokens if number in rows and rows[number][0]]
        if editable:  # the key that signs these tokens is there, too
            number = chance.choice(editable)
            form = {"content": "after", "edit_token": made.tokens[number]}
            client.patch_json(f"/comments/{number}", form, status=200)
        posted = client.post_json("/comments", {**COMMENT, "content": "again"}, status=200).json
    assert_whole(str(path))
    assert rows_in(path)[posted["comment"]["id"]] == ("again", "visible")
    if (begun := life.marks.get("import begins")) and moment > begun:
        assert_imported(life, moment, folder)


def assert_comments(life: Life, made: Promises, rows: Rows) -> None:
    sent, texts = life.sent, life.texts
    for number, (content, status) in rows.items():
        assert content in sent or (content, status) == ("", "deleted"), f"half of comment {number}"
    for number, acknowledged in made.comments.items():
        content, status = rows.get(number, ("", "deleted"))
        assert status == ("visible" if content else "deleted")
        # Who wrote it may not have read a response that was sent before the service was killed.
        allowed = texts[number][acknowledged - 1 :] if number in texts else life.sent
        assert content in allowed, f"change {acknowledged} of comment {number} is lost: {allowed}"


def assert_likes(made: Promises, path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        page_likes = db.execute("SELECT coalesce(max(page_likes), 0) FROM page").fetchone()[0]
        likes = db.execute("SELECT coalesce(max(likes), 0) FROM comment").fetchone()[0]
    assert page_likes >= made.page_likes
    assert likes >= made.likes


def assert_list(client: Any, path: Path, page: str) -> None:
    """Readers see what is in the database."""
    with closing(sqlite3.connect(path)) as db:
        found = db.execute(
            """SELECT comment.id FROM comment JOIN page ON page.id = page_id
               WHERE page_url = ? AND status = 'visible'
               ORDER BY comment.created_at DESC, comment.id DESC""",
            (page,),
        )
        expected = [number for (number,) in found]
    answer = client.get("/comments", {"url": page, "limit": 100}, status=200).json
    assert answer["total"] == len(expected)
    assert [comment["id"] for comment in answer["comments"]] == expected[:100]


def assert_imported(life: Life, moment: int, folder: Path) -> None:
    """A finished import is there. One that power ended can be repeated, and doubles nothing."""
    path = folder / "commentd.db"
    if moment <= life.marks["import is done"]:
        export = str(life.recording.folder.parent / "export.json")
        code, _, errors = run_here(folder, "import", export, COMMENTD_DATABASE_PATH=str(path))
        assert code == 0, errors
    contents = Counter(content for content, _ in rows_in(path).values())
    assert {contents[text] for text in life.imported} == {1}


def assert_backups(life: Life, moment: int, folder: Path) -> None:
    """Whatever has the name of a backup is whole, and a finished one is there."""
    backups = [*(folder / "backups").glob("[!.]*.db")]
    for backup in backups:
        assert_whole(str(backup))
    if moment > life.marks["backup is done"]:
        newest = max(backups)  # where all is slow, the service has made one of its own, too
        assert_comments(life, life.promises(life.marks["backup begins"]), rows_in(newest))


def disks(life: Life, moments: list[int], disk: Disk) -> Iterator[tuple[int, Disk]]:
    """The disk at each of these moments, which are sorted."""
    done = 0
    for moment in moments:
        for number in range(done, moment):
            disk.take(number, life.steps[number])
        done = moment
        yield moment, disk


Check = Callable[[Life, int, Path, Random], None]


def cut_power(life: Life, disk: Disk, moment: int, luck: Luck, check: Check) -> None:
    """`check` finds what it expects after a power cut before that step."""
    folder = life.recording.folder.with_name("left")
    disk.after_cut(folder, luck)
    try:
        check(life, moment, folder, luck.chance)
    except (Exception, SystemExit) as error:
        kinds = "".join(step.kind for step in life.steps[max(0, moment - 20) : moment])
        error.add_note(f"before step {moment}, after {kinds}: {luck}")
        raise
    shutil.rmtree(folder)


def assert_all_kept(life: Life, moment: int, folder: Path, chance: Random) -> None:
    assert_backups(life, moment, folder)
    assert_kept(life, moment, folder, chance)


def assert_served_and_kept(life: Life, moment: int, folder: Path, chance: Random) -> None:
    """The same after the service has run on it in a process of its own."""
    with services(folder) as start:
        assert start().ask("GET", "/health").status == 200
    assert_all_kept(life, moment, folder, chance)


def test_an_acknowledged_change_survives_a_power_cut(
    library: Path, tmp_path: Path, campaign: Campaign
) -> None:
    for chance in campaign.rounds(1):
        home, is_long = tmp_path / f"{campaign.last}", bool(campaign.seconds)
        program = chance.choice([EAGER, ""]) if is_long else EAGER
        life = lived(home, library, chance, program, most=100 if is_long else 25)
        campaign.figures["acknowledged"] += len(life.acknowledged)
        moments = life.moments(chance, 0, len(life.steps), 150 if is_long else 45)
        done = [mark + 1 for mark in life.marks.values()]
        served = chance.choice(moments)
        for moment, disk in disks(life, sorted(moments + done), Disk(life.recording.folder)):
            luck = Luck(chance, kept=0) if moment in done else any_luck(chance)
            check = assert_served_and_kept if moment == served else assert_all_kept
            cut_power(life, disk, moment, luck, check)
            campaign.figures["power cuts"] += 1
        shutil.rmtree(home)


def assert_first_start(life: Life, moment: int, folder: Path, chance: Random) -> None:
    path = folder / "commentd.db"
    with closing(make_app(config_for(path), rounds=1)) as app:
        stranger(app).post_json("/comments", COMMENT, status=200)
    assert_whole(str(path))


def test_a_first_start_that_a_power_cut_ended_can_be_repeated(
    library: Path, tmp_path: Path
) -> None:
    with services(tmp_path) as start:
        machine = Machine(tmp_path, library, start, Random(1))
        machine.start("")
        machine.kill()
    life = machine.life
    life.end()
    # The file gets its kind in the first steps. Then come the tables, in one transaction.
    moments = sorted([*range(45), *range(45), *range(45, len(life.steps), 20)])
    for moment, disk in disks(life, moments, Disk(life.recording.folder)):
        luck = Luck(Random(f"{moment}"), 0.5, is_torn=True, is_noisy=bool(moment % 2))
        cut_power(life, disk, moment, luck, assert_first_start)


# A restore


def assert_restored_or_not(life: Life, moment: int, folder: Path, chance: Random) -> None:
    """The database is the backup, and what it replaced is beside it; or it is as it was."""
    path, aside = folder / "commentd.db", [*folder.glob("commentd.db.2*[0-9]")]
    begun, done = life.marks["restore begins"], life.marks["restore is done"]
    with closing(make_app(config_for(path), rounds=1)):
        rows = rows_in(path)
    assert_whole(str(path))
    before, at_backup = life.promises(begun), life.promises(life.marks["backup begins"])
    if rows.keys() != at_backup.comments.keys():
        assert moment <= done
        assert_comments(life, before, rows)
        return
    assert_comments(life, at_backup, rows)
    assert_whole(str(aside[0]))
    assert_comments(life, before, rows_in(aside[0]))


def test_a_restore_is_done_as_a_whole_or_not_at_all_when_power_is_cut(
    library: Path, tmp_path: Path, campaign: Campaign
) -> None:
    for chance in campaign.rounds(1):
        home = tmp_path / f"{campaign.last}"
        with services(home) as start:
            machine = Machine(home, library, start, chance)
            machine.start("")
            machine.first_comment()
            machine.command("backup")
            join(machine.authors(5))
            machine.kill()
            (backup,) = (home / "data" / "backups").glob("[!.]*.db")
            machine.command("restore", str(backup))
        life = machine.life
        life.end()
        begun, many = life.marks["restore begins"], 150 if campaign.seconds else 12
        moments = life.moments(chance, begun, len(life.steps), many)
        # Between two names there is little time, and what is kept of both is a matter of luck.
        named = [number + 1 for number in life.steps_of("n") if number > begun]
        moments = sorted(moments + named * 12)
        for moment, disk in disks(life, moments, Disk(life.recording.folder)):
            cut_power(life, disk, moment, any_luck(chance), assert_restored_or_not)
            campaign.figures["power cuts"] += 1
        shutil.rmtree(home)


# Whether these tests would notice a loss


def losses(life: Life, disk: Disk) -> list[int]:
    """The responses right after which a power cut loses something, if it leaves nothing that was
    not synced."""
    moments = [begun + 1 for begun, _ in life.acknowledged]
    lost = []
    for moment, disk_then in disks(life, moments, disk):
        try:
            cut_power(life, disk_then, moment, Luck(Random(1), kept=0), assert_kept)
        except AssertionError:
            lost.append(moment)
            shutil.rmtree(life.recording.folder.with_name("left"))
    return lost


def test_a_loss_after_a_power_cut_is_noticed(library: Path, tmp_path: Path) -> None:
    found = {}
    for name, program in (("usual", ""), ("hasty", HASTY), ("early", EARLY)):
        with services(tmp_path / name) as start:
            machine = Machine(tmp_path / name, library, start, Random(1))
            machine.start(program)
            machine.first_comment()
            join(machine.authors(5))
            machine.kill()
        machine.life.end()
        found[name] = machine.life
    assert losses(found["usual"], Disk(found["usual"].recording.folder)) == []
    for name in ("hasty", "early"):
        assert len(losses(found[name], Disk(found[name].recording.folder))) > 10
    # The same with a disk that says too early that all is there.
    assert len(losses(found["usual"], LyingDisk(found["usual"].recording.folder))) > 10
