"""The picture that a report opens with: for one workload what an operation costs against how far memory grew, a mark for each allocator.

Left and below is better. A line joins the allocators that no other beats in both (the frontier); a vertical one is the recorded kernel's
growth, as nobody counted what its operations cost. Cost is instructions where they were counted, else measured time, with its 95% interval
as a whisker; the axis says which. Where runs are too few for intervals, times tell nothing of who costs less: there is no line.

The picture is SVG in the page itself and needs no script. Colours are the style sheet's, so it follows the theme; the marks of the first
six allocators are full, of the next six rings, then rings with a point. Each mark is named beside it, not in a legend. Where names
would meet, one moves round its mark and then away from it, with a thin line back. Scales are logarithmic where values differ
much, as a mark's place is compared with others', not with zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ..base.svg import Scale, Value, element, round_step, title
from ..results.model import COLOURS, Section, Series, estimate, grew, memory_text, memory_unit, page_bytes, short
from ..results.ranks import listed, time_name
from ..results.reasons import counted_cost

WIDTH, HEIGHT = 580, 330
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 24, 44
LETTER, BOLD, LINE = 6.9, 7.6, 13.0  # of a name
MUCH = 5  # times the least, from which on a scale is logarithmic
RADIUS = 5.0

Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Mark:
    """An allocator: its growth in the workload's unit, its cost, and the interval of that where there is one."""

    series: Series
    x: float
    y: float
    low: float
    high: float

    @property
    def name(self) -> str:
        """As it is written in the picture."""
        return short(self.series.label)


# ---- What is drawn -----------------------------------------------------------------------------------------------


def marks(workload: Section) -> list[Mark]:
    """The allocators of which growth and cost are known; costs all counted, or all timed."""
    _, size = memory_unit(workload)
    counted, name = counts(workload), time_name(workload.replayed)
    found = []
    for one in workload.replayed:
        pages = grew(one)
        time = estimate(one.timed, name)
        cost = counted_cost(one) if counted else time.median if time else None
        if pages is None or cost is None or cost <= 0:
            continue
        low, high = (time.low, time.high) if time and not counted else (None, None)
        x = pages * page_bytes(workload) / size
        found.append(Mark(one, x, cost, cost if low is None else low, cost if high is None else high))
    return found


def counts(workload: Section) -> bool:
    """Whether instructions were counted for all allocators; else times are what all have."""
    return all(counted_cost(one) is not None for one in workload.replayed)


def judges(workload: Section) -> bool:
    """Whether costs say who costs less: counted ones do, times by their intervals."""
    name = time_name(workload.replayed)
    times = [estimate(one.timed, name) for one in workload.replayed]
    return counts(workload) or all(one is None or one.low is not None for one in times)


def unit_of_cost(workload: Section) -> tuple[str, bool]:
    """In what costs are, and whether that is of an operation; of a booted kernel, time is the whole workload's."""
    if counts(workload):
        return "instructions", True
    return ("ns", True) if time_name(workload.replayed) == "ns_per_operation" else ("s", False)


def frontier(found: Sequence[Mark]) -> list[Mark]:
    """Those that no other beats in both, from the one that grows least to the one that costs least."""
    best: list[Mark] = []
    for mark in sorted(found, key=lambda one: (one.x, one.y)):
        if not best or mark.y < best[-1].y:
            best.append(mark)
    return best


def sentence(workload: Section) -> str:
    """What the picture shows, in a sentence; empty without a picture."""
    found = marks(workload)
    best = frontier(found)
    if len(found) < 2:
        return ""
    unit, _ = memory_unit(workload)
    what, each = unit_of_cost(workload)
    of = f"{what} an operation" if each else what

    def figures(mark: Mark) -> str:
        decimals = 0 if mark.y >= 100 else 1 if mark.y >= 10 else 2
        return f"{memory_text(workload, grew(mark.series) or 0)} {unit}, {mark.y:,.{decimals}f}"

    if not judges(workload):
        return f"{best[0].name} grows least ({figures(best[0])} {of}). Who costs least is not known: runs are too few for intervals."
    if len(best) == 1:
        return f"{best[0].name} grows least and costs least ({figures(best[0])} {of}); all others are beaten."
    rest = len(found) - len(best)
    between = [mark.name for mark in best[1:-1]]
    middle = f"; between them {listed(between, len(found))}" if between else ""
    beaten = "" if not rest else f". The other {rest} are beaten in both" if rest > 1 else ". The other one is beaten in both"
    least = f"{best[0].name} grows least ({figures(best[0])} {of})"
    return f"{least}, {best[-1].name} costs least ({figures(best[-1])} {what}){middle}{beaten}."


# ---- Scales ------------------------------------------------------------------------------------------------------


