"""The one way to draw SVG: elements with their attributes, and everything that comes from elsewhere escaped.

A picture is text of a few tens of KiB that needs no script and no fonts of its own, and is the same to the byte whenever it is made.
Whole numbers are written as they are, others to a tenth of a pixel, which no eye can tell apart; a number that needs more digits is
given as a text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

Value = str | int | float


def element(name: str, attributes: Mapping[str, Value], *content: str) -> Markup:
    """An element. Of its content, texts are escaped and other elements (Markup) stand as they are."""
    head = _head(name, attributes)
    return Markup("<{}>{}</{}>").format(head, Markup("").join(content), name) if content else Markup("<{}/>").format(head)


def _head(name: str, attributes: Mapping[str, Value]) -> Markup:
    texts = {key: f"{value:.1f}" if isinstance(value, float) else value for key, value in attributes.items()}
    return Markup(name) + Markup("").join(Markup(' {}="{}"').format(*item) for item in texts.items())


def title(text: str) -> Markup:
    """What a browser shows under the pointer."""
    return element("title", {}, text)


@dataclass(frozen=True)
class Scale:
    """An axis: values from `low` to `high` become pixels from `start` to `end`. A logarithmic one has what is below at its low end."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool
    ticks: Sequence[float]

    def __call__(self, value: float) -> float:
        low, high, at = self.low, self.high, value
        if self.logarithmic:
            low, high, at = math.log(low), math.log(high), math.log(max(at, low))
        return self.start + (at - low) / (high - low) * (self.end - self.start)


def round_step(about: float) -> float:
    """A round distance between the ticks of an axis: 1, 2 or 5 times a power of ten, the least that is about that or more."""
    power = 10.0 ** math.floor(math.log10(about))
    return float(next(factor * power for factor in (1, 2, 5, 10) if factor * power >= about * 0.999))


def picture(attributes: Mapping[str, Value], shapes: Sequence[Markup]) -> str:
    """A whole file: an element on each line."""
    head = _head("svg", {"xmlns": "http://www.w3.org/2000/svg", **attributes})
    return "\n".join([f"<{head}>", *shapes, "</svg>"]) + "\n"
