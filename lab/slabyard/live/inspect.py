"""What is in the heaps of a program that uses slabyard: a running process, or a core file.

slabyard-inspect (inspect/) reads them and answers in JSON. Here that becomes tables and text. An answer says how far it can be trusted:
a thread may have been inside of a call when it was stopped, and of a large heap the rest is copied when the process goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..base import programs
from ..base.errors import UserError
from ..base.table import Cell, Figure, Table, counted

FILLS = ("empty", "to 25%", "to 50%", "to 75%", "below full", "full")
Answer = dict[str, Any]


def ask(target: str, *words: str) -> Answer:
    """The answer about a process (a number) or a core file. UserError where there is none."""
    number = target.isascii() and target.isdecimal()
    if number and not Path("/proc", target.lstrip("0"), "maps").exists():
        raise UserError(f"there is no process {target}")
    answer: Answer = programs.run_json(programs.INSPECT, "--pid" if number else "--core", target, *words)
    return answer


def kib(size: int) -> float:
    """Whole numbers where they are."""
    return size // 1024 if size % 1024 == 0 else size / 1024


def name_of(answer: Answer) -> str:
    """Whose heaps these are."""
    program = Path(answer["program"]).name or "?"
    return f"process {answer['process']} ({program})" if answer["process"] else f"{answer['core']} ({program})"


def doubts(answer: Answer) -> list[str]:
    """Why figures may be off; empty: they are of one moment, and whole."""
    found = []
    if answer["unstopped"]:
        found.append(f"The process was not stopped ({answer['unstopped']}), so the figures are of several moments.")
    if answer["late_bytes"]:
        size = answer["late_bytes"] / (1 << 20)
        found.append(f"{size:,.0f} MiB were copied only when the process went on, so as not to stop it for long: counts may be off.")
    if answer["inside_calls"]:
        inside = counted(answer["inside_calls"], "thread")
        found.append(f"The heap was inside an operation ({inside} in the middle of a call): counts may be off by what that moves.")
    if answer["truncated"]:
        found.append("The core file is cut short (ulimit -c): what it lacks reads as zero, so objects and slabs may be missing.")
    return found


def rows_of(heap: dict[str, Any]) -> list[dict[str, Any]]:
    """All that holds memory: caches with slabs, slabs for any size, large allocations."""
    return [one for one in [*heap["caches"], heap["shared"], heap["large"]] if one["slabs"]]


def check_cache(answer: Answer, name: str) -> None:
    """UserError where no heap has a cache of this name."""
    if not any(one["name"] == name for heap in answer["heaps"] for one in heap["caches"]):
        raise UserError(f"{name_of(answer)} has no cache {name}; inspect without --slabs lists those with slabs")


def spec_of(heap: dict[str, Any]) -> str:
    """The heap's spec, as sy_heap_open takes it."""
    settings = ",".join(f"{name}={value}" for name, value in heap["tunables"].items())
    return heap["policy"] + (f":{settings}" if settings else "")


# ---- All of it ---------------------------------------------------------------------------------------------------


def tables(answer: Answer, most: int | None = None) -> list[Table]:
    """The heaps for people; `most` rows of each list of slabs."""
    made = []
    for heap in answer["heaps"]:
        made += [_overview(answer, heap), _caches(heap), _fills(heap)]
        if heap["slabs"]:
            made.append(_slabs(heap["slabs"], most))
    made = made or [Table(f"{name_of(answer)}: no heap", ["heap"], [])]
    if answer["stopped_us"]:
        made[0].notes.append(f"{counted(answer['threads'], 'thread')}, stopped for {answer['stopped_us'] / 1000:.1f} ms.")
    if answer["mappings"] and answer["mappings"]["objects"]:
        mapped = answer["mappings"]
        made[0].notes.append(f"{counted(mapped['objects'], 'object')} of malloc outside of the heap: {kib(mapped['bytes']):,.0f} KiB.")
    made[-1].notes += doubts(answer)
    return made


