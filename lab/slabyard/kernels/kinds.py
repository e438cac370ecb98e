"""The allocators that a kernel can be built on, and how a spec chooses and tunes one.

A kind is what a kernel is compiled for. Linux's own are a few lines of configuration each; their tunables are kernel parameters, given
at boot, so all specs of one kind share one kernel. Not every version of Linux has every kind. A kind may bring files and changes of its
own into the source tree, and a boot parameter that chooses one of several policies: that is how an allocator that Linux does not have
becomes a row of the table below, and nothing else.

    slub                        as Linux has it
    slub_tiny                   the same with CONFIG_SLUB_TINY: what 6.12 has for small systems in place of SLOB
    slub:max_order=0            with the boot parameter slub_max_order=0
    slub:min_objects=8,nomerge=1
    slabyard:slqb               the kernel with all of slabyard's policies, of which slqb serves
    slabyard:slub:cpu_partial=8 behind the first colon stands a spec as `slabyard replay` takes it
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..base.errors import UserError
from . import ports
from .edits import Edit
from .versions import DEFAULT, VERSIONS


@dataclass(frozen=True)
class Kind:
    """A row of the table.

    `config`: lines by version of Linux; versions that are not in it do not have this kind. `tunables`: boot parameters by their names in
    a spec, a trailing `=` where they take the value.
    """

    name: str
    title: str
    config: Mapping[str, tuple[str, ...]]
    tunables: Mapping[str, str]
    slow: tuple[str, ...]  # functions that are the slow path, for flame graphs
    files: Callable[[], dict[str, bytes]] = dict  # by path in the tree
    edits: Mapping[str, tuple[Edit, ...]] = field(default_factory=dict)  # by version
    chooser: str = ""  # the boot parameter that takes a spec of slabyard's, for a kernel that has its policies


_EVERYWHERE = {"nomerge": "slab_nomerge"}
_MOST = {"max_order": 10, "min_order": 10, "min_objects": 32767, "nomerge": 1}  # a kernel takes more without a word, for something less

_SLUB = ("CONFIG_SLUB=y", "# CONFIG_SLUB_TINY is not set")
_TINY = ("CONFIG_SLUB=y", "CONFIG_SLUB_TINY=y", "# CONFIG_SLAB_BUCKETS is not set")
_OF_SLUB = {**_EVERYWHERE, "max_order": "slub_max_order=", "min_order": "slub_min_order=", "min_objects": "slub_min_objects="}
_SLOW_IN_SLUB = ("__slab_alloc", "___slab_alloc", "__slab_free", "allocate_slab", "get_partial_node", "discard_slab", "__free_slab")

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("slub", "Linux's SLUB", dict.fromkeys(VERSIONS, (*_SLUB, "CONFIG_SLUB_DEBUG=y")), _OF_SLUB, _SLOW_IN_SLUB),
        Kind(
            "slab",
            "Linux's SLAB",
            {"6.1": ("CONFIG_SLAB=y",)},
            {**_EVERYWHERE, "max_order": "slab_max_order="},
            ("cache_alloc_refill", "cache_flusharray", "cache_grow_begin", "free_block", "slab_destroy", "fallback_alloc"),
        ),
        Kind("slob", "Linux's SLOB", {"6.1": ("CONFIG_SLOB=y",)}, {}, ("slob_page_alloc", "slob_new_pages", "slob_free_pages")),
        Kind("slub_tiny", "Linux's SLUB_TINY", {"6.12": _TINY}, _OF_SLUB, _SLOW_IN_SLUB),
        Kind(
            "slabyard",
            "slabyard's policies",
            {"6.1": ("CONFIG_SLOB=y",), "6.12": (*_SLUB, "# CONFIG_SLUB_DEBUG is not set")},
            {},
            (
                "wait_for", "cache_alloc_slow", "cache_free_slow", "general_alloc_slow", "general_free_slow", "cache_wait", "general_wait",
                "alloc_slow", "free_slow", "alloc_from_slot", "alloc_from_nodes", "alloc_from_pages", "take_rest",
                "sy__bonwick_alloc_slow", "sy__yard_refill", "sy__yard_free_slow", "free_moving", "refill", "take_one", "flush",
                "free_alien", "alloc_from_list", "alloc_from_node", "free_away", "take_from_list", "search_first", "search_below",
                "take_from_new_page", "pages_alloc", "pages_free", "sy__general_refill", "sy__general_pages", "sy__general_pages_free",
                "after_coalescing", "split",
            ),
            files=ports.slabyard,
            edits={name: version.port for name, version in VERSIONS.items()},
            chooser="slabyard=",
        ),
    )
}  # fmt: skip


@dataclass(frozen=True)
class Spec:
    """A kind with what a spec sets: `text` as the user wrote it, `parameters` for the kernel's command line."""

    text: str
    kind: Kind
    parameters: tuple[str, ...] = field(default=())


