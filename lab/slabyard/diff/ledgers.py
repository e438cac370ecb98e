"""A ledger: who holds how much memory, from a trace or a dump; and what changed from one ledger to another.

Of a dump the holders are those in it (trace/dumps.py). Of a trace they are the caches (a kmalloc counts for its size class) and the call
sites. Each holds what it allocated in the trace less what was freed of it: what grew. A free of an object older than the trace
takes from its cache, where that is known, but from no call site, as nothing tells who allocated it.

Names. What is one place in two kernels has one name only without what each build changes: the offset in a function, the line in a file.
They are left out where the two are of different kernels, and what then has one name is added up.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ..attribution.usage import Joiner, Rows
from ..base.errors import UserError
from ..base.terminal import printable
from ..trace import dumps
from ..trace.cache_names import kmalloc_class
from ..trace.dumps import Dump, Holder
from ..trace.file import NO_CACHE, NO_OBJECT, Trace, Vocabulary, codes, recorded_curve
from ..trace.snapshots import kmalloc_name
from .model import Grown

LARGEST_CLASS = 8192  # bytes of kmalloc; what is larger has pages of its own
SAME_PLACES = 0.9  # of the places that two dumps share by name, from which on both are of one build


@dataclass
class Ledger:
    """What one file says. `memory` is in bytes."""

    path: Path
    kind: str  # slabinfo, slabtop, oom, allocinfo or trace
    sections: dict[str, list[Holder]]  # by what the holders are: cache, call site
    memory: int | None
    title: str
    build: str = ""  # of the kernel; empty: unknown
    incomplete: str | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def grew(self) -> bool:
        """Whether its figures are what grew, not what there is."""
        return self.kind == "trace"


def of_dumps(path: Path, found: list[Dump]) -> Ledger:
    """Of a file with several dumps the last one counts."""
    last = found[-1]
    notes = list(last.notes)
    if len(found) > 1:
        notes.append(f"{printable(path.name)} has {len(found)} dumps; the last one counts.")
    if last.listed_of:
        notes.append(f"{printable(path.name)} lists {len(last.holders)} of {last.listed_of} caches.")
    title = f"{printable(path.name)} ({dumps.TITLES[last.kind]})"
    return Ledger(path, last.kind, {last.what: last.holders}, last.bytes, title, incomplete=last.incomplete, notes=notes)


def of_trace(path: Path) -> Ledger:
    """One pass over the events, in bounded memory."""
    with Trace(path) as trace:
        metadata = trace.metadata
        caches, sites = _grown(trace)
        memory = None
        if metadata.has_pages:
            curve = recorded_curve(trace, with_older=True)
            memory = (curve.peak - curve.before) * metadata.page_size
    title = f"{printable(path.name)}: {metadata.extent}, kernel {metadata.kernel or 'unknown'}"
    return Ledger(path, "trace", {"cache": caches, "call site": sites}, memory, title, metadata.kernel, metadata.incomplete)


class _Sums:
    """Bytes and objects by number, as many numbers as come."""

    def __init__(self) -> None:
        self.bytes, self.count, self.asked = (np.zeros(0, np.int64) for _ in range(3))

    def add(self, numbers: np.ndarray, bytes_: np.ndarray, sign: int) -> None:
        if not len(numbers):
            return
        room = int(numbers.max()) + 1 - len(self.bytes)
        if room > 0:
            self.bytes, self.count, self.asked = (np.pad(one, (0, room)) for one in (self.bytes, self.count, self.asked))
        length = len(self.bytes)
        self.bytes += sign * np.bincount(numbers, bytes_, length).astype(np.int64)
        self.count += sign * np.bincount(numbers, minlength=length)
        if sign > 0:
            self.asked += np.bincount(numbers, minlength=length)

    def holders(self, names: list[str]) -> list[Holder]:
        """Those that were asked, or gave back. `room`: how often they were asked."""
        return [
            Holder(name, int(self.bytes[at]), int(self.count[at]), room=int(self.asked[at]))
            for at, name in enumerate(names[: len(self.bytes)])
            if self.asked[at] or self.count[at]
        ]


def _grown(trace: Trace) -> tuple[list[Holder], list[Holder]]:
    """What the trace's caches and call sites hold at its end of what it has seen allocated."""
    caches, classes, sites, names, joiner = _Sums(), _Sums(), _Sums(), Vocabulary(), Joiner()
    sizes = np.asarray([one.object_size for one in trace.metadata.caches] or [0], np.int64)
    for batch in trace.batches(["kind", "origin", "object", "size", "allocated", "cache", "call_site"]):
        rows = Rows(batch)
        chosen = np.flatnonzero(rows.allocates | rows.frees)
        allocates, older, cache = rows.allocates[chosen], rows.older[chosen], rows.cache[chosen]
        cached = cache != NO_CACHE
        size = np.where(older & cached, sizes[np.where(cached, cache, 0)], rows.size[chosen])  # an older object's is not in the trace
        class_ = np.minimum(kmalloc_class(rows.size[chosen], rows.allocated[chosen], trace.metadata.shared_pages), LARGEST_CLASS + 1)
        key = np.where(allocates, class_ << 32 | codes(batch["call_site"], names)[chosen], -1)
        joined = ~older & (rows.object[chosen] != NO_OBJECT)
        key[joined] = joiner.join(rows, chosen[joined], key[joined])
        for sign, which in ((1, allocates), (-1, ~allocates)):
            caches.add(cache[which & cached], size[which & cached], sign)
            told = which & (key >= 0)
            sites.add(key[told] & 0xFFFFFFFF, size[told], sign)
            plain = told & ~cached
            classes.add(key[plain] >> 32, size[plain], sign)
    kmalloc = [kmalloc_name(size) for size in range(LARGEST_CLASS + 1)] + ["kmalloc (pages)"]
    holders = caches.holders([one.label for one in trace.metadata.caches]) + classes.holders(kmalloc)
    return holders, sites.holders([text or "(unknown)" for text in names.texts])


