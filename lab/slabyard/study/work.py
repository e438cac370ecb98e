"""What an experiment may use while it runs: how much work to do, and a place where each finished part of it is kept.

A full study may take a night. An experiment is made of parts (one boot, one replay), each under a name, and a part that is done is
written to the item's file before the next begins. Whoever ends the study and starts it again finds these parts done.

Several tables of a paper may come out of the same runs. These are made once, by the first item that asks for them; the others have
them from it, or from its record in the same folder.
"""

from __future__ import annotations

import functools
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import as_completed
from pathlib import Path
from typing import Any, TypeVar

from ..base import programs
from ..base.errors import UserError
from ..base.files import describe_os_error, to_json, write_text
from ..base.terminal import Progress
from ..kernels import build, kinds
from ..kernels.versions import DEFAULT

REPETITIONS = 5  # as in the papers
QUICK_REPETITIONS = 3

SCHEMA = 1  # of a record
_SECONDS = "seconds so far"  # among the parts of an item

Part = TypeVar("Part")

_shared: dict[tuple[bool, str, Path | None, str, str], Any] = {}


class Work:
    """Of one item. `quick`: less work in each run, and fewer repetitions. `kept`: the file of its finished parts; None: none is kept.
    `traces`: a folder of recordings to replay; None: the bundled ones. `linux`: the version of the kernels that it boots."""

    def __init__(
        self, quick: bool, progress: Progress, kept: Path | None = None, traces: Path | None = None, linux: str = DEFAULT
    ) -> None:
        self.quick, self.progress, self.kept, self.traces, self.linux = quick, progress, kept, traces, linux
        self.folder = None if kept is None else kept.parent
        self.parts: dict[str, Any] = {}
        self._began, self._before = time.monotonic(), 0.0
        if kept is not None and kept.exists():
            try:
                self.parts = json.loads(kept.read_text("utf-8"))
                self._before = self.parts.pop(_SECONDS, 0.0)
            except (OSError, ValueError, AttributeError) as error:
                raise UserError(f"{kept}: cannot be read ({error}); remove it, and that item begins anew") from None

    @property
    def seconds(self) -> float:
        """So far, with those of the runs before this one whose parts were kept."""
        return self._before + time.monotonic() - self._began

    @property
    def repetitions(self) -> int:
        return QUICK_REPETITIONS if self.quick else REPETITIONS

    def specs(self, texts: Iterable[str]) -> dict[str, kinds.Spec]:
        """Of these allocators those that kernels of this version can have, by the names here: of slabyard's policies where Linux's own of
        a name is gone."""
        found = {text: kinds.in_place_of(text, self.linux) for text in texts}
        return {text: kinds.parse(spec, self.linux) for text, spec in found.items() if spec is not None}

    def kernel(self, arch: str, kind: kinds.Kind, outlined: bool = False) -> build.Kernel:
        """The small kernel of this version, built where it is not there yet."""
        return build.from_installed(arch, kind, self.progress, outlined, small=True, linux=self.linux)

    def once(self, name: str, part: Callable[[], Part]) -> Part:
        """What `part` gives, plain data, which was kept if it is done already."""
        if name not in self.parts:
            self.progress.step(name, 0)
            self.parts[name] = part()
            if self.kept is not None:
                write_text(self.kept, to_json({**self.parts, _SECONDS: self.seconds}))
        done: Part = self.parts[name]
        return done

    def in_turn(self, parts: Mapping[str, Callable[[], Part]]) -> dict[str, Part]:
        """Parts by name, one after the other; each is a step of the progress."""
        self.progress.expect(len(parts))
        found = {}
        for name, part in parts.items():
            found[name] = self.once(name, part)
            self.progress.step(name)
        return found

    def side_by_side(self, parts: Mapping[str, Callable[[], Part]]) -> dict[str, Part]:
        """Parts in which nothing is timed, by name: as many at once as there are processors. Each is kept as soon as it is done, and is a
        step of the progress."""
        return self._pooled(parts, os.cpu_count() or 1)

    def _pooled(self, parts: Mapping[str, Callable[[], Part]], at_once: int) -> dict[str, Part]:
        self.progress.expect(len(parts))
        with programs.side_by_side(at_once) as pool:
            running = {pool.submit(part): name for name, part in parts.items() if name not in self.parts}
            for name in parts.keys() - running.values():
                self.progress.step(name)
            for done in as_completed(running):
                self.once(running[done], done.result)
                self.progress.step(running[done])
        return {name: self.parts[name] for name in parts}

    def timed(self, parts: Mapping[str, Callable[[Callable[[], None]], Part]]) -> dict[str, Part]:
        """Parts by name in which something is timed. Each calls what it is given once that is over, and the next one begins while it does
        the rest: a guest hands out its figures and switches itself off while another boots."""
        names = [name for name in parts if name not in self.parts]
        turns = {name: threading.Event() for name in names}
        over = dict(zip(names, [*turns.values(), threading.Event()][1:], strict=True))  # the turn of the next one

        def in_turn(name: str) -> Part:
            while not turns[name].wait(0.05):
                programs.stop_if_unwanted()
            try:
                programs.stop_if_unwanted()
                return parts[name](over[name].set)
            finally:
                over[name].set()

        if names:
            turns[names[0]].set()
        return self._pooled({name: functools.partial(in_turn, name) for name in parts}, 2)

    def shared(self, paper: str, name: str, measure: Callable[[], Any], of: Callable[[dict[str, Any]], Any]) -> Any:
        """What several items of a paper need. `of`: gives it out of the data of a record; None: it is not in that."""
        key = (self.quick, self.linux, self.folder, paper, name)
        if key not in _shared:
            paths = [] if self.folder is None else sorted(self.folder.glob(f"{paper}-*.json"))
            records = (read_record(path, self.quick, self.linux) for path in paths)
            found = (of(record["data"]) for record in records if record is not None)
            _shared[key] = next((one for one in found if one is not None), None) or measure()
        return _shared[key]

    def finish(self) -> None:
        """The item's record is written; its parts are no longer needed."""
        if self.kept is not None:
            self.kept.unlink(missing_ok=True)


def read_record(path: Path, quick: bool, linux: str = DEFAULT) -> dict[str, Any] | None:
    """An item's record; None: there is none, or one of a quick run where a full one is wanted, or the other way round, or one of another
    Linux."""
    try:
        record: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(describe_os_error(error, path)) from None
    except ValueError:
        raise UserError(f"{path}: is no record of a study; remove it, and that item is run again") from None
    if record.get("schema") != SCHEMA:
        raise UserError(f"{path}: is a record of another version of slabyard; remove it, and that item is run again")
    return record if record["quick"] == quick and record.get("linux", DEFAULT) == linux else None
