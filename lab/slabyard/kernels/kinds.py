"""The allocators that a kernel can be built on, and how a spec chooses and tunes one.

A kind is what a kernel is compiled for. The three of Linux 6.1 are a line of configuration each; their tunables are kernel
parameters, given at boot, so all specs of one kind share one kernel. A kind may bring files and changes of its own into the source
tree, and boot parameters that choose one of several policies: that is how an allocator that Linux does not have becomes a row of
the table below, and nothing else.

    slub                        as Linux has it
    slub:max_order=0            with the boot parameter slub_max_order=0
    slub:min_objects=8,nomerge=1

`outlined` is for flame graphs: the objects (without .o) whose functions are then kept from being inlined into each other, so that a
stack shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..errors import UserError
from .edits import Edit


def _no_files() -> dict[str, bytes]:
    return {}


@dataclass(frozen=True)
class Kind:
    """A row of the table. `tunables` are boot parameters by their names in a spec, a trailing `=` where they take the value."""

    name: str
    title: str
    config: tuple[str, ...]
    tunables: Mapping[str, str]
    outlined: tuple[str, ...]
    slow: tuple[str, ...]  # functions that are the slow path, for flame graphs
    files: Callable[[], dict[str, bytes]] = _no_files  # by path in the tree
    edits: tuple[Edit, ...] = ()


_EVERYWHERE = {"nomerge": "slab_nomerge"}

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            "slub",
            "Linux 6.1's SLUB",
            ("CONFIG_SLUB=y", "CONFIG_SLUB_DEBUG=y"),
            {
                **_EVERYWHERE,
                "max_order": "slub_max_order=",
                "min_order": "slub_min_order=",
                "min_objects": "slub_min_objects=",
            },
            ("slub", "slab_common"),
            ("__slab_alloc", "___slab_alloc", "__slab_free", "allocate_slab", "get_partial_node", "discard_slab", "__free_slab"),
        ),
        Kind(
            "slab",
            "Linux 6.1's SLAB",
            ("CONFIG_SLAB=y",),
            {**_EVERYWHERE, "max_order": "slab_max_order="},
            ("slab", "slab_common"),
            ("cache_alloc_refill", "cache_flusharray", "cache_grow_begin", "free_block", "slab_destroy", "fallback_alloc"),
        ),
        Kind(
            "slob",
            "Linux 6.1's SLOB",
            ("CONFIG_SLOB=y",),
            {},
            ("slob", "slab_common"),
            ("slob_page_alloc", "slob_new_pages", "slob_free_pages"),
        ),
    )
}


@dataclass(frozen=True)
class Spec:
    """A kind with what a spec sets: `text` as the user wrote it, `parameters` for the kernel's command line."""

    text: str
    kind: Kind
    parameters: tuple[str, ...] = field(default=())


def parse(text: str) -> Spec:
    """A spec as the user writes it. UserError for an allocator that no kernel has, and for tunables that it lacks."""
    name, colon, rest = text.partition(":")
    kind = KINDS.get(name)
    if kind is None:
        raise UserError(f"no kernel has the allocator {name or text!r}; there are {', '.join(KINDS)}")
    if colon and not rest:
        raise UserError(f"{text}: nothing stands behind the colon; leave it out, or set a tunable")
    parameters = []
    for item in rest.split(",") if rest else []:
        key, equals, value = item.partition("=")
        parameter = kind.tunables.get(key)
        if parameter is None:
            known = f"it has {', '.join(kind.tunables)}" if kind.tunables else "it has none"
            raise UserError(f"{text}: the kernel's {name} has no tunable {key!r}; {known}")
        if not equals or not value.isdigit():
            raise UserError(f"{text}: {key} needs a number, as in {key}=1")
        if parameter.endswith("="):
            parameters.append(parameter + value)
        elif value not in ("0", "1"):
            raise UserError(f"{text}: {key} is 0 or 1")
        elif value == "1":
            parameters.append(parameter)
    return Spec(text, kind, tuple(parameters))