# ---- Two of them ---------------------------------------------------------------------------------------------------------------


def changes(old: Ledger, new: Ledger) -> list[Grown]:
    """Every holder of either, a section after the other, those that grew most first. UserError where the two say nothing of the same
    things."""
    both = [what for what in old.sections if what in new.sections]
    if not both or old.grew != new.grew:
        raise UserError(f"{old.path} is {_article(old.kind)}, {new.path} {_article(new.kind)}; give two of one kind")
    found = []
    for what in both:
        plain = _plain_names(what, old, new)
        mine, others = _named(old.sections[what], plain), _named(new.sections[what], plain)
        section = [_change(what, name, mine.get(name), others.get(name), old.grew) for name in dict.fromkeys([*mine, *others])]
        found += sorted(section, key=lambda one: (-abs(one.change), one.name))
    return found


def _change(what: str, name: str, old: Holder | None, new: Holder | None, grew: bool) -> Grown:
    """One holder in both; None: it is not there. Counts are of objects or calls, in a trace of allocations."""
    sizes = [None if one is None else one.bytes for one in (old, new)]
    counts = [None if one is None else one.room if grew else one.count for one in (old, new)]
    return Grown("", "", what, name, *sizes, *counts)


def _article(kind: str) -> str:
    return "a trace" if kind == "trace" else f"a dump of {dumps.TITLES[kind]}"


def _plain_names(what: str, old: Ledger, new: Ledger) -> Callable[[str], str]:
    """How names are compared."""
    if what == "cache":
        return str
    if old.grew:
        same = old.build == new.build and bool(old.build)
        return str if same else lambda name: re.sub(r"\+0x[0-9a-f]+(/0x[0-9a-f]+)?", "", name)
    mine, others = ({one.name for one in ledger.sections[what]} for ledger in (old, new))
    if len(mine & others) >= SAME_PLACES * min(len(mine), len(others)):
        return str
    return lambda name: re.sub(r":\d+ ", " ", name, count=1)


def _named(holders: list[Holder], plain: Callable[[str], str]) -> dict[str, Holder]:
    """By name, holders of one name added up."""
    found: dict[str, Holder] = {}
    for one in holders:
        name = plain(one.name)
        if name not in found:
            found[name] = Holder(name, one.bytes, one.count, one.size, one.room, one.used)
            continue
        sum_ = found[name]
        sum_.bytes += one.bytes
        sum_.count = _sum(sum_.count, one.count)
        sum_.room, sum_.used = _sum(sum_.room, one.room), _sum(sum_.used, one.used)
    return found


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other
