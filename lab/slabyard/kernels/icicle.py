"""The picture of a kernel's profile: one self-contained page with an icicle (base/icicle.py) and no script.

Boxes of allocation and of freeing have a colour each, their slow path a darker one, so the eye finds the allocator in a kernel's stacks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from ..base import html, icicle
from ..base.stacks import Stack
from ..base.svg import Value
from .flame import Profile, role

COLOURS = {"": "#d8dadd", "alloc": "#8cc3f0", "alloc_slow": "#3c86c6", "free": "#f5c27a", "free_slow": "#d98a1f"}
LEGEND = {
    "alloc": "allocation", "alloc_slow": "its slow path", "free": "freeing", "free_slow": "its slow path", "": "the rest of the kernel",
}  # fmt: skip


def picture(
    stacks: Mapping[Stack, int], slow: Sequence[str], title: str, look: Mapping[str, Value] | None = None, width: int = icicle.WIDTH
) -> Markup:
    """The icicle of a kernel's stacks; `look`: attributes of the whole."""

    def key(above: str, name: str) -> str:
        mine = above or role(name)
        return f"{mine}_slow" if mine and not mine.endswith("_slow") and name in slow else mine

    return icicle.picture(stacks, title, key, COLOURS, lambda count: f"{count:,} samples", look, width)


def page(profile: Profile, slow: Sequence[str], title: str) -> str:
    """The whole HTML page."""
    legend = [(COLOURS[key], words) for key, words in LEGEND.items()]
    return html.render("profile.html", title=title, samples=profile.samples, legend=legend, picture=picture(profile.stacks, slow, title))