def _overview(answer: Answer, heap: dict[str, Any]) -> Table:
    title = f"{name_of(answer)}, heap {heap['address']}: {spec_of(heap)}" + (f", checks {heap['checks']}" if heap["checks"] else "")
    rows: list[list[Cell]] = [
        ["slabs", kib(heap["slab_bytes"])],
        ["large allocations", kib(heap["large_bytes"])],
        ["bookkeeping", kib(heap["metadata_bytes"])],
        ["held in all", kib(heap["held_bytes"])],
        ["of it in use", kib(heap["used_bytes"])],
        ["free, with memory", kib(heap["free_backed_bytes"])],
    ]
    if heap["records"]:
        rows.append(["asked for by live objects, mapped ones too", kib(heap["records"]["asked_bytes"])])
    made = Table(title, ["memory", "KiB"], rows)
    made.notes.append(f"Fragmentation: {heap['fragmentation'] or 0:.1%} of what is held is not in use.")
    return made


def _free(one: dict[str, Any]) -> int | None:
    """Free objects on lists of their slabs."""
    if one["objects"] is None:
        return None
    return max(0, int(one["objects"] - one["used"] - one["cached_by_slots"] - one["cached_by_nodes"]))


def _caches(heap: dict[str, Any]) -> Table:
    rows: list[list[Cell]] = []
    for one in sorted(rows_of(heap), key=lambda one: (-one["bytes"], one["name"])):
        share = Figure(one["used_bytes"] / one["bytes"], f"{one['used_bytes'] / one['bytes']:.0%}")
        cached = one["cached_by_slots"] + one["cached_by_nodes"]
        rows.append([one["name"], one["size"], one["used"], cached, _free(one), one["slabs"], kib(one["bytes"]), share])
    columns = ["cache", "size", "used", "cached", "free", "slabs", "KiB", "in use"]
    return Table("", columns, rows)


def _fills(heap: dict[str, Any]) -> Table:
    rows: list[list[Cell]] = [[one["name"], *one["fill"]] for one in rows_of(heap) if one is not heap["large"]]
    return Table("Slabs by how full they are", ["cache", *FILLS], rows)


def _slabs(slabs: list[dict[str, Any]], most: int | None) -> Table:
    rows: list[list[Cell]] = []
    for one in slabs[:most]:
        owner = f" of {one['owner_kind']} {one['owner']}" if one["owner_kind"] else ""
        share = one["used_bytes"] / max(1, one["used_bytes"] + one["free_bytes"])
        rows.append(
            [
                one["address"],
                one["cache"] or "",
                kib(one["bytes"]),
                one["list"] + owner,
                one["used"],
                one["objects"],
                Figure(share, f"{share:.0%}"),
            ]
        )
    made = Table("", ["slab", "cache", "KiB", "list", "used", "objects", "in use"], rows)
    if most is not None and len(slabs) > most:
        made.notes.append(f"{len(slabs) - most:,} more slabs; --lines shows them.")
    return made


# ---- An address --------------------------------------------------------------------------------------------------


def _stack(half: dict[str, Any], indent: str) -> Iterator[str]:
    for frame in half["stack"]:
        yield f"{indent}    {frame}"


def _history(record: dict[str, Any], indent: str = "  ") -> Iterator[str]:
    for what in ("freed", "allocated"):
        if half := record[what]:
            yield f"{indent}{what} {half['seconds_ago']:,.6f} s ago by thread {half['thread']}" + (":" if half["stack"] else "")
            yield from _stack(half, indent)


def _place(part: dict[str, Any]) -> str:
    return f", place {part['place']} of {part['list']}" if part["list"] else ""


def _neighbour(name: str, part: dict[str, Any] | None) -> Iterator[str]:
    if not part:
        yield f"{name}: the {'start' if name == 'before' else 'end'} of the slab"
        return
    yield f"{name}: {part['address']}, {part['bytes']} bytes, {part['state']}{_place(part)}"
    if part["record"]:
        yield f"  object {part['record']['object']} of {part['record']['size']} bytes, {part['record']['state']}"
        yield from _history(part["record"])


