"""What an experiment of a paper is, and what comes of it.

An item is one table or figure of a paper. It is in two halves:

    measure    runs what stands for the paper's experiment, and gives plain data (JSON)
    judge      makes of the data what is shown: the paper's figures beside ours, and whether its claims hold

judge runs nothing and looks at nothing but the data, so the tables can be made again from the record of a run, on another machine,
years later. A claim is a sentence of the paper that our figures can contradict. It holds or does not, by a rule that stands beside it;
where it does not, the reason is made of what was measured. It cannot be told here where the repetitions' windows overlap, or where what
stands for the paper's machine lacks what the claim is about. An item holds where all of its claims do, and in part where some do; it
cannot be told where none of them can.
"""

from __future__ import annotations

import functools
import re
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..base.errors import UserError
from ..base.table import Table
from ..kernels.versions import DEFAULT
from .work import Work

Data = dict[str, Any]
Kernel = tuple[str, str, bool]  # architecture, kind (kernels/kinds.py), whether it is outlined

HOLDS, IN_PART, NOT, UNTOLD = "holds", "holds in part", "does not hold", "cannot be told here"
VALGRIND, BUILDS, QEMU, ARM64 = "valgrind", "kernels", "QEMU", "arm64"  # what an item may need: that kernels are built here, for one


@dataclass(frozen=True)
class Figure:
    """One figure of a table: the paper's, and ours with the least and the greatest of our repetitions where there are several.

    `paper` is the paper's figure as it prints it, a text where a number would lose something of that (`384.50`, `18 to 19`); None in a
    row that the paper does not have (our own allocator, a newer kernel). `ours` is None where it cannot be had here.
    """

    paper: float | str | None
    ours: float | None
    least: float | None = None
    greatest: float | None = None

    @property
    def printed(self) -> str | None:
        """The paper's figure, not rounded."""
        if self.paper is None or isinstance(self.paper, str):
            return self.paper
        return f"{self.paper:,}" if isinstance(self.paper, int) else f"{self.paper:,.10g}"

    @property
    def of_paper(self) -> float | None:
        """The paper's figure as a number: of `18 to 19` the middle."""
        if not isinstance(self.paper, str):
            return self.paper
        numbers = [float(found.replace(",", "")) for found in re.findall(r"\d[\d,]*(?:\.\d+)?", self.paper)]
        return statistics.fmean(numbers) if numbers else None

    @property
    def ratio(self) -> float | None:
        """Ours over the paper's."""
        of_paper = self.of_paper
        return None if not of_paper or self.ours is None else self.ours / of_paper


def repeated(paper: float | str | None, samples: Sequence[float]) -> Figure:
    """The mean of our repetitions, as the papers have it, with best and worst."""
    return Figure(paper, statistics.fmean(samples), min(samples), max(samples)) if samples else Figure(paper, None)


@dataclass(frozen=True)
class Sheet:
    """Figures of one kind. `rows`: a name for each figure. `unit`: of all of them; what it was in the paper, if that differs.
    `ratios`: whether ours over the paper's means something (of ranks it does not)."""

    title: str
    unit: str
    rows: Sequence[tuple[str, Figure]]
    paper_unit: str = ""
    notes: Sequence[str] = ()
    ratios: bool = True
    table: Table | None = None  # in place of a row for each figure, where they are shown in several columns


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper. `holds`: None where that cannot be told here. `because`: why it does not hold or cannot be told, or what
    makes it hold, by measurement."""

    text: str
    holds: bool | None
    because: str = ""

    @property
    def verdict(self) -> str:
        return UNTOLD if self.holds is None else HOLDS if self.holds else NOT


@dataclass(frozen=True)
class Picture:
    """A drawing, as SVG. `beside`: the least width (rem) with which it stands side by side with those before and after it that have the
    same; 0: it stands alone."""

    title: str
    svg: str
    beside: int = 0


@dataclass
class Outcome:
    """What an item comes to."""

    sheets: Sequence[Sheet]
    claims: Sequence[Claim]
    pictures: Sequence[Picture] = ()
    stands_for: str = ""  # what we measure in place of the paper's machine or workload, and what that leaves open
    notes: list[str] = field(default_factory=list)
    listing: Sequence[str] = ()  # lines of a log, to be shown as they are

    @property
    def verdict(self) -> str:
        verdicts = {claim.verdict for claim in self.claims}
        if len(verdicts) == 1:
            return verdicts.pop()
        return IN_PART if HOLDS in verdicts else NOT


@dataclass(frozen=True)
class Item:
    """A table or figure of a paper, and how to make it again.

    `place`: where it stands in the paper. `check`: raises UserError where a tool is missing, before anything is run. `exact`: the data
    is the same on every machine, so a test may hold it against the record. `kept_as`: of items that judge the same data, the name
    under which it is kept once. `kernels`: those that a quick run boots; all of a study's are built before its first item. `tools`: what
    it needs beside these, of VALGRIND. `quick`: what a quick run leaves out, in a sentence.
    """

    paper: str
    name: str
    title: str
    place: str
    measure: Callable[[Work], Data]
    judge: Callable[[Data], Outcome]
    check: Callable[[], object] = lambda: None
    exact: bool = False
    kept_as: str = ""
    kernels: Sequence[Kernel] = ()
    tools: tuple[str, ...] = ()
    quick: str = ""

    @property
    def needs(self) -> tuple[str, ...]:
        """Of VALGRIND, BUILDS, QEMU, ARM64."""
        archs = {arch for arch, _, _ in self.kernels}
        return (*self.tools, *((BUILDS,) if archs else ()), *((QEMU,) if archs - {"um"} else ()), *((ARM64,) if "arm64" in archs else ()))

    @property
    def ident(self) -> str:
        return f"{self.paper}-{self.name}"

    @property
    def heading(self) -> str:
        """Place and title, as a heading."""
        return f"{self.place[:1].upper()}{self.place[1:]}: {self.title}"

    def booted(self, asked: str) -> str:
        """The version of Linux that makes a difference to it, of the one that is asked for."""
        return asked if self.kernels else DEFAULT

    @property
    def record(self) -> str:
        """The name of its record's file."""
        return f"{self.paper}-{self.kept_as or self.name}.json"


@dataclass(frozen=True)
class Done:
    """An item that was run: its record and what it comes to."""

    item: Item
    record: dict[str, Any]

    @functools.cached_property
    def outcome(self) -> Outcome:
        found = self.item.judge(self.record["data"])
        if "linux" in self.record:
            linux = self.record["linux"]
            found.notes.append(f"The kernels are Linux {linux}. For allocators that it lacks, slabyard's policies of their names serve.")
        return found


@dataclass(frozen=True)
class LeftOut:
    """An item that could not be run here, and why."""

    item: Item
    error: UserError


RECORDS = Path(__file__).parent / "records"
