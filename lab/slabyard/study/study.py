"""Runs items, keeps their records, and finds items by name."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..base import programs
from ..base.errors import UserError
from ..base.files import check_folder, to_json, write_text
from ..base.terminal import Progress
from ..kernels import build, kinds, source, tools
from ..kernels import cost as kernel_cost
from ..kernels.versions import DEFAULT
from ..replay import cost
from ..results.records import machine, versions
from .model import ARM64, BUILDS, QEMU, RECORDS, VALGRIND, Done, Item, Kernel, LeftOut
from .papers import PAPERS, TITLES, items
from .work import SCHEMA, Work, read_record


def chosen(paper: str, name: str | None) -> list[Item]:
    """The items of a paper (or `all`), or the one of that name."""
    found = [item for item in items(PAPERS if paper == "all" else TITLES) if paper in ("all", item.paper) and name in (None, item.name)]
    if not found and paper not in ("all", *TITLES):
        raise UserError(f"no paper {paper!r}; there are {', '.join(TITLES)}")
    if not found:
        raise UserError(f"{paper} has no item {name!r}; slabyard study --list shows them")
    return found


def run(
    wanted: Sequence[Item], quick: bool, folder: Path | None, progress: Progress, tell: Callable[[Done], None],
    left_out: Callable[[LeftOut], None] | None = None, traces: Path | None = None, linux: str = DEFAULT,
) -> list[Done]:  # fmt: skip
    """Runs what has no record in the folder yet (None: all, and nothing is kept). `tell` hears of each item that is done.
    `traces`: a folder of recordings, for the items that replay some. `linux`: the version of the kernels, for those that boot some.

    An item that cannot be run here, as a tool is missing or a boot fails, is left out, and `left_out` hears why: before the first run
    where a tool is missing. Without `left_out`, this is a UserError. Items that are the same on every machine are run beside the builds of
    the others' kernels, as nothing in them is timed.
    """
    if folder is not None:
        check_folder(folder)
        folder.mkdir(parents=True, exist_ok=True)
    kept = {}
    if folder is not None:
        found = {item.ident: read_record(folder / item.record, quick, item.booted(linux)) for item in wanted}
        kept = {ident: record for ident, record in found.items() if record}
    ready = []
    for item in wanted:
        with _without(item, left_out):
            if item.ident not in kept:
                if item.kernels:
                    source.find(None, linux)
                item.check()
            ready.append(item)
        if item not in ready:
            progress.step(item.title)
    done: dict[str, Done] = {}

    def make(item: Item) -> None:
        progress.stage(f"{item.paper}: {item.title}")
        with _without(item, left_out):
            done[item.ident] = Done(item, kept.get(item.ident) or _measured(item, quick, folder, progress, traces, linux))
            tell(done[item.ident])
        progress.step(item.title)

    with programs.side_by_side(1) as pool:
        building = pool.submit(_build_kernels, [item for item in ready if item.ident not in kept], progress, linux)
        for item in ready:
            if item.exact:
                make(item)
        building.result()
    for item in ready:
        if not item.exact:
            make(item)
    return [done[item.ident] for item in ready if item.ident in done]


def _build_kernels(wanted: Sequence[Item], progress: Progress, linux: str) -> None:
    """Builds what the items boot, those of two architectures side by side, as one processor alone links. The others of an architecture
    begin from what its first one has compiled: those of one configuration one after the other, as each begins from the one before,
    those of several side by side. A build that fails is told by the item that needs it, which tries again."""
    order = list(kinds.KINDS)
    had = {kind: kinds.in_place_of(kind, linux) for item in wanted for _, kind, _ in item.kernels}
    of_version = {kind: spec.partition(":")[0] for kind, spec in had.items() if spec is not None}
    asked = (kernel for item in wanted for kernel in item.kernels)
    distinct = {(arch, of_version[kind], outlined) for arch, kind, outlined in asked if kind in of_version}
    needed = sorted(distinct, key=lambda one: (one[2], order.index(one[1])))

    def make(kernels: Sequence[Kernel]) -> bool:
        """Whether all were built; none is tried after one that was not."""
        with contextlib.suppress(UserError):
            for arch, kind, outlined in kernels:
                build.from_installed(arch, kinds.KINDS[kind], progress, outlined, small=True, linux=linux)
            return True
        return False

    def of(arch: str) -> None:
        first, *others = (kernel for kernel in needed if kernel[0] == arch)
        groups: dict[tuple[str, ...], list[Kernel]] = {}
        for kernel in others:
            groups.setdefault(kinds.KINDS[kernel[1]].config[linux], []).append(kernel)
        if make([first]):
            with programs.side_by_side(len(groups)) as pool:
                list(pool.map(make, groups.values()))

    architectures = sorted({kernel[0] for kernel in needed})
    with programs.side_by_side(len(architectures)) as pool:
        list(pool.map(of, architectures))


@contextlib.contextmanager
def _without(item: Item, left_out: Callable[[LeftOut], None] | None) -> Iterator[None]:
    """What is to be done for an item, without which the study goes on where it fails."""
    try:
        yield
    except UserError as error:
        if left_out is None:
            raise UserError(f"{item.paper} {item.name}: {error.message}", error.status) from None
        left_out(LeftOut(item, error))


def _measured(
    item: Item, quick: bool, folder: Path | None, progress: Progress, traces: Path | None, linux: str
) -> dict[str, Any]:
    """Runs an item; its record, kept in the folder."""
    booted = item.booted(linux)
    parts = f".{'quick' if quick else 'full'}-{booted}.parts"
    work = Work(quick, progress, None if folder is None else (folder / item.record).with_suffix(parts), traces, booted)
    data = item.measure(work)
    record = _record(item, work, data)
    if folder is not None:
        write_text(folder / item.record, to_json(record))
        work.finish()
    return record


def recorded(wanted: Sequence[Item]) -> list[Done]:
    """The items as they came out in the full run whose records slabyard brings along."""
    done = [Done(item, record) for item in wanted if (record := read_record(RECORDS / item.record, False))]
    if not done:
        raise UserError("slabyard brings no record of that; run it without --recorded")
    return done


def _record(item: Item, work: Work, data: dict[str, Any]) -> dict[str, Any]:
    about = {"schema": SCHEMA, "paper": item.paper, "item": item.kept_as or item.name, "quick": work.quick}
    about |= {"linux": work.linux} if work.linux != DEFAULT else {}
    made = {"date": time.strftime("%Y-%m-%d", time.gmtime()), "seconds": round(work.seconds), "machine": machine()}
    # As a reader of the record finds the data: keys are texts.
    return {**about, **made, "versions": {**versions(), **_more_versions(item, work.linux)}, "data": json.loads(json.dumps(data))}


def _more_versions(item: Item, linux: str) -> dict[str, str]:
    """slabyard's commit where it runs out of its repository, and the versions of the tools that the item needs."""
    found = {"commit": _commit()}
    if VALGRIND in item.needs:
        found["valgrind"] = cost.tool()
    if BUILDS in item.needs:
        arch = "arm64" if ARM64 in item.needs else "x86_64" if QEMU in item.needs else "um"
        found |= {"compiler": tools.compiler_version(arch), "linux": source.find(None, linux).linux}
        found |= {"qemu": kernel_cost.qemu_version(arch)} if QEMU in item.needs else {}
    return {name: version for name, version in found.items() if version}


def _commit() -> str:
    """The commit, with a `+` where files differ from it; empty where slabyard was installed, whatever repository lies around it."""
    repository = Path(__file__).resolve().parents[3]
    if not (repository / ".git").exists():
        return ""
    commit = tools.first_line(["git", "-C", str(repository), "describe", "--always", "--dirty=+", "--exclude=*"])
    return "" if commit == "unknown" else commit


def seconds(item: Item) -> int | None:
    """How long its full run took, as its record says; None: it does not."""
    record = read_record(RECORDS / item.record, False)
    return None if record is None else record.get("seconds")
