"""What tuning found, for people: the frontier beside the default, the times of those that matter, the indices, the settings to use."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from ..base.table import WIDTH, Cell, Figure, Table
from ..results import measures
from .outcome import Outcome, kernel_commands
from .trials import OBJECTIVES, TITLES, Trial

MOST_ROWS = 16
PAGE_KIB = 4


def tables(found: Outcome) -> list[Table]:
    out = [_frontier(found)]
    if found.timed or found.counted:
        out.append(_finalists(found))
    if found.indices:
        out.append(_indices(found))
    out[-1].notes += _advice(found)
    return out


def _frontier(found: Outcome) -> Table:
    tried = f"{'all ' if found.whole else ''}{len(found.trials):,} settings"
    of = "" if found.whole else f" of {found.space.size:,}"
    title = f"{found.space.allocator} on {found.workload}: {tried}{of}; none is better in all than these"
    shown = _spread(found.frontier, MOST_ROWS)
    rows: list[list[Cell]] = [["default", *_cells(found.default, found)]]
    for one in shown:
        rows.append([_short(one, found), *_cells(one, found)])
    notes = []
    if len(shown) < len(found.frontier):
        notes.append(f"{len(found.frontier) - len(shown)} more on the frontier; --format csv has all settings.")
    if found.refused:
        first = found.refused[0]
        notes += textwrap.wrap(f"{len(found.refused):,} settings were refused, as {first.spec}: {first.refused}", WIDTH)
    known = any(one.grew is not None for one in found.trials)
    columns = ["setting", "peak KiB", *(["grew KiB"] if known else []), "cost per 1,000", "events"]
    return Table(title, columns, rows, notes)


def _short(one: Trial, found: Outcome) -> str:
    """The setting without the allocator's name."""
    return one.spec.removeprefix(found.space.allocator).lstrip(":,") or "(default)"


def _spread(found: Sequence[Trial], most: int) -> Sequence[Trial]:
    """So many of them, evenly, the ends among them."""
    if len(found) <= most:
        return found
    return [found[place * (len(found) - 1) // (most - 1)] for place in range(most)]


def _cells(one: Trial, found: Outcome) -> list[Cell]:
    pages, cost, events = one.goals
    cells: list[Cell] = [Figure(pages * PAGE_KIB, f"{pages * PAGE_KIB:,.0f}{_change(pages, found.default.goals[0], one, found)}")]
    if any(trial.grew is not None for trial in found.trials):
        cells.append(None if one.grew is None else one.grew * PAGE_KIB)
    return [*cells, Figure(cost, f"{cost:,.1f}{_change(cost, found.default.goals[1], one, found)}"), int(events)]


def _change(value: float, default: float, one: Trial, found: Outcome) -> str:
    if one is found.default or not default or value == default:
        return ""
    return f" ({100 * (value / default - 1):+.1f}%)"


def _finalists(found: Outcome) -> Table:
    """What is left at the end, timed and counted as far as that was asked for."""
    rows: list[list[Cell]] = []
    for one in found.finalists():
        time = found.time(one)
        interval = "-" if time is None or time.low is None else f"{time.low:.1f}-{time.high:.1f}"
        row: list[Cell] = [one.spec]
        if found.timed:
            row += [None if time is None else Figure(time.median, f"{time.median:.1f}"), interval]
        if found.counted:
            row.append(found.counted[one.spec]["instructions"])
        rows.append(row)
    level = measures.confidence(timed.get("runs") for timed in found.timed.values())
    columns = ["allocator", *(["ns/op", level] if found.timed else []), *(["instructions/op"] if found.counted else [])]
    return Table("Default, settings to use, least memory, least cost", columns, rows)


def _indices(found: Outcome) -> Table:
    rows: list[list[Cell]] = []
    for axis in found.space.axes:
        row: list[Cell] = [axis.name]
        for objective in OBJECTIVES:
            index = next((one for one in found.indices if (one.tunable, one.objective) == (axis.name, objective)), None)
            row.append(None if index is None else Figure(index.st, f"{max(0, index.st):.2f} ±{index.st_half:.2f}"))
        rows.append(row)
    notes = textwrap.wrap(
        "Share of the variance over all settings that a tunable is behind, alone or with others (Sobol's total index, 95%).", WIDTH
    )
    return Table("Which tunable matters", ["tunable", *OBJECTIVES], rows, notes)


def _advice(found: Outcome) -> list[str]:
    lines = list(found.notes)
    same = [name for place, name in enumerate(OBJECTIVES) if len({one.goals[place] for one in found.trials if one.refused is None}) < 2]
    if same:
        lines.append(f"No setting changes {' and '.join(f'{name} ({TITLES[name]})' for name in same)}.")
    if found.best is found.default:
        text = f"Use {found.default.spec} as it is: no setting is better in one of these without being worse in another."
        return [line for one in [*lines, text] for line in textwrap.wrap(one, WIDTH)]
    gains = []
    for place, name in enumerate(OBJECTIVES):
        before, after = found.default.goals[place], found.best.goals[place]
        if before != after:
            gains.append(f"{name} {100 * (after / before - 1):+.1f}%" if before else f"{name} {after - before:+,.0f}")
    lines.append(f"Use {found.best.spec}: {', '.join(gains)} against the default.")
    commands = kernel_commands(found.best)
    wrapped = [line for one in lines for line in textwrap.wrap(one, WIDTH)]
    return [*wrapped, *(["On Linux:", *(f"  {one}" for one in commands)] if commands else [])]


def flat(found: Outcome) -> Table:
    """For CSV: a row for each setting that was tried."""
    names = [axis.name for axis in found.space.axes]
    on = {one.spec for one in found.frontier}
    rows: list[list[Cell]] = []
    for one in found.trials:
        goals: list[Cell] = [None] * len(OBJECTIVES) if one.refused is not None else list(one.goals)
        rows.append([one.spec, *(one.values[name] for name in names), *goals, one.grew, int(one.spec in on), one.refused])
    return Table("", ["spec", *names, *OBJECTIVES, "grew_pages_peak", "frontier", "refused"], rows)
