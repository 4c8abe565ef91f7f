"""Attacks that go on for as long as they may."""

import itertools
import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Campaign:
    """Rounds of an attack: a few in the test command, as many as fit into `--seconds` in the long
    tier. Each has chance of its own, so that `--seed`, `--first` and `--rounds` give any of them
    again.

    With a folder for `--state`, a campaign goes on where it stopped when it last had this seed, and
    adds up what it did. A round that failed is the first one of the next run."""

    def __init__(
        self,
        name: str,
        seed: int,
        first: int,
        number: int | None,
        seconds: float | None,
        folder: str | None = None,
    ) -> None:
        self.name, self.seed = name, seed
        self.number, self.seconds = number, seconds  # how many rounds, or for how long
        self.figures: Counter[str] = Counter()  # which add up
        self.most: dict[str, int] = {}  # of what was measured
        file_name = re.sub(r"[^-\w]+", "-", name)
        self.file = Path(folder, f"{file_name}.{seed}.json") if folder else None
        self.before: dict[str, Any] = {"next": 0, "figures": {}, "most": {}}
        if self.file and self.file.exists():
            self.before = json.loads(self.file.read_text("utf-8"))
        self.first = first or int(self.before["next"])
        self.last, self.next = self.first, self.first
        self.begun_at = self.saved_at = time.monotonic()

    def rounds(self, usually: int) -> Iterator[random.Random]:
        wanted = self.number or usually
        for number in itertools.count(self.first):
            self.last = number
            yield random.Random(f"{self.seed} {self.name} {number}")
            self.next = number + 1
            self.figures["seconds"] = lasted = int(time.monotonic() - self.begun_at)
            if time.monotonic() - self.saved_at > 1:  # it may be killed
                self.save()
            if lasted >= self.seconds if self.seconds else number + 1 - self.first >= wanted:
                return

    def measured(self, what: str, number: int) -> None:
        self.most[what] = max(number, self.most.get(what, number))

    def save(self) -> None:
        if not self.file:
            return
        self.file.parent.mkdir(exist_ok=True)
        part = self.file.with_suffix(".part")
        part.write_text(json.dumps(self.state(), indent=4), "utf-8")
        part.replace(self.file)
        self.saved_at = time.monotonic()

    def state(self) -> dict[str, Any]:
        """What this run and those before it did."""
        figures, most = Counter(self.before["figures"]), dict(self.before["most"])
        figures.update(self.figures)
        for what, number in self.most.items():
            most[what] = max(number, most.get(what, number))
        return {"next": self.next, "figures": figures, "most": most}

    def __str__(self) -> str:
        rounds = f"{self.name}: --seed {self.seed}, rounds {self.first:,} to {self.last:,}"
        told = rounds + listed(self.figures | self.most)
        if self.file:
            state = self.state()
            told += f"; in all {state['next']:,} rounds{listed(state['figures'] | state['most'])}"
        return told


def listed(figures: dict[str, int]) -> str:
    return "".join(f", {number:,} {what}" for what, number in figures.items())
