"""The versions of Linux that the lab builds, and what differs between them.

A row of the table is all that a version needs: what its source must have changed before anything is built of it, and where slabyard's
policies take its allocator's place. Which allocators it has, and by which lines of configuration, stands with them (kinds.py). The rest
of the lab knows a version by its name alone.

    6.1    the last maintained one with SLAB, SLUB and SLOB. slabyard takes SLOB's place.
    6.12   SLUB and its small form, SLUB_TINY, are all that is left. slabyard takes SLUB's place.
"""

from __future__ import annotations

from dataclasses import dataclass

from .edits import FLOATING_POINT, IN_PLACE_OF_SLOB, IN_PLACE_OF_SLUB, PAGE_DESCRIPTOR, SAME_KMALLOC, Edit


@dataclass(frozen=True)
class Version:
    """A row.

    `config`: lines of configuration that other versions have otherwise; `debug`: what kernels with checks have besides, because an
    allocator has to get along with it; `edits`: changes for all kernels; `port`: those for a kernel on slabyard besides.
    """

    name: str
    config: tuple[str, ...]
    debug: tuple[str, ...]
    edits: tuple[Edit, ...]
    port: tuple[Edit, ...]

    @property
    def number(self) -> tuple[int, int]:
        """As its Makefile has it."""
        first, second = self.name.split(".")
        return int(first), int(second)

    @property
    def package(self) -> str:
        """Debian's, with its source."""
        return f"linux-source-{self.name}"

    @property
    def places(self) -> tuple[str, ...]:
        """Where its source usually is."""
        return (f"/usr/src/{self.package}.tar.xz", f"/usr/src/{self.package}", f"/usr/src/linux-{self.name}", "/usr/src/linux")


_GROUPS = ("CONFIG_CGROUPS=y", "CONFIG_MEMCG=y", "CONFIG_SLAB_BUCKETS=y")

VERSIONS: dict[str, Version] = {
    version.name: version
    for version in (
        Version("6.1", ("CONFIG_BASE_FULL=y",), (), (FLOATING_POINT, *PAGE_DESCRIPTOR, *SAME_KMALLOC), (IN_PLACE_OF_SLOB,)),
        Version("6.12", ("# CONFIG_BASE_SMALL is not set",), _GROUPS, (), (IN_PLACE_OF_SLUB,)),
    )
}
DEFAULT = "6.1"
KNOWN = " and ".join(VERSIONS)
