"""Items whose data is the same on every machine: a part of each is run again, and must match its record.

A part, as all of an item takes minutes. Items whose costs callgrind counts are not among them: their figures depend on the compiler.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from slabyard.study import bonwick_cache_effects, bonwick_memory, kyritsis, papers, sheaves, variants
from slabyard.study.model import RECORDS, Data, Item
from slabyard.study.work import read_record

EXACT = [one for one in papers.items(papers.TITLES) if one.exact]

Part = Callable[[Data], tuple[Any, Any]]  # a part of a record's data: run again, and as it is kept


def _cache(data: Data) -> tuple[Any, Any]:
    names = ("bonwick:colour=off", "bsd44")
    return {name: bonwick_cache_effects._of(name, data["touches"]) for name in names}, {name: data["allocators"][name] for name in names}


def _fragmentation(data: Data) -> tuple[Any, Any]:
    """The figures on the paper's machine. The smallest memory: the recording fits it, and does not fit a page less."""
    recording = variants.read(bonwick_memory.RECORDING)
    title, least = bonwick_memory.HIS_MACHINE, data["conditions"][bonwick_memory.LEAST]["bonwick"]
    names = [*data["conditions"][title]]
    slow, pages = bonwick_memory._slow(recording), least["memory"] // bonwick_memory.PAGE
    fits, fails = (bonwick_memory._within(slow, "bonwick", count) for count in (pages, pages - 1))
    assert fits is not None
    fits["marks"] = {name: at for name, at in fits["marks"].items() if name in bonwick_memory.STEPS}
    found = bonwick_memory.under(bonwick_memory.CONDITIONS[title], recording, names)
    return [found, fits, fails], [data["conditions"][title], least, None]


def _week(data: Data) -> tuple[Any, Any]:
    light = bonwick_memory.week(variants.read(bonwick_memory.RECORDING), data["days"])
    names = ("bonwick", "svr4")
    found = bonwick_memory.replayed(light, {name: name for name in names}, 1.0)
    return found, {name: data["conditions"][bonwick_memory.SHORT][name] for name in names}


def _sizes(most: int) -> Part:
    return lambda data: (kyritsis.run(most, "empty", 1, details=True), data["empty"][0])


def _counting(data: Data) -> tuple[Any, Any]:
    return kyritsis.run(256, "booted", 1, tuple(kyritsis.THEIRS)), data["sizes"]["256"]


def _locks(data: Data) -> tuple[Any, Any]:
    (name, (_, waits, _)), cpus = next(iter(sheaves._PATTERNS.items())), sheaves._CPUS[0]
    return sheaves._counted(name, cpus, waits, False, 1), {spec: draws[0] for spec, draws in data[f"{name} {cpus}"].items()}


PARTS: dict[str, Part] = {
    "bonwick-cache": _cache,
    "bonwick-fragmentation": _fragmentation,
    "bonwick-week": _week,
    **{f"kyritsis-{name}": _sizes(most) for name, most in kyritsis.MOST.items()},
    "kyritsis-counting": _counting,
    "sheaves-locks": _locks,
    "kyritsis-log": lambda data: (kyritsis._log(), data["searches"]),
}


def test_no_exact_item_is_forgotten() -> None:
    assert {one.ident for one in EXACT} == PARTS.keys()


@pytest.mark.parametrize("item", EXACT, ids=lambda item: item.ident)
def test_an_exact_item_is_as_recorded(item: Item) -> None:
    record = read_record(RECORDS / item.record, False)
    assert record is not None
    found, kept = PARTS[item.ident](record["data"])
    assert json.loads(json.dumps(found)) == kept
