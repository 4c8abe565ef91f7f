"""What a disk may hold after a power cut. A library in C (power_cut.c), which is loaded into the
program, notes all that it writes; this plays it again up to any moment.

What a disk promises is only this: what was synced is there. Of each other change since, each part
may have come to the disk or not, in any order: each sector of 512 bytes of a write, each change of
the size of a file, each name in a folder (a new file is one, and has to be synced in its folder).
A sector that was being written may hold noise. That is less than most file systems keep, and what
SQLite relies on (sqlite.org/psow.html)."""

import os
import shutil
import struct
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from unittest import mock

import pytest

SECTOR = 512
# Programs write into this file as into memory, which nothing notes. SQLite makes it anew.
SHARED_MEMORY = "-shm"
HEAD = struct.Struct("=6q")
MARK = "M"  # a note that a test makes


# The notes


@dataclass(frozen=True)
class Step:
    """A note: a call, or its beginning or end. `number` is an offset, a size, or what a beginning
    and its end have in common."""

    kind: str
    process: int
    descriptor: int
    number: int
    first: bytes
    second: bytes


class Recording:
    """All that programs do to the files in a folder, while `running`."""

    def __init__(self, folder: Path, log: Path, library: Path) -> None:
        self.folder = folder.resolve()
        self.log = log
        self.library = library
        self.log.touch()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Programs that begin meanwhile are watched."""
        environ = {
            "LD_PRELOAD": str(self.library),
            "POWER_CUT_FOLDER": str(self.folder),
            "POWER_CUT_LOG": str(self.log),
        }
        with mock.patch.dict(os.environ, environ):
            yield

    def mark(self, text: str) -> None:
        """Notes what the test itself has seen."""
        data = text.encode()
        with self.log.open("ab", buffering=0) as file:
            file.write(HEAD.pack(ord(MARK), os.getpid(), -1, 0, len(data), 0) + data)

    def steps(self) -> list[Step]:
        data, found, offset = self.log.read_bytes(), list[Step](), 0
        while offset < len(data):
            kind, process, descriptor, number, size, more = HEAD.unpack_from(data, offset)
            offset += HEAD.size
            middle, end = offset + size, offset + size + more
            first, second = data[offset:middle], data[middle:end]
            found.append(Step(chr(kind), process, descriptor, number, first, second))
            offset = end
        return found


def built_library(folder: Path) -> Path:
    """Skips the test where there is no compiler, or no Linux."""
    compiler = shutil.which("cc")
    if not compiler or os.uname().sysname != "Linux":
        pytest.skip("without a C compiler and Linux, nothing can note what a program writes")
    library = folder / "power_cut.so"
    source = Path(__file__).with_suffix(".c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    return library


# The disk


@dataclass(frozen=True)
class Write:
    offset: int
    data: bytes


@dataclass(frozen=True)
class Resize:
    size: int


@dataclass(eq=False)
class File:
    """What is certainly on the disk, and what was done since, each with the number of its step."""

    synced: bytes = b""
    since: list[tuple[int, Write | Resize]] = field(default_factory=list)

    def sync(self, begun: int) -> None:
        """What was done before that step is on the disk now."""
        content = bytearray(self.synced)
        for number, change in self.since:
            if number < begun:
                apply(content, change)
        self.synced = bytes(content)
        self.since = [each for each in self.since if each[0] >= begun]

    @property
    def content(self) -> bytes:
        """What programs read in it."""
        content = bytearray(self.synced)
        for _, change in self.since:
            apply(content, change)
        return bytes(content)


@dataclass(eq=False)
class Folder:
    """A folder in the folder that is watched."""


def apply(content: bytearray, change: Write | Resize) -> None:
    if isinstance(change, Resize):
        del content[change.size :]
        content.extend(bytes(change.size - len(content)))
        return
    end = change.offset + len(change.data)
    content.extend(bytes(max(0, end - len(content))))
    content[change.offset : end] = change.data


Names = dict[str, File | Folder]
NameChange = dict[str, File | Folder | None]  # None: the name is gone


@dataclass(frozen=True)
class Luck:
    """What a power cut does to what was not synced. `kept` is how much of it comes to the disk."""

    chance: Random
    kept: float
    is_torn: bool = False  # not each change as a whole
    is_noisy: bool = False  # sectors that were being written may hold noise

    def keeps(self) -> bool:
        return self.chance.random() < self.kept

    def apply(self, content: bytearray, change: Write | Resize) -> None:
        if isinstance(change, Resize) or not self.is_torn:
            if self.keeps():
                apply(content, change)
            return
        if self.keeps():  # a file may have grown, though what was written is not there
            end = change.offset + len(change.data)
            content.extend(bytes(max(0, end - len(content))))
        for write in sectors_of(change):
            if self.keeps():
                apply(content, write)
            elif self.is_noisy and self.chance.random() < 0.5:
                apply(content, Write(write.offset, self.chance.randbytes(len(write.data))))


def sectors_of(write: Write) -> Iterator[Write]:
    offset, end = write.offset, write.offset + len(write.data)
    while offset < end:
        until = min(end, (offset // SECTOR + 1) * SECTOR)
        yield Write(offset, write.data[offset - write.offset : until - write.offset])
        offset = until


def any_luck(chance: Random) -> Luck:
    """Nothing of what was not synced, or all, or some."""
    way = chance.randrange(5)
    if way < 2:
        return Luck(chance, kept=way)
    return Luck(chance, chance.random(), is_torn=way > 2, is_noisy=way > 3)


class Disk:
    """The folder as programs see it, and as a power cut may leave it."""

    def __init__(self, folder: Path) -> None:
        self.folder = os.fsencode(folder)
        self.names: Names = {}  # as programs see them
        self.synced_names: Names = {}
        self.since: list[tuple[int, NameChange]] = []
        self.opened: dict[tuple[int, int], str | File] = {}  # a folder is its name
        self.begun: dict[tuple[int, int], int] = {}  # syncs

    def name(self, path: bytes) -> str:
        return os.fsdecode(os.path.relpath(os.path.normpath(path), self.folder))

    def take(self, number: int, step: Step) -> None:
        """Does what was done in this step."""
        file = self.opened.get((step.process, step.descriptor))
        call = step.process, step.number
        if step.kind == "o":
            self.open(number, step)
        elif step.kind == "w" and isinstance(file, File):
            file.since.append((number, Write(step.number, step.first)))
        elif step.kind == "t" and isinstance(file, File):
            file.since.append((number, Resize(step.number)))
        elif step.kind == "b":
            self.begun[call] = number
        elif step.kind == "e" and isinstance(file, File):
            file.sync(self.begun.pop(call))
        elif step.kind == "e" and isinstance(file, str):
            self.sync_folder(file, self.begun.pop(call))
        elif step.kind in "nlum":
            self.rename(number, step)

    def open(self, number: int, step: Step) -> None:
        name = self.name(step.first)
        file = self.names.get(name)
        if name == "." or isinstance(file, Folder):
            self.opened[step.process, step.descriptor] = name
            return
        if file is None:
            file = File()
            self.change(number, {name: file})
        if step.number and file.content:
            file.since.append((number, Resize(0)))
        self.opened[step.process, step.descriptor] = file

    def rename(self, number: int, step: Step) -> None:
        old, new = self.name(step.first), self.name(step.second)
        if step.kind == "m":
            self.change(number, {old: Folder()})
        elif step.kind == "u":
            self.change(number, {old: None})
        elif step.kind == "l":
            self.change(number, {new: self.names[old]})
        else:
            self.change(number, {old: None, new: self.names[old]})

    def change(self, number: int, change: NameChange) -> None:
        change_names(self.names, change)
        self.since.append((number, change))

    def sync_folder(self, folder: str, begun: int) -> None:
        left = []
        for number, change in self.since:
            is_there = any((os.path.dirname(name) or ".") == folder for name in change)
            if is_there and number < begun:
                change_names(self.synced_names, change)
            else:
                left.append((number, change))
        self.since = left

    def content(self) -> dict[str, bytes]:
        """The files as programs see them."""
        return {
            name: each.content
            for name, each in self.names.items()
            if isinstance(each, File) and not name.endswith(SHARED_MEMORY)
        }

    def after_cut(self, folder: Path, luck: Luck) -> None:
        """Writes what a power cut leaves into a new folder."""
        folder.mkdir()
        names = dict(self.synced_names)
        for _, change in self.since:
            if luck.keeps():
                change_names(names, change)
        for name in sorted(names):  # a folder comes before what is in it
            each, path = names[name], folder / name
            if isinstance(each, Folder):
                if path.parent.is_dir():
                    path.mkdir()
            elif path.parent.is_dir():
                content = bytearray(each.synced)
                for _, written in each.since:
                    luck.apply(content, written)
                if name.endswith(SHARED_MEMORY) and luck.is_noisy:
                    content = bytearray(luck.chance.randbytes(len(content)))
                path.write_bytes(content)


class LyingDisk(Disk):
    """It says that all is there, while nothing is."""

    def take(self, number: int, step: Step) -> None:
        if step.kind != "e":
            super().take(number, step)


def change_names(names: Names, change: NameChange) -> None:
    for name, each in change.items():
        if each is None:
            names.pop(name, None)
        else:
            names[name] = each


# Responses


def streams(steps: list[Step]) -> Iterator[tuple[list[int], bytes]]:
    """What was sent on each descriptor, with the number of the step in which each byte may have
    come to the client at the earliest."""
    begun: dict[tuple[int, int], int] = {}
    sent: dict[tuple[int, int], tuple[list[int], bytearray]] = defaultdict(
        lambda: ([], bytearray())
    )
    for number, step in enumerate(steps):
        if step.kind == "s":
            begun[step.process, step.number] = number
        elif step.kind == "S":
            moments, data = sent[step.process, step.descriptor]
            moments += [begun.pop((step.process, step.number))] * len(step.first)
            data += step.first
    for moments, data in sent.values():
        yield moments, bytes(data)


def responses(steps: list[Step]) -> Iterator[tuple[int, int, bytes]]:
    """Of each response the number of the step in which it began, its status and its body."""
    for moments, data in streams(steps):
        start = 0
        while (end := data.find(b"\r\n\r\n", start)) >= 0:
            head = data[start:end].lower()
            size = int(head.partition(b"content-length: ")[2].split()[0])
            body = data[end + 4 : end + 4 + size]
            if len(body) == size:
                yield moments[start], int(head[9:12]), body
            start = end + 4 + size
