"""The picture of `slabyard tune --plot`: memory against cost, a dot for each setting, the frontier as a line through its own.

Three objectives are drawn in two dimensions: colour tells of fragmentation, from none to the most. The line is the frontier of memory and
cost alone, a stair, as between two of its settings there is none. The default, and the settings to use, are named. A browser shows
each dot's setting under the pointer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from ..base import svg
from ..base.svg import Scale, Value, element, title
from .outcome import Outcome
from .tables import PAGE_KIB
from .trials import Trial

WIDTH, HEIGHT = 760, 520
LEFT, RIGHT, TOP, BOTTOM = 90, 24, 56, 60
FEW, MANY = (59, 110, 165), (203, 75, 63)  # colours of no fallback events, and of the most
TICKS = 5
LETTERS = 76  # of a spec, that fit beside the rest of the line


def ticks(low: float, high: float, about: int = TICKS) -> list[float]:
    """Round numbers between two values."""
    step = svg.round_step((high - low) / about)
    return [step * place for place in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _scale(values: Sequence[float], start: float, end: float) -> Scale:
    """A little wider than the values are."""
    low, high = min(values), max(values)
    pad = (high - low) * 0.06 or abs(high) * 0.02 or 1
    low, high = max(0.0, low - pad) if low >= 0 else low - pad, high + pad
    return Scale(low, high, start, end, False, ticks(low, high))


def picture(found: Outcome) -> str:
    served = [one for one in found.trials if one.refused is None]
    points = [*served, found.default]
    across = _scale([one.goals[1] for one in points], LEFT, WIDTH - RIGHT)
    up = _scale([one.goals[0] * PAGE_KIB for one in points], HEIGHT - BOTTOM, TOP)
    most = max(one.goals[2] for one in points)

    def place(one: Trial) -> tuple[float, float]:
        return across(one.goals[1]), up(one.goals[0] * PAGE_KIB)

    shapes = [element("rect", {"width": "100%", "height": "100%", "fill": "#fff"})]
    colours = f"; fallback events from blue, 0, to red, {most:,.0f}" if most else ""
    head = f"{found.space.allocator} on {found.workload}: {len(served):,} settings{colours}"
    shapes.append(_text(LEFT, 22, head, weight="bold"))
    about = "lower left is better"
    if found.best is not found.default:
        about += f"; to use: {found.best.spec}"[:LETTERS]
    shapes.append(_text(LEFT, 40, about))
    shapes += _axes(across, up)
    stair = _stair(served)
    if len(stair) > 1:
        corners = [place(stair[0])]
        for one in stair[1:]:
            x, y = place(one)
            corners += [(x, corners[-1][1]), (x, y)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
        shapes.append(element("polyline", {"points": path, "fill": "none", "stroke": "#222", "stroke-width": "1.2"}))
    on = {one.setting for one in found.frontier}
    for one in sorted(served, key=lambda trial: trial.setting in on):
        shapes.append(_dot(one, place(one), 5 if one.setting in on else 3, _colour(one.goals[2], most), one.setting in on))
    x, y = place(found.default)
    shapes.append(element("path", {"d": f"M{x - 6:.1f},{y - 6:.1f}l12,12m0,-12l-12,12", "stroke": "#000", "stroke-width": 2}))
    shapes.append(_label(x, y, "default"))
    if found.best is not found.default:
        x, y = place(found.best)
        shapes.append(element("circle", {"cx": x, "cy": y, "r": 9, "fill": "none", "stroke": "#000", "stroke-width": 2}))
        shapes.append(_label(x, y, "to use"))
    size: dict[str, Value] = {"width": WIDTH, "height": HEIGHT, "viewBox": f"0 0 {WIDTH} {HEIGHT}"}
    return svg.picture({**size, "font-family": "sans-serif", "font-size": 12}, shapes)


def _stair(served: Sequence[Trial]) -> list[Trial]:
    """The frontier of memory and cost, from least cost on."""
    found: list[Trial] = []
    for one in sorted(served, key=lambda trial: (trial.goals[1], trial.goals[0])):
        if not found or one.goals[0] < found[-1].goals[0]:
            found.append(one)
    return found


def _axes(across: Scale, up: Scale) -> list[Markup]:
    bottom, shapes = HEIGHT - BOTTOM, []
    for value in across.ticks:
        x = across(value)
        shapes.append(element("line", {"x1": x, "x2": x, "y1": TOP, "y2": bottom, "stroke": "#e4e4e4"}))
        shapes.append(_text(x, bottom + 18, f"{value:,g}", anchor="middle"))
    for value in up.ticks:
        y = up(value)
        shapes.append(element("line", {"x1": LEFT, "x2": WIDTH - RIGHT, "y1": y, "y2": y, "stroke": "#e4e4e4"}))
        shapes.append(_text(LEFT - 8, y + 4, f"{value:,g}", anchor="end"))
    frame: dict[str, Value] = {"x": LEFT, "y": TOP, "width": WIDTH - LEFT - RIGHT, "height": bottom - TOP}
    shapes.append(element("rect", frame | {"fill": "none", "stroke": "#888"}))
    name = "cost: off the fast path, and pages moved, per 1,000 operations"
    shapes.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 18, name, anchor="middle"))
    middle = (TOP + bottom) / 2
    turned: dict[str, Value] = {"x": 18, "y": middle, "text-anchor": "middle", "transform": f"rotate(-90 18 {middle:.1f})"}
    shapes.append(element("text", turned, "memory at the peak (KiB)"))
    return shapes


def _dot(one: Trial, at: tuple[float, float], radius: int, colour: str, framed: bool) -> Markup:
    pages, cost, events = one.goals
    said = title(f"{one.spec}: {pages * PAGE_KIB:,.0f} KiB, {cost:,.1f} per 1,000, {events:,.0f} events")
    look: dict[str, Value] = {"cx": at[0], "cy": at[1], "r": radius, "fill": colour, "fill-opacity": "1" if framed else "0.55"}
    return element("circle", look | ({"stroke": "#222"} if framed else {}), said)


def _colour(events: float, most: float) -> str:
    share = events / most if most else 0
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in zip(FEW, MANY, strict=True))


def _label(x: float, y: float, text: str) -> Markup:
    """A name beside a point, on the side where there is room, with a white edge so that it can be read over dots."""
    left = x > WIDTH / 2
    where: dict[str, Value] = {"x": x + (-12 if left else 12), "y": y - 9, "text-anchor": "end" if left else "start", "font-weight": "bold"}
    return element("text", where | {"paint-order": "stroke", "stroke": "#fff", "stroke-width": 3}, text)


def _text(x: float, y: float, text: str, anchor: str = "start", weight: str = "normal") -> Markup:
    return element("text", {"x": x, "y": y, "text-anchor": anchor, "font-weight": weight, "fill": "#222"}, text)
