"""The papers' figures as drawings: lines over a common axis, and grouped bars, both with error windows.

A drawing is SVG (base/svg.py) on white, so it looks the same in any theme and in any viewer. Colours are those of Okabe and Ito, which
people with any colour vision tell apart; the ninth series begins them anew, dashed. Each point and bar tells its figures under the pointer.

    lines   a line for each series, through its points; a window from least to greatest at each point that has one
    bars    a group of bars for each name along the axis, a bar for each series: our figure with its window, and a short thick
            stroke across it at the paper's figure, where there is one
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeVar

from markupsafe import Markup

from ..base.svg import Scale, Value, element, picture, round_step, title
from .model import Figure

WIDTH, HEIGHT = 760, 340  # pixels; the height without the legend and what stands below the axis
LEFT, RIGHT, TOP = 74, 30, 14
LETTER, LINE = 6.7, 15.0  # pixels of a letter, about, and from a line of text to the next
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8a8a8a")
DASH = "6 3"
TICKS = 6

Point = TypeVar("Point")


@dataclass(frozen=True)
class Line:
    """A series of a line chart. `windows`: least and greatest of each point, or none at all."""

    name: str
    points: Sequence[tuple[float, float]]
    windows: Sequence[tuple[float, float]] = ()


def thinned(points: Sequence[Point], most: int = 300) -> list[Point]:
    """At most so many of the points, evenly spread, the first and the last among them: a record must stay small."""
    if len(points) <= most:
        return list(points)
    return [points[place * (len(points) - 1) // (most - 1)] for place in range(most)]


# ---- Drawings ----------------------------------------------------------------------------------------------------


def lines(
    series: Sequence[Line], x: str, y: str, from_zero: bool = False, logarithmic: bool = False, places: Sequence[str] = ()
) -> str:  # fmt: skip
    """A line chart. `x`, `y`: the axes' titles with their units. `from_zero`, `logarithmic`: the upright axis. `places`: what stands at
    0, 1, 2, ... of the other, where these are no measure."""
    top = TOP + _legend_height([one.name for one in series])
    bottom = top + HEIGHT
    values = [y for one in series for _, y in one.points] + [end for one in series for window in one.windows for end in window]
    across = _scale([point[0] for one in series for point in one.points], LEFT, WIDTH - RIGHT, exact=True)
    up = _scale([*values, 0.0] if from_zero else values, bottom, top, logarithmic)
    shapes = [*_legend([one.name for one in series]), *_upright(up, y, top, bottom)]
    for tick, name in enumerate(places) if places else ((tick, _number(tick)) for tick in across.ticks):
        shapes += [_line(across(tick), bottom, across(tick), bottom + 5), _text(across(tick), bottom + 19, name, "middle")]
    shapes.append(_text((LEFT + WIDTH - RIGHT) / 2, bottom + 40, x, "middle"))
    for place, one in enumerate(series):
        shapes += _drawn(one, place, across, up)
    return whole(shapes, bottom + 50, f"{y} against {x}: {', '.join(one.name for one in series)}")


def bars(
    groups: Sequence[str], series: Sequence[tuple[str, Sequence[Figure]]], y: str, x: str = "", logarithmic: bool = False,
    labels: Callable[[int, int], str] = lambda _group, _series: "",
) -> str:  # fmt: skip
    """Grouped bars: `series` has a figure for each group. `labels`: a text above a bar, by the places of its group and series."""
    names = [name for name, _ in series]
    paper = any(one.of_paper is not None for _, figures in series for one in figures)
    top = TOP + _legend_height([*names, *(["paper"] if paper else [])])
    bottom = top + HEIGHT
    wide = (WIDTH - LEFT - RIGHT) / max(1, len(groups))
    values = [value for _, figures in series for one in figures for value in _of(one)]
    up = _scale([value for value in values if value > 0] if logarithmic else [*values, 0.0], bottom, top, logarithmic)
    shapes = [*_legend(names, paper), *_upright(up, y, top, bottom)]
    each = wide * 0.84 / max(1, len(series))
    for group, name in enumerate(groups):
        left = LEFT + wide * (group + 0.08)
        for place, (_, figures) in enumerate(series):
            told = f"{name}, {names[place]}"
            shapes += _bar(figures[group], place, left + each * place, each, up, told, labels(group, place))
        for row, words in enumerate(_broken(name, wide)):
            shapes.append(_text(left + wide * 0.42, bottom + 17 + LINE * row, words, "middle"))
    below = bottom + 14 + LINE * max((len(_broken(name, wide)) for name in groups), default=1)
    if x:
        below += LINE + 4
        shapes.append(_text((LEFT + WIDTH - RIGHT) / 2, below, x, "middle"))
    return whole(shapes, below + 10, f"{y}: {', '.join(names)}")


def whole(shapes: Sequence[Markup], height: float, said: str) -> str:
    """The drawing of these shapes, `height` pixels of it; `said`: what it is, for those who cannot see it."""
    white = element("rect", {"width": "100%", "height": "100%", "fill": "#fff"})
    head: dict[str, Value] = {
        "viewBox": f"0 0 {WIDTH} {math.ceil(height)}", "width": WIDTH, "role": "img", "aria-label": said, "font-size": 12,
        "font-family": "system-ui, 'DejaVu Sans', sans-serif", "fill": "#222",
    }  # fmt: skip
    return picture(head, [white, *shapes])


# ---- Parts -------------------------------------------------------------------------------------------------------


def _of(figure: Figure) -> list[float]:
    return [value for value in (figure.of_paper, figure.ours, figure.least, figure.greatest) if value is not None]


def _look(place: int, width: float = 1.8) -> dict[str, Value]:
    dashed: dict[str, Value] = {"stroke-dasharray": DASH} if place >= len(COLOURS) else {}
    return {"stroke": COLOURS[place % len(COLOURS)], "stroke-width": f"{width:g}", **dashed}


def _drawn(one: Line, place: int, across: Scale, up: Scale) -> Iterator[Markup]:
    """A series: its line, and a dot for each point where there are few, with its window."""
    path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in one.points)
    yield element("polyline", {"points": path, "fill": "none", "stroke-linejoin": "round", **_look(place)}, title(one.name))
    for least, greatest, x in ((*window, point[0]) for window, point in zip(one.windows, one.points, strict=False)):
        yield from _window(across(x), up(least), up(greatest), _look(place, 1))
    if len(one.points) <= 30:
        for x, y in one.points:
            told = title(f"{one.name}: {_number(y)} at {_number(x)}")
            yield element("circle", {"cx": across(x), "cy": up(y), "r": 3, "fill": COLOURS[place % len(COLOURS)]}, told)


def _bar(figure: Figure, place: int, left: float, width: float, up: Scale, told: str, label: str) -> Iterator[Markup]:
    middle, highest = left + width / 2, up(up.low)
    if figure.ours is not None:
        base, end = up(max(0.0, up.low)), up(figure.ours)
        told += f": {_number(figure.ours)}"
        style = {"fill": COLOURS[place % len(COLOURS)], "fill-opacity": "0.45" if place >= len(COLOURS) else "0.85"}
        box = {"x": left + width * 0.05, "y": min(base, end), "width": width * 0.9, "height": abs(end - base)}
        yield element("rect", {**box, **style}, title(told))
        highest = min(highest, end)
    if figure.least is not None and figure.greatest is not None and figure.least < figure.greatest:
        yield from _window(middle, up(figure.least), up(figure.greatest), {"stroke": "#222", "stroke-width": 1})
        highest = min(highest, up(figure.greatest))
    if figure.of_paper is not None:
        height = up(figure.of_paper)
        ends: dict[str, Value] = {"x1": left, "x2": left + width, "y1": height, "y2": height}
        yield element("line", {**ends, "stroke": "#000", "stroke-width": 3}, title(f"paper: {figure.printed}"))
        highest = min(highest, height)
    if label:
        yield _text(middle, highest - 5, label, "middle")


def _window(x: float, low: float, high: float, look: dict[str, Value]) -> Iterator[Markup]:
    path = f"M{x - 4:.1f} {low:.1f}h8M{x - 4:.1f} {high:.1f}h8M{x:.1f} {low:.1f}V{high:.1f}"
    yield element("path", {"d": path, "fill": "none", **look})


def _legend_rows(names: Sequence[str]) -> list[list[tuple[str, float]]]:
    """Names with the pixels where each begins, in as many rows as they need; none where there is nothing to tell apart."""
    if len(names) < 2:
        return []
    rows: list[list[tuple[str, float]]] = [[]]
    at = float(LEFT)
    for name in names:
        wide = 34 + LETTER * len(name)
        if rows[-1] and at + wide > WIDTH - RIGHT:
            rows.append([])
            at = LEFT
        rows[-1].append((name, at))
        at += wide
    return rows


def _legend_height(names: Sequence[str]) -> float:
    return LINE * len(_legend_rows(names)) + 8


def _legend(names: Sequence[str], paper: bool = False) -> Iterator[Markup]:
    rows = _legend_rows([*names, *(["paper"] if paper else [])])
    firsts = accumulate((len(row) for row in rows), initial=0)
    for number, (row, first) in enumerate(zip(rows, firsts, strict=False)):
        for place, (name, left) in enumerate(row, first):
            y = TOP + LINE * number
            black: dict[str, Value] = {"stroke": "#000", "stroke-width": 3}
            look = black if place == len(names) else _look(place, 4)
            yield element("line", {"x1": left, "y1": y, "x2": left + 18, "y2": y, **look})
            yield _text(left + 23, y + 4, name, "start")


def _upright(up: Scale, name: str, top: float, bottom: float) -> Iterator[Markup]:
    for tick in up.ticks:
        yield _line(LEFT, up(tick), WIDTH - RIGHT, up(tick), "#ddd")
        yield _text(LEFT - 7, up(tick) + 4, _number(tick), "end")
    yield _line(LEFT, top, LEFT, bottom)
    yield _line(LEFT, bottom, WIDTH - RIGHT, bottom)
    yield _text(-(top + bottom) / 2, 13, name, "middle", transform="rotate(-90)")


def _scale(values: Sequence[float], start: float, end: float, logarithmic: bool = False, exact: bool = False) -> Scale:
    """An axis with room for all values and its ticks; `exact`: no more room than the values need."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if logarithmic:
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        if len(powers) < 2:
            powers = range(powers[0], powers[0] + 2)
        return Scale(10.0 ** powers[0], 10.0 ** powers[-1], start, end, True, [10.0**power for power in powers])
    if high == low:
        low, high = (low - 1, high + 1) if low else (0.0, 1.0)
    step = round_step((high - low) / TICKS)
    if not exact:
        low, high = step * math.floor(low / step + 1e-9), step * math.ceil(high / step - 1e-9)
    ticks = [step * place for place in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
    return Scale(low, high, start, end, False, ticks)


def _broken(name: str, wide: float) -> list[str]:
    """A group's name in lines that fit its width, broken between words."""
    rows: list[str] = []
    for word in name.split():
        if rows and (len(rows[-1]) + 1 + len(word)) * LETTER <= wide:
            rows[-1] += f" {word}"
        else:
            rows.append(word)
    return rows


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _line(x1: float, y1: float, x2: float, y2: float, colour: str = "#888") -> Markup:
    return element("line", {"x1": x1, "y1": y1, "x2": x2, "y2": y2, "stroke": colour})


def _text(x: float, y: float, text: str, anchor: str, **more: Value) -> Markup:
    return element("text", {"x": x, "y": y, "text-anchor": anchor, **more}, text)