def in_place_of(text: str, linux: str) -> str | None:
    """The spec of an allocator as a version of Linux can have it: slabyard's policy of that name where the version no longer has Linux's
    own. None: there is neither."""
    from ..results.compare import ALLOCATORS

    name = text.partition(":")[0]
    if name not in KINDS or linux in KINDS[name].config:
        return text
    return f"slabyard:{text}" if name in ALLOCATORS else None


def of(linux: str) -> list[Kind]:
    """The kinds that a version of Linux can be built on."""
    return [kind for kind in KINDS.values() if linux in kind.config]


def parse(text: str, linux: str = DEFAULT) -> Spec:
    """A spec as the user writes it. UserError for an allocator that no kernel of this version has, and for tunables that it lacks."""
    name, colon, rest = text.partition(":")
    kind = KINDS.get(name)
    if kind is None or linux not in kind.config:
        there = ", ".join(one.name for one in of(linux))
        if kind is None:
            raise UserError(f"no kernel has the allocator {name or text!r}; there are {there}")
        raise UserError(f"Linux {linux} has no {name}; there are {there}; --linux {next(iter(kind.config))} has it")
    if colon and not rest:
        raise UserError(f"{text}: no tunable behind the colon; set one, or leave the colon out")
    if kind.chooser:
        return Spec(text, kind, _choice(kind, rest))
    parameters = []
    for item in rest.split(",") if rest else []:
        key, equals, value = item.partition("=")
        parameter = kind.tunables.get(key)
        if parameter is None:
            known = f"it has {', '.join(kind.tunables)}" if kind.tunables else "it has none"
            raise UserError(f"{text}: the kernel's {name} has no tunable {key!r}; {known}")
        if not equals or not re.fullmatch("[0-9]+", value):
            raise UserError(f"{text}: {key} needs a number, as in {key}=1")
        if len(value) > 9 or int(value) > _MOST[key]:
            raise UserError(f"{text}: {key} cannot be {value}: it can be 0 to {_MOST[key]}")
        if parameter.endswith("="):
            parameters.append(f"{parameter}{int(value)}")
        elif int(value):
            parameters.append(parameter)
    return Spec(text, kind, tuple(parameters))


def _choice(kind: Kind, spec: str) -> tuple[str, ...]:
    """The parameter that chooses one of slabyard's policies; none where the spec leaves it to the kernel."""
    from ..replay.allocators import check_spec
    from ..results.compare import ALLOCATORS

    if not spec:
        return ()
    name, policies = spec.partition(":")[0], dict.fromkeys(known.partition(":")[0] for known in ALLOCATORS)
    if name not in policies:
        raise UserError(f"{kind.name}:{spec}: no policy is named {name!r}; there are {', '.join(policies)}")
    if " " in spec:
        raise UserError(f"{kind.name}:{spec}: a kernel's boot parameter cannot have a space")
    check_spec(spec)
    return (kind.chooser + spec,)


def everything(linux: str = DEFAULT) -> list[str]:
    """Every allocator that a kernel of this version can have, as specs: Linux's own, each of slabyard's policies with its variants."""
    from ..results.compare import ALLOCATORS

    found: list[str] = []
    for kind in of(linux):
        found += [f"{kind.name}:{spec}" for spec in ALLOCATORS] if kind.chooser else [kind.name]
    return found
