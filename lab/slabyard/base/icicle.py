"""The picture of weighted stacks: an icicle, outermost functions above, each box as wide as its share of the weight.

An SVG that needs no script: boxes carry their name, share and weight as titles, which every browser shows under the pointer. Callees of one
function stand in alphabetical order, so that two pictures can be laid beside each other. A box's colour says what its function is; the
caller tells that, from the function's name and the colour key of the box above.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from markupsafe import Markup

from . import svg
from .stacks import Stack
from .svg import Value, element

WIDTH, ROW = 1400, 17  # pixels; the width where the caller names none
NARROWEST = 0.4  # pixels of the least box that is drawn
LETTER = 6.4  # pixels, about


@dataclass
class _Box:
    weight: int = 0
    inner: dict[str, _Box] = field(default_factory=dict)


@dataclass(frozen=True)
class _Place:
    """A box wide enough to be seen; `left` and `weight` in the unit of the weights."""

    name: str
    key: str
    depth: int
    left: float
    weight: int


Key = Callable[[str, str], str]


def picture(
    stacks: Mapping[Stack, int],
    title: str,
    key: Key,
    colours: Mapping[str, str],
    words: Callable[[int], str],
    look: Mapping[str, Value] | None = None,
    width: int = WIDTH,
) -> Markup:
    """The drawing. `key` gives a box's colour key from that of the box above and its name; `words` tells a weight; `look`: of the whole."""
    root = _Box()
    for stack, weight in stacks.items():
        root.weight += weight
        at = root
        for frame in stack:
            at = at.inner.setdefault(frame, _Box())
            at.weight += weight
    boxes = list(_boxes(root, key, width))
    height = (max((box.depth for box in boxes), default=0) + 1) * ROW + 2
    head = {"viewBox": f"0 0 {width} {height}", "role": "img", "aria-label": title, **(look or {})}
    return element("svg", head, *(_drawn(box, width / root.weight, root.weight, colours, words) for box in boxes))


def _boxes(root: _Box, key: Key, width: int) -> Iterator[_Place]:
    least = root.weight * NARROWEST / width
    waiting: list[tuple[_Box, int, float, str]] = [(root, 0, 0.0, "")]
    while waiting:
        box, depth, left, above = waiting.pop()
        for name in sorted(box.inner):
            inner = box.inner[name]
            mine = key(above, name)
            if inner.weight >= least:
                yield _Place(name, mine, depth, left, inner.weight)
                waiting.append((inner, depth + 1, left, mine))
            left += inner.weight


def _drawn(box: _Place, scale: float, total: int, colours: Mapping[str, str], words: Callable[[int], str]) -> Markup:
    x, width = box.left * scale, box.weight * scale
    label = box.name if len(box.name) * LETTER < width - 4 else box.name[: max(0, int((width - 4) / LETTER) - 1)]
    shapes = [
        svg.title(f"{box.name}: {100 * box.weight / total:.2f}% ({words(box.weight)})"),
        element("rect", {"x": x, "y": box.depth * ROW, "width": width, "height": ROW, "fill": colours[box.key]}),
    ]
    if len(label) > 2:
        shapes.append(element("text", {"x": x + 2, "y": box.depth * ROW + 12}, label))
    return element("g", {}, *shapes)
