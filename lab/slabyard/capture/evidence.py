"""What shows that a capture is a part of what happened.

A replay of some processes' events, or of one event in hundreds, gives figures like any other, so what was left out must be told. perf
keeps how it was called and each event's attributes (struct perf_event_attr) in its header, and prints both (`perf report
--header-only`, `perf script --header`). tracefs and trace-cmd keep nothing; there the events themselves tell, where they contradict
each other.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping

from ..trace.file import KINDS, PAGE_ALLOC

OBJECT_EVENTS = KINDS[:PAGE_ALLOC]
NO_OBJECTS = f"it has no slab event ({', '.join(OBJECT_EVENTS)}), so there is nothing to replay"
_OBJECTS = ((("kmalloc", "kmalloc_node"), ("kfree",)), (("kmem_cache_alloc", "kmem_cache_alloc_node"), ("kmem_cache_free",)))
_PAIRS = (*_OBJECTS, (("mm_page_alloc",), ("mm_page_free",)))
_ENOUGH = 100  # events of one kind, of which some of the other kind would follow
_FEW_REPEATS = 10
_MANY = 1000  # events of one kind, of which the share that others contradict is judged
_PAGES_UNSEEN = 0.02  # share of page events; compaction moves pages without one, up to 0.7% in recordings of Linux 6.18
_OPTIONS = (
    (("-p", "--pid", "-t", "--tid"), "it has the events of some processes alone (perf record -a records all)"),
    (("-u", "--uid"), "it has the events of one user's processes alone (perf record -a records all)"),
    (("-G", "--cgroup"), "it has the events of one cgroup alone"),
    (("-C", "--cpu"), "it has the events of some CPUs alone"),
    (("--filter",), "its events were filtered (--filter)"),
)


def of_header(text: str) -> list[str]:
    """Causes in what perf prints of a recording, each a clause of its own; empty where it recorded all."""
    causes = []
    events = re.findall(r"^# event : name = kmem:(\w+),(.*)$", text, re.MULTILINE)
    attributes = [attribute for _, attribute in events]
    periods = {int(found[1]) for one in attributes if (found := re.search(r"sample_period, sample_freq \} = (\d+)", one))}
    if any(re.search(r"\bfreq = 1\b", one) for one in attributes):
        causes.append(f"perf sampled, {max(periods, default=0):,} events a second (record with -c 1 in place of -F)")
    elif periods - {1}:
        causes.append(f"perf recorded one event of {max(periods):,} (record with -c 1)")
    line = re.search(r"^# cmdline : (.*)$", text, re.MULTILINE)
    options = _options(line[1]) if line else []
    if any("write_backward = 1" in one for one in attributes):
        causes.append("its buffers were overwritten (--overwrite): on each CPU it begins at another time, and what came before is gone")
    if any("enable_on_exec = 1" in one for one in attributes) or "--per-thread" in options:
        causes.append("it has the events of one command's processes alone (perf record -a records all)")
    for names, cause in _OPTIONS:
        if any(_is_option(option, names) for option in options):
            causes.append(cause)
    twice = sorted({name for name, _ in events if [one for one, _ in events].count(name) > 1})
    if twice:
        causes.append(f"{_listed(twice)} {'was' if len(twice) == 1 else 'were'} recorded twice (name each event once in -e)")
    recorded = {name.removesuffix("_node") for name, _ in events}
    missing = [name for name in OBJECT_EVENTS if name not in recorded]
    if events and len(missing) == len(OBJECT_EVENTS):
        causes.append(NO_OBJECTS)
    elif events and missing:
        causes.append(f"{_listed(missing)} {'was' if len(missing) == 1 else 'were'} not recorded")
    return causes


def of_counts(events: Mapping[str, int], implied: Mapping[str, int]) -> list[str]:
    """Causes in how many events of each kind a capture has, and in how many it proves that it does not show.

    `implied` has the latter: implied_frees, implied_allocations, page_contradictions.
    """
    if not any(events.get(name) for pair in _OBJECTS for names in pair for name in names):
        return [NO_OBJECTS]
    causes = []
    for allocated, freed in _PAIRS:
        allocations, frees = (sum(events.get(name, 0) for name in names) for names in (allocated, freed))
        if allocations >= _ENOUGH and not frees:
            causes.append(f"it has {allocations:,} {allocated[0]} and no {freed[0]}")
        elif frees >= _ENOUGH and not allocations:
            causes.append(f"it has {frees:,} {freed[0]} and no {allocated[0]}")
    allocations, frees = (sum(events.get(name, 0) for pair in _OBJECTS for name in pair[side]) for side in (0, 1))
    if allocations >= _MANY and implied["implied_frees"] * 2 > allocations:
        causes.append(f"{implied['implied_frees']:,} of {allocations:,} allocations were freed unseen")
    if frees >= _MANY and implied["implied_allocations"] * 2 > frees:
        causes.append(f"{implied['implied_allocations']:,} of {frees:,} frees are of objects that were allocated unseen")
    taken, given = events.get("mm_page_alloc", 0), events.get("mm_page_free", 0)
    contradictions = implied["page_contradictions"]
    if min(taken, given) >= _MANY and contradictions > _PAGES_UNSEEN * (taken + given):
        causes.append(f"{contradictions:,} of {taken + given:,} page events contradict others, so some are missing")
    return causes


def of_lines(odd: int, repeats: int) -> list[str]:
    """Causes in how the lines of a text are: cut off, or copied twice."""
    causes = []
    if odd:
        lines = "1 line has" if odd == 1 else f"{odd:,} lines have"
        causes.append(f"{lines} not the fields that others of their event have, as where lines are cut off or run together")
    if repeats >= _FEW_REPEATS:
        causes.append(f"{repeats:,} events stand in it twice, as where a part was copied twice or an event recorded twice")
    return causes


def doubts(rows: int, cpus: int, headed: int, placed: int, first: Mapping[str, int], last: Mapping[str, int]) -> list[str]:
    """What may mean that events were left out of a text, and may not.

    headed: how many events its headings count; placed: how many stand in it. `first` and `last` have the smallest and largest `cpu` and
    `pid` of its events, and `allocated` of its kmallocs.
    """
    found = []
    if placed + placed // 100 < headed:
        found.append(f"its heading counts {headed:,} events, and {placed:,} stand in it (part of a file, one CPU's, or what grep found)")
    if rows < _MANY:
        return found
    if cpus > 1 and first["cpu"] == last["cpu"]:
        found.append(f"all its events are of CPU {first['cpu']}, of {cpus} CPUs (one CPU's file, or tracing_cpumask)")
    if first["pid"] == last["pid"] >= 0:
        found.append(f"all its events are of task {first['pid']} (set_event_pid)")
    if first["allocated"] == last["allocated"]:
        found.append(f"all its kmallocs are of {first['allocated']} bytes (a filter)")
    return found


def _options(command_line: str) -> list[str]:
    """perf's own options: up to `--`, without the program's path."""
    try:
        words = shlex.split(command_line)
    except ValueError:
        words = command_line.split()
    return words[1 : words.index("--")] if "--" in words else words[1:]


def _is_option(word: str, names: Collection[str]) -> bool:
    """`--pid=1` and `-p1` are options with their values."""
    return (word.partition("=")[0] if word.startswith("--") else word[:2]) in names


def _listed(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
