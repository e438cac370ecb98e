"""The one way to draw SVG: elements with their attributes, and everything that comes from elsewhere escaped.

A picture is text of a few tens of KiB that needs no script and no fonts of its own, and is the same to the byte whenever it is made:
whole numbers are written as they are, others to a tenth of a pixel, which no eye can tell apart. Who needs more hands in a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

Value = str | int | float


class Markup(str):
    """An element, which is not escaped again."""

    __slots__ = ()


def element(name: str, attributes: dict[str, Value], *content: str | Markup) -> Markup:
    """An element. Of its content, texts are escaped and other elements stand as they are."""
    head = name + "".join(f' {key}="{_value(value)}"' for key, value in attributes.items())
    inner = "".join(part if isinstance(part, Markup) else escape(part) for part in content)
    return Markup(f"<{head}>{inner}</{name}>" if content else f"<{head}/>")


def _value(value: Value) -> str:
    return f"{value:.1f}" if isinstance(value, float) else escape(str(value), quote=False).replace(chr(34), "&quot;")


def title(text: str) -> Markup:
    """What a browser shows under the pointer."""
    return element("title", {}, text)


def picture(attributes: dict[str, Value], shapes: Sequence[Markup]) -> str:
    """A whole file: an element on each line."""
    head = "".join(f' {key}="{_value(value)}"' for key, value in attributes.items())
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg"{head}>', *shapes, "</svg>"]) + "\n"