def _object(found: dict[str, Any]) -> Iterator[str]:
    """The object that the address is in, and its own history."""
    address = int(found["address"], 16)
    part, record = found.get("part"), found.get("record")
    if part:
        offset = address - int(part["address"], 16)
        yield f"{found['address']}: {offset} bytes into {part['address']}, {part['bytes']} bytes, {part['state']}{_place(part)}"
    if record:
        offset = address - int(record["object"], 16)
        inside = 0 <= offset < max(1, record["size"])
        where = f"{offset} bytes into" if inside else f"outside of the object, {offset:+} bytes from the start of"
        yield f"  {where} object {record['object']} of {record['size']} bytes ({record['cache']}), {record['state']}"
        yield from _history(record)


def describe_address(answer: Answer) -> str:
    """Whose an address is, as text."""
    found = answer["address"]
    lines = [] if found.get("part") else [f"{found['address']}: {found['place']}"]
    if found.get("region"):
        lines.append(f"  mapped from {found['region']}")
    if found.get("object"):
        lines.append(f"  object {found['object']}, a mapping of {found['bytes']:,} bytes")
    lines += _object(found)
    if slab := found.get("slab_of"):
        owner = f" of {slab['owner_kind']} {slab['owner']}" if slab["owner_kind"] else ""
        of = f" of {slab['cache']}" if slab["cache"] else ""
        where = f"list {slab['list']}{owner}, place {slab['place']}"
        lines.append(f"in {found['place']}{of}: {slab['address']}, {slab['bytes']} bytes, {where}")
        lines += [*_neighbour("before", found["before"]), *_neighbour("after", found["after"])]
    if found.get("heap"):
        lines.append(f"heap {found['heap']} of {name_of(answer)}")
    return "\n".join([*lines, *doubts(answer)]) + "\n"


def part_table(answer: Answer, most: int | None) -> Table:
    """What is in the slab of an address. UserError where the address is in none."""
    found = answer["address"]
    if "slab_of" not in found:
        raise UserError(f"{found['address']} is in no slab: {found['place']}")
    rows: list[list[Cell]] = []
    for part in found["parts"][:most]:
        record = part["record"]
        half = record and (record["freed"] or record["allocated"])
        who = f"{'freed' if record['freed'] else 'allocated'} by {half['stack'][0]}" if half and half["stack"] else ""
        size = record["size"] if record else None
        rows.append([part["address"], part["bytes"], part["state"] + _place(part), size, who])
    slab = found["slab_of"]
    title = f"slab {slab['address']} of {slab['cache'] or 'any size'}, list {slab['list']}"
    columns = ["address", "bytes", "state", *(["asked for", "who"] if any(row[3] is not None for row in rows) else [])]
    made = Table(title, columns, [row[: len(columns)] for row in rows])
    if most is not None and len(found["parts"]) > most:
        made.notes.append(f"{len(found['parts']) - most:,} more; --lines shows them.")
    made.notes += doubts(answer)
    return made


# ---- The log -----------------------------------------------------------------------------------------------------


def describe_log(answer: Answer) -> str:
    """The transactions, the youngest first. UserError where nothing was recorded."""
    if answer["log"] is None:
        raise UserError(f"{name_of(answer)} keeps no log; start it with SLABYARD_DEBUG=U (slabyard run --check=U)")
    lines = []
    for one in answer["log"]:
        who = f"{one['cache']}, thread {one['thread']}, {one['seconds_ago']:,.6f} s ago"
        lines.append(f"{one['number']}: {one['what']} {one['object']}, {one['size']} bytes, {who}")
        lines += _stack(one, "")
    return "\n".join([*(lines or ["The log has no transaction on this address."]), *doubts(answer)]) + "\n"
