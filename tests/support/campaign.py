"""Attacks that go on for as long as they may."""

import itertools
import random
import time
from collections import Counter
from collections.abc import Iterator


class Campaign:
    """Rounds of an attack: a few in the test command, as many as fit into `--seconds` in the long
    tier. Each has chance of its own, so that `--seed`, `--first` and `--rounds` give any of them
    again."""

    def __init__(
        self, name: str, seed: int, first: int, number: int | None, seconds: float | None
    ) -> None:
        self.name, self.seed, self.first = name, seed, first
        self.number, self.seconds = number, seconds  # how many rounds, or for how long
        self.figures: Counter[str] = Counter()
        self.begun_at, self.last = time.monotonic(), first

    def rounds(self, usually: int) -> Iterator[random.Random]:
        wanted = self.number or usually
        for number in itertools.count(self.first):
            self.last = number
            yield random.Random(f"{self.seed} {self.name} {number}")
            self.figures["seconds"] = lasted = int(time.monotonic() - self.begun_at)
            if lasted >= self.seconds if self.seconds else number + 1 - self.first >= wanted:
                return

    def __str__(self) -> str:
        figures = "".join(f", {number:,} {what}" for what, number in self.figures.items())
        rounds = f"--seed {self.seed}, rounds {self.first:,} to {self.last:,}"
        return f"{self.name}: {rounds}{figures}"
