"""The picture of a profile: an icicle, outermost functions above, each as wide as its share of the samples.

One self-contained page without a script: an SVG whose boxes carry their name, share and count as titles, which every browser shows
under the pointer. Boxes of allocation and of freeing have a colour each, their slow path a darker one, so the eye finds the
allocator in a kernel's stacks. Callees of one function stand in alphabetical order, so that pictures of two allocators can be laid
beside each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from ..base import html, svg
from ..base.svg import element
from .flame import Profile, role

WIDTH, ROW = 1400, 17  # pixels
NARROWEST = 0.4  # pixels of the least box that is drawn
LETTER = 6.4  # pixels, about
COLOURS = {"": "#d8dadd", "alloc": "#8cc3f0", "alloc_slow": "#3c86c6", "free": "#f5c27a", "free_slow": "#d98a1f"}
LEGEND = {
    "alloc": "allocation", "alloc_slow": "its slow path", "free": "freeing", "free_slow": "its slow path", "": "the rest of the kernel",
}  # fmt: skip


@dataclass
class _Box:
    count: int = 0
    inner: dict[str, _Box] = field(default_factory=dict)


def page(profile: Profile, slow: Sequence[str], title: str) -> str:
    """The whole HTML page."""
    root = _Box()
    for stack, count in profile.stacks.items():
        root.count += count
        at = root
        for frame in stack:
            at = at.inner.setdefault(frame, _Box())
            at.count += count
    boxes = list(_boxes(root, frozenset(slow)))
    height = (max((depth for _, _, depth, _, _ in boxes), default=0) + 1) * ROW + 2
    picture = element(
        "svg", {"viewBox": f"0 0 {WIDTH} {height}", "role": "img", "aria-label": title}, *(_drawn(box, root.count) for box in boxes)
    )
    legend = [(COLOURS[key], words) for key, words in LEGEND.items()]
    return html.render("profile.html", title=title, samples=profile.samples, legend=legend, picture=picture)


def _boxes(root: _Box, slow: frozenset[str]) -> Iterator[tuple[str, str, int, float, int]]:
    """Name, colour's key, depth, left edge in samples and samples of every box wide enough to be seen."""
    least = root.count * NARROWEST / WIDTH
    waiting: list[tuple[_Box, int, float, str]] = [(root, 0, 0.0, "")]
    while waiting:
        box, depth, left, key = waiting.pop()
        for name in sorted(box.inner):
            inner = box.inner[name]
            mine = key or role(name)
            if mine and not mine.endswith("_slow") and name in slow:
                mine += "_slow"
            if inner.count >= least:
                yield name, mine, depth, left, inner.count
                waiting.append((inner, depth + 1, left, mine))
            left += inner.count


def _drawn(box: tuple[str, str, int, float, int], total: int) -> Markup:
    name, key, depth, left, count = box
    x, width = left * WIDTH / total, count * WIDTH / total
    label = name if len(name) * LETTER < width - 4 else name[: max(0, int((width - 4) / LETTER) - 1)]
    shapes = [
        svg.title(f"{name}: {100 * count / total:.2f}% ({count:,} samples)"),
        element("rect", {"x": x, "y": depth * ROW, "width": width, "height": ROW, "fill": COLOURS[key]}),
    ]
    if len(label) > 2:
        shapes.append(element("text", {"x": x + 2, "y": depth * ROW + 12}, label))
    return element("g", {}, *shapes)