def scale(values: Sequence[float], start: float, end: float) -> Scale:
    """An axis with room for all values, and its ticks."""
    low, high = min(values), max(values)
    if low > 0 and high > MUCH * low:
        low, high = low / 1.25, high * 1.25
        return Scale(low, high, start, end, True, _log_ticks(low, high))
    room = 0.12 * (high - low) or max(1.0, 0.1 * abs(high))
    least = -0.4 * room if low >= 0 else low - room  # nothing is below zero, but a mark there is not to sit on the axis
    low, high = max(least, low - room), high + room
    step = round_step((high - low) / 5)
    ticks = [step * place for place in range(math.ceil((low if min(values) < 0 else max(low, 0)) / step), math.floor(high / step) + 1)]
    return Scale(low, high, start, end, False, ticks)


def _log_ticks(low: float, high: float) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors = (1, 2, 5) if high / low < 300 else (1,)
    return [factor * 10.0**power for power in powers for factor in factors if low <= factor * 10.0**power <= high]


def _tick_text(value: float) -> str:
    if value >= 10_000:
        return f"{value / 1000:,.0f}k"
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.3g}"


# ---- Names -------------------------------------------------------------------------------------------------------


def _places(x: float, y: float, width: float) -> Iterator[tuple[Box, bool]]:
    """Where a name could stand, the best first: its box, and whether a line must lead to it."""
    high = LINE
    near = RADIUS + 3
    for dx, dy in ((near, -high / 2), (near - 2, -high - 3), (near - 2, 3), (-near - width, -high / 2), (-near - width + 2, 3),
                   (-near - width + 2, -high - 3), (-width / 2, -near - high), (-width / 2, near)):  # fmt: skip
        yield (x + dx, y + dy, x + dx + width, y + dy + high), False
    for distance in range(20, 181, 8):
        for turn in (0, 180, 330, 30, 150, 210, 60, 300, 120, 240, 90, 270):
            dx, dy = 1.25 * distance * math.cos(math.radians(turn)), distance * math.sin(math.radians(turn))
            left = x + dx - (width if dx < -1 else 0 if dx > 1 else width / 2)
            yield (left, y + dy - high / 2, left + width, y + dy + high / 2), True


