"""A difference for people: what it comes to, the measures that changed, and who holds the memory that did.

First comes one line for each condition, or, where none was given, for each of the usual measures: how many runs were compared, how many are
worse and better, and the largest change. Of the measures themselves those that surely changed are shown, and those that fail a
condition; `every` shows all. Holders are shown by how much they changed, and the rest in one line.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..base.table import Cell, Figure, Table
from ..results.model import Estimate
from .model import BETTER, HEADLINES, NO_INTERVAL, SAME, TIE, UNSURE, WORSE, Difference, Grown, Row

MOST_HOLDERS = 20  # of a kernel
MOST_CACHES = 5  # of each run
MOST_LEDGERS = 4  # runs whose caches are shown
LEAST_SHARE = 0.001  # of what changed, below which a holder says nothing


def tables(found: Difference, every: bool = False) -> list[Table]:
    if found.rows and not found.rows[0].run:
        out = [_totals(found)]
    else:
        shown = [row for row in found.rows if every or row.failed or (row.measure in HEADLINES and row.verdict in (WORSE, BETTER))]
        workloads = dict.fromkeys(row.workload for row in shown)
        out = [_summary(found), *(_measures(name, [row for row in shown if row.workload == name]) for name in workloads)]
    out += _holders(found, every)
    out[-1].notes += _notes(found, every)
    return out


def _summary(found: Difference) -> Table:
    if found.conditions:
        asked = [(one.text, found.of(one), [row for row in found.of(one) if one.text in row.failed]) for one in found.conditions]
        heading = ["condition", "compared", "regressions", "largest change", "of"]
    else:
        names = [name for name in HEADLINES if any(row.measure == name for row in found.rows)]
        asked = [(name, [row for row in found.rows if row.measure == name], []) for name in names]
        heading = ["measure", "compared", "worse", "better", "largest change", "of"]
    body: list[list[Cell]] = []
    for name, rows, failed in asked:
        sure = [row for row in rows if row.verdict in (WORSE, BETTER)]
        worst = max(failed or sure, key=_amount, default=None)
        counts: list[Cell] = [len(failed)] if found.conditions else [sum(row.verdict == one for row in rows) for one in (WORSE, BETTER)]
        body.append([name, len(rows), *counts, change(worst) if worst else "-", _of(worst) if worst else "-"])
    return Table(verdict(found), heading, body)


def _totals(found: Difference) -> Table:
    """Of two ledgers, which have no runs."""
    rows: list[list[Cell]] = [
        [row.workload, _figure(row, row.old), _figure(row, row.new), change(row), row.verdict, ", ".join(row.failed) or "-"]
        for row in found.rows
    ]
    columns = ["", "old", "new", "change", "verdict", "fails"]
    return Table(verdict(found), columns if found.conditions else columns[:-1], rows if found.conditions else [row[:-1] for row in rows])


def verdict(found: Difference) -> str:
    """What the difference comes to, as a heading."""
    names = f"{found.new} against {found.old}"
    if not found.conditions:
        return names
    count = len({(row.workload, row.run) for row in found.failures})
    if not count:
        return f"No regression: {names}"
    if all(not row.run for row in found.failures):
        return f"Regression: {names}"
    return f"{count} run{'s' if count > 1 else ''} with a regression: {names}"


def _amount(row: Row) -> float:
    return abs(row.percent) if row.percent is not None else float("inf")


def _of(row: Row) -> str:
    return f"{row.workload}: {row.run}" if row.run else row.workload


def change(row: Row) -> str:
    """How much more, in percent."""
    return percent(row.percent) if row.percent is not None else "from 0"


def percent(value: float | None) -> str:
    if value is None:
        return "new"
    return f"{value:+,.0f}%" if abs(value) >= 100 else f"{value:+.1f}%" if abs(value) >= 0.05 or not value else f"{value:+.2g}%"


def _measures(workload: str, rows: Sequence[Row]) -> Table:
    body: list[list[Cell]] = []
    for row in rows:
        said = f"FAILS {row.verdict}" if row.failed else row.verdict
        body.append([row.run, row.measure, _figure(row, row.old), _figure(row, row.new), change(row), said])
    return Table(workload, ["run", "measure", "old", "new", "change", "verdict"], body, keys=2)


def _figure(row: Row, one: Estimate) -> Figure:
    """A value with its unit, and its interval where that is more than the value."""
    interval = one.low is not None and one.high is not None and one.low != one.high
    return Figure(one.median, _text(row, one.median) + (f" ({_bare(row, one.low)}-{_bare(row, one.high)})" if interval else ""))


def _text(row: Row, value: float) -> str:
    if row.unit == "share":
        return f"{100 * value:.1f}%"
    return _bare(row, value) if row.unit in ("pages", "bytes") else f"{_bare(row, value)} {row.unit}".rstrip()


def _bare(row: Row, value: float | None) -> str:
    if value is None:
        return "-"
    if row.unit in ("pages", "bytes"):
        return size(value * (row.scale if row.unit == "pages" else 1))
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


def size(bytes_: float, sign: str = "") -> str:
    """An amount of memory, in KiB below 100 MiB."""
    kib = bytes_ / 1024
    if abs(kib) < 10 and kib != int(kib):
        return f"{kib:{sign},.1f} KiB"
    return f"{kib:{sign},.0f} KiB" if abs(kib) < 100 << 10 else f"{kib / 1024:{sign},.1f} MiB"


# ---- Holders -------------------------------------------------------------------------------------------------------------------


def _holders(found: Difference, every: bool) -> list[Table]:
    out: list[Table] = []
    left = 0
    for (workload, run, what), all_ in _grouped(found.grown).items():
        most = len(all_) if every else MOST_CACHES if run else MOST_HOLDERS
        if run and len(out) == MOST_LEDGERS and not every:
            left += 1
            continue
        changed = [one for one in all_ if one.change and (every or abs(one.change) >= LEAST_SHARE * abs(all_[0].change))]
        title = f"{what.capitalize()}s by change" + (f": {workload}, {run}, at the end" if run else ", at the end" if found.growth else "")
        out.append(_table(title, what, changed, all_, most, found))
    if left and out:
        out[-1].notes.append(f"{left} more run{'s' if left > 1 else ''} with caches that changed; --all shows them.")
    return out


def _grouped(grown: Sequence[Grown]) -> dict[tuple[str, str, str], list[Grown]]:
    groups: dict[tuple[str, str, str], list[Grown]] = {}
    for one in grown:
        groups.setdefault((one.workload, one.run, one.what), []).append(one)
    return groups


def _table(title: str, what: str, changed: list[Grown], all_: list[Grown], most: int, found: Difference) -> Table:
    prefix = "grew, " if found.growth else ""
    columns = [what, f"{prefix}old", f"{prefix}new", "change", "%"]
    body: list[list[Cell]] = [_holder(one) for one in changed[:most]]
    shown = {id(one) for one in changed[:most]}
    rest = [one for one in all_ if id(one) not in shown]
    notes = []
    if not changed:
        notes.append(f"No {what} changed.")
    elif sum(one.change for one in rest) or len(changed) > most:
        notes.append(f"All {len(rest):,} others together: {size(sum(one.change for one in rest), '+')}.")
    return Table(title, columns, body, notes)


def _holder(one: Grown) -> list[Cell]:
    old, new = one.old_bytes, one.new_bytes
    share = "new" if old is None else "gone" if new is None else percent(100 * one.change / old) if old > 0 else "-"
    amounts = [Figure(value, "-" if value is None else size(value)) for value in (old, new)]
    return [one.name, *amounts, Figure(one.change, size(one.change, "+")), Figure(one.change / old if old else None, share)]


def _notes(found: Difference, every: bool) -> list[str]:
    notes = list(found.notes)
    usual = [row for row in found.rows if row.measure in HEADLINES]
    counts = {name: sum(row.verdict == name for row in usual) for name in (SAME, TIE, UNSURE, NO_INTERVAL)}
    if not any(row.run for row in usual):
        usual, counts = [], dict.fromkeys(counts, 0)
    if counts[UNSURE]:
        notes.append(f"{_count(counts[UNSURE])} within the 95% intervals, so nothing surely changed there.")
    if counts[NO_INTERVAL]:
        notes.append(f"{_count(counts[NO_INTERVAL])} of too few repetitions for an interval (6 are needed), and decide nothing.")
    if counts[TIE]:
        notes.append(f"{_count(counts[TIE])} of memory by less than 1%, which is a tie.")
    if counts[SAME] and not every:
        notes.append(f"{counts[SAME]:,} of {len(usual):,} usual measures are the same.")
    others = sum(row.verdict in (WORSE, BETTER) and not row.failed for row in found.rows if row.measure not in HEADLINES)
    if others and not every:
        notes.append(f"{others:,} other measures changed; --all shows them.")
    for condition in found.conditions:
        if not found.of(condition):
            notes.append(f"{condition.text}: {condition.measure} is not in both files.")
    for names, where in ((found.missing, found.old), (found.added, found.new)):
        if names:
            notes.append(f"Only in {where}: {', '.join(names[:8])}{f' and {len(names) - 8} more' if len(names) > 8 else ''}.")
    return notes


def _count(number: int) -> str:
    return f"{number:,} change{' is' if number == 1 else 's are'}"


def flat(found: Difference) -> Table:
    """For CSV: a row for each measure of each run, and for each holder."""
    columns = ["what", "workload", "run", "name", "unit", "old", "old_low", "old_high", "new", "new_low", "new_high", "percent", "verdict"]
    columns += ["failed", "old_count", "new_count"]
    body: list[list[Cell]] = [
        [
            "measure", row.workload, row.run, row.name, row.unit, row.old.median, row.old.low, row.old.high, row.new.median, row.new.low,
            row.new.high, row.percent, row.verdict, " ".join(row.failed), None, None,
        ]
        for row in found.rows
    ]  # fmt: skip
    for one in found.grown:
        share = 100 * one.change / one.old_bytes if one.old_bytes else None
        none: list[Cell] = [None, None]
        values: list[Cell] = [one.old_bytes, *none, one.new_bytes, *none, share, *none, one.old_count, one.new_count]
        body.append([one.what, one.workload, one.run, one.name, "bytes", *values])
    return Table("", columns, body)
