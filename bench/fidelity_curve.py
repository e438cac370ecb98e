"""One curve over another as an SVG: what a kernel's allocator held since boot, and what its replay held.

Two panels share the horizontal axis, the events of the trace: kernels stamp early events coarsely, so that time would press thousands
of them into one line. Above, the real curve is a broad grey line and the replay a narrow one over it, so that both show where
they agree. Below is the difference, replay less real, on an axis of its own. The file is text of a few tens of KiB, needs no
script and no fonts of its own, and is the same to the byte whenever it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from slabyard.base import svg
from slabyard.base.svg import Value, element

WIDTH, LEFT, RIGHT = 760, 62, 18
TOP, UPPER, GAP, LOWER, BOTTOM = 58, 210, 26, 70, 42
HEIGHT = TOP + UPPER + GAP + LOWER + BOTTOM
REAL, REPLAY, INK, FAINT, GRID = "#9aa5b1", "#c2410c", "#1f2933", "#616e7c", "#e4e7eb"
STYLE = "font-family:system-ui,-apple-system,'Segoe UI',Roboto,sans-serif"

Scale = Callable[[float], float]  # from a figure to a place in the picture


@dataclass(frozen=True)
class Curves:
    """Both curves at the same moments. `events`: how many events had happened; `real`, `replay`: KiB held then."""

    title: str
    events: Sequence[int]
    real: Sequence[int]
    replay: Sequence[int]
    snapshot: int  # events before the snapshot that was taken just before the workload
    workload: str


@dataclass(frozen=True)
class Deviation:
    """Where the replay is farthest from the kernel: by how many KiB (replay less real), after how many events."""

    kib: int
    event: int
    share: float  # of the real curve's highest point


def deviation(curves: Curves) -> Deviation:
    """The largest difference between the curves; of equal ones the first."""
    differences = [replay - real for real, replay in zip(curves.real, curves.replay, strict=True)]
    at = max(range(len(differences)), key=lambda place: (abs(differences[place]), -place))
    return Deviation(differences[at], curves.events[at], differences[at] / max(1, *curves.real))


def step(span: float, wanted: int) -> int:
    """A round distance between ticks, 1, 2 or 5 times a power of ten, for some `wanted` of them."""
    base = 1
    while True:
        for factor in (1, 2, 5):
            if span <= factor * base * wanted:
                return factor * base
        base *= 10


def draw(curves: Curves) -> str:
    """The SVG's text."""
    worst = deviation(curves)
    last, top = curves.events[-1], max(*curves.real, *curves.replay)
    every = step(top, 5)
    ceiling = -(-top // every) * every
    differences = [replay - real for real, replay in zip(curves.real, curves.replay, strict=True)]
    reach = step(max(1, *(abs(one) for one in differences)), 1)

    def across(event: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * event / last

    def upper(kib: float) -> float:
        return TOP + UPPER * (1 - kib / ceiling)

    def lower(kib: float) -> float:
        return TOP + UPPER + GAP + LOWER * (0.5 - kib / reach / 2)

    bottom = TOP + UPPER + GAP + LOWER
    parts = [
        svg.title(curves.title),
        element("rect", {"width": WIDTH, "height": HEIGHT, "fill": "#fff"}),
        _text(LEFT, 22, curves.title, 15, INK, "start", "600"),
        *_legend(worst),
    ]
    for kib in range(0, ceiling + 1, every):
        parts += _grid(upper(kib), f"{kib:,}")
    for kib in (-reach, 0, reach):
        parts += _grid(lower(kib), f"{kib:+,}" if kib else "0")
    distance = step(last, 7)
    parts += [_text(across(event), bottom + 16, f"{event // 1000:,}", 11, FAINT) for event in range(0, last + 1, distance)]
    parts += [
        _text((LEFT + WIDTH - RIGHT) / 2, bottom + 33, "events since boot, thousands", 11, FAINT),
        _text(LEFT - 8, TOP - 8, "KiB", 11, FAINT, "end"),
        _text(LEFT + 4, TOP + UPPER + GAP - 6, "replay less kernel, KiB", 11, FAINT, "start"),
        _line(across(curves.snapshot), TOP, across(curves.snapshot), bottom, FAINT, {"stroke-dasharray": "3 3"}),
        _text(across(curves.snapshot) + 5, TOP + UPPER - 8, f"snapshot, then {curves.workload}", 11, FAINT, "start"),
        _path(curves.events, curves.real, across, upper, REAL, 4.5),
        _path(curves.events, curves.replay, across, upper, REPLAY, 1.3),
        _path(curves.events, differences, across, lower, REPLAY, 1.1),
        element("circle", {"cx": across(worst.event), "cy": lower(worst.kib), "r": "3.2", "fill": "none", "stroke": INK}),
    ]
    size: dict[str, Value] = {"viewBox": f"0 0 {WIDTH} {HEIGHT}", "width": WIDTH, "height": HEIGHT}
    return svg.picture({**size, "style": STYLE}, parts)


def _legend(worst: Deviation) -> list[Markup]:
    text = f"largest deviation {worst.kib:+,} KiB ({100 * worst.share:+.1f}% of the kernel's peak), circled"
    return [
        _line(LEFT, 38, LEFT + 22, 38, REAL, {"stroke-width": 4.5}),
        _text(LEFT + 28, 42, "kernel", 12, INK, "start"),
        _line(LEFT + 84, 38, LEFT + 106, 38, REPLAY, {"stroke-width": 1.5}),
        _text(LEFT + 112, 42, "replay", 12, INK, "start"),
        _text(WIDTH - RIGHT, 42, text, 12, INK, "end"),
    ]


def _text(x: float, y: float, text: str, size: int, fill: str, anchor: str = "middle", weight: str = "400") -> Markup:
    place: dict[str, Value] = {"x": float(x), "y": float(y), "font-size": size, "fill": fill}
    return element("text", {**place, "text-anchor": anchor, "font-weight": weight}, text)


def _line(x1: float, y1: float, x2: float, y2: float, stroke: str, more: dict[str, Value] | None = None) -> Markup:
    return element("line", {"x1": float(x1), "y1": float(y1), "x2": float(x2), "y2": float(y2), "stroke": stroke, **(more or {})})


def _grid(y: float, label: str) -> list[Markup]:
    return [_line(LEFT, y, WIDTH - RIGHT, y, GRID), _text(LEFT - 8, y + 4, label, 11, FAINT, "end")]


def _path(events: Sequence[int], values: Sequence[int], across: Scale, down: Scale, stroke: str, width: float) -> Markup:
    """Steps: a value holds until the next one. Moments at which nothing changes need no point."""
    commands = [f"M{across(events[0]):.1f} {down(values[0]):.1f}"]
    for place in range(1, len(events)):
        if values[place] != values[place - 1]:
            commands.append(f"H{across(events[place]):.1f}V{down(values[place]):.1f}")
    commands.append(f"H{across(events[-1]):.1f}")
    look: dict[str, Value] = {"fill": "none", "stroke": stroke, "stroke-width": width, "stroke-linejoin": "round"}
    return element("path", {"d": "".join(commands), **look})