def _meet(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _placed(points: Sequence[tuple[float, float, float]], taken: Sequence[Box], inside: Box) -> list[tuple[Box, bool]]:
    """A box for each name, given its mark's place and the name's width: off other names and marks, and off what is taken if that can be."""
    boxes = [(x - RADIUS - 1, y - RADIUS - 1, x + RADIUS + 1, y + RADIUS + 1) for x, y, _ in points]
    found: list[tuple[Box, bool]] = []
    for x, y, width in points:
        within = [
            (box, led)
            for box, led in _places(x, y, width)
            if box[0] >= inside[0] and box[2] <= inside[2] and box[1] >= inside[1] and box[3] <= inside[3]
        ]
        alone = [one for one in within if not any(_meet(one[0], other) for other in boxes)]
        clear = next((one for one in alone if not any(_meet(one[0], other) for other in taken)), None)
        best = clear or next(iter(alone), None) or next(iter(within), None) or next(_places(x, y, width))
        found.append(best)
        boxes.append(best[0])
    return found


# ---- The picture -------------------------------------------------------------------------------------------------


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start", **more: Value) -> Markup:
    return element("text", {"x": x, "y": y, "class": kind, "text-anchor": anchor, **more}, text)


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    return element("line", {"x1": x1, "y1": y1, "x2": x2, "y2": y2, "class": kind})


def _axes(across: Scale, up: Scale, unit: str, what: str) -> Iterator[Markup]:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    for tick in across.ticks:
        yield _line(across(tick), TOP, across(tick), bottom, "grid")
        yield _text(across(tick), bottom + 16, _tick_text(tick), "tick", "middle")
    for tick in up.ticks:
        yield _line(LEFT, up(tick), right, up(tick), "grid")
        yield _text(LEFT - 7, up(tick) + 4, _tick_text(tick), "tick", "end")
    yield _text((LEFT + right) / 2, HEIGHT - 8, f"memory grown ({unit})", "axis", "middle")
    yield _text(-(TOP + bottom) / 2, 13, what, "axis", "middle", transform="rotate(-90)")


def _shape(mark: Mark, x: float, y: float, told: str) -> Markup:
    style = mark.series.style or 0
    kind = f"mark s{style % COLOURS}{' ring' if style >= COLOURS else ''}"
    shapes = [title(told), element("circle", {"cx": x, "cy": y, "r": RADIUS - (0.8 if style >= COLOURS else 0)})]
    if style >= 2 * COLOURS:
        shapes.append(element("circle", {"cx": x, "cy": y, "r": 1.4, "class": "point"}))
    return element("g", {"class": kind}, *shapes)


def _recorded(growth: float | None, across: Scale) -> Iterator[Markup]:
    if growth is None:
        return
    x = across(growth)
    half = LETTER * len("recorded kernel") / 2
    yield _line(x, TOP, x, HEIGHT - BOTTOM, "recorded")
    yield _text(min(max(x, LEFT + half), WIDTH - RIGHT - half), TOP - 8, "recorded kernel", "recorded", "middle")


def picture(workload: Section) -> Markup | None:
    """The picture of a workload; None where fewer than two allocators have both figures."""
    found = marks(workload)
    if len(found) < 2:
        return None
    unit, size = memory_unit(workload)
    real = workload.recorded
    rise = None if real is None else grew(real)
    recorded = None if rise is None else rise * page_bytes(workload) / size
    xs = [mark.x for mark in found] + ([] if recorded is None else [recorded])
    across = scale(xs, LEFT, WIDTH - RIGHT)
    up = scale([value for mark in found for value in (mark.y, mark.low, mark.high)], HEIGHT - BOTTOM, TOP)
    name, each = unit_of_cost(workload)
    what = f"{'' if counts(workload) else 'measured '}{name}{' per operation' if each else ' of the workload'}"
    best = frontier(found) if judges(workload) else []
    shapes = [*_axes(across, up, unit, what), *_recorded(recorded, across), *_edge(best, across, up)]
    shapes += [_line(across(mark.x), up(mark.low), across(mark.x), up(mark.high), "whisker") for mark in found if mark.low < mark.high]
    whiskers = [(across(mark.x) - 1, up(mark.high), across(mark.x) + 1, up(mark.low)) for mark in found if mark.low < mark.high]
    taken = [*_lines(best, across, up, recorded), *whiskers]
    shapes += _named(found, best, across, up, taken, lambda mark: f"{mark.series.label}: {mark.x:,.0f} {unit}, {mark.y:,.1f} {what}")
    said = f"{workload.name}: {what} against memory grown. {sentence(workload)}"
    return element("svg", {"viewBox": f"0 0 {WIDTH} {HEIGHT}", "role": "img", "aria-label": said}, *shapes)


def _edge(best: Sequence[Mark], across: Scale, up: Scale) -> Iterator[Markup]:
    """The frontier, as steps: whoever lies above or to the right of it is beaten."""
    if not best:
        return
    path = f"M{across(best[0].x):.1f} {TOP}"
    for mark in best:
        path += f"H{across(mark.x):.1f}V{up(mark.y):.1f}"
    yield element("path", {"d": f"{path}H{WIDTH - RIGHT}", "class": "frontier"})


def _lines(best: Sequence[Mark], across: Scale, up: Scale, recorded: float | None) -> list[Box]:
    """What names are not to be written over: the frontier's steps and the recorded kernel's line."""
    found: list[Box] = []
    before = float(TOP)
    for place, mark in enumerate(best):
        x, y = across(mark.x), up(mark.y)
        end = across(best[place + 1].x) if place + 1 < len(best) else WIDTH - RIGHT
        found += [(x - 1, before, x + 1, y), (x, y - 1, end, y + 1)]
        before = y
    if recorded is not None:
        found.append((across(recorded) - 1, TOP, across(recorded) + 1, HEIGHT - BOTTOM))
    return found


def _named(
    found: Sequence[Mark], best: Sequence[Mark], across: Scale, up: Scale, taken: Sequence[Box], told: Callable[[Mark], str]
) -> list[Markup]:
    """The marks and their names, which keep off what is taken; those of the frontier have the first choice of a place."""
    ordered = [*best, *(mark for mark in found if mark not in best)]
    points = [(across(mark.x), up(mark.y), (BOLD if mark in best else LETTER) * len(mark.name) + 2) for mark in ordered]
    boxes = _placed(points, taken, (LEFT + 2, TOP + 1, WIDTH - 1, HEIGHT - BOTTOM - 2))
    shapes, texts = [], []
    for mark, (x, y, _), (box, led) in zip(ordered, points, boxes, strict=True):
        if led:
            nearest = (min(max(x, box[0]), box[2]), min(max(y, box[1] + 3), box[3] - 3))
            shapes.append(_line(x, y, *nearest, "leader"))
        texts.append(_text(box[0] + 1, box[3] - 3, mark.name, "name best" if mark in best else "name"))
    shapes += [_shape(mark, x, y, told(mark)) for mark, (x, y, _) in reversed(list(zip(ordered, points, strict=True)))]
    return [*shapes, *texts]


def cost_note(workloads: Sequence[Section]) -> str:
    """What the pictures' line and costs are."""
    drawn = [one for one in workloads if len(marks(one)) > 1]
    line = "The line joins those that no other beats in both."
    if all(map(counts, drawn)):
        return line if drawn else ""
    judged = [one for one in drawn if judges(one)]
    booted = any(not unit_of_cost(one)[1] for one in drawn)
    more = "" if booted else "; compare --cost counts instructions"
    if not judged:
        return f"Cost is measured time, of runs too few for intervals, so no line shows who is best{more}."
    few = "" if judged == drawn else "; where runs are too few for them no line shows who is best"
    return f"{line} Cost is measured time, whose whiskers are intervals{few}{more}."
