"""Two files, whatever they are, as a difference: each is known by its content, and the two must say things of one kind."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..base.errors import UserError
from ..base.files import describe_os_error, is_special
from ..base.terminal import printable
from ..results.model import Estimate
from ..trace import dumps
from . import ledgers, pairs
from .conditions import Condition
from .ledgers import Ledger
from .model import Difference, Row

LAST_LINE = "kmem_cache"
KINDS = "result records (JSON), a trace, or a dump of slabinfo, slabtop or allocinfo"


def compare(old: Path, new: Path, conditions: Sequence[Condition]) -> Difference:
    """UserError where they cannot be compared."""
    ours, others = _read(old), _read(new)
    names = _names(old, new)
    if isinstance(ours, Ledger) and isinstance(others, Ledger):
        found = _of_ledgers(ours, others, names)
    elif isinstance(ours, Ledger) or isinstance(others, Ledger):
        raise UserError(f"{old} and {new} are of two kinds; give two files of one: {KINDS}")
    else:
        found = pairs.compare(ours, others, names, {one.measure for one in conditions})
    found.judge(conditions)
    return found


def _names(old: Path, new: Path) -> tuple[str, str]:
    """As short as tells them apart."""
    one, two = printable(old.name), printable(new.name)
    return (one, two) if one != two else (printable(str(old)), printable(str(new)))


def _read(path: Path) -> Sequence[pairs.Record] | Ledger:
    if not is_special(path):
        return _read_file(path)
    with tempfile.NamedTemporaryFile(prefix="slabyard-") as copy:  # a pipe can be read once, and what it is must be found out
        try:
            with path.open("rb") as file:
                shutil.copyfileobj(file, copy)
            copy.flush()
            return _read_file(Path(copy.name))
        except OSError as error:
            raise UserError(describe_os_error(error, path)) from error
        except UserError as error:
            raise UserError(error.message.replace(copy.name, str(path)), error.status) from None


def _read_file(path: Path) -> Sequence[pairs.Record] | Ledger:
    listed = pairs.read(path)
    if listed is not None:
        return listed
    found = dumps.read(path)
    if found:
        return ledgers.of_dumps(path, found)
    try:
        with path.open("rb") as file:
            is_trace = file.read(4) == b"PAR1"
    except OSError:
        is_trace = False
    if not is_trace:
        raise UserError(f"{path}: nothing that can be compared; give {KINDS}")
    return ledgers.of_trace(path)


def _of_ledgers(old: Ledger, new: Ledger, names: tuple[str, str]) -> Difference:
    found = Difference(*names, grown=ledgers.changes(old, new), growth=old.grew)
    if old.memory is not None and new.memory is not None:
        before, after = (Estimate(one, one, one) for one in (old.memory, new.memory))
        label = "memory that grew, at its peak" if old.grew else "memory held"
        found.rows.append(Row("", label, "memory", "memory", "bytes", before, after))
    found.notes = [f"Old: {old.title}.", f"New: {new.title}.", *dict.fromkeys([*old.notes, *new.notes])]
    if old.grew:
        found.notes.append("Grew: allocated in the trace less what of it was freed, in bytes asked for.")
    if (old.grew and old.memory is None) or new.memory is None:
        found.notes.append("Without page events in both, what the kernels' slabs held is unknown.")
    found.incomplete = {str(one.path): one.incomplete or _cut(one, other) for one, other in ((old, new), (new, old))}
    return found


def _cut(one: Ledger, other: Ledger) -> str | None:
    """Why one of two slabinfos ends too early: the kernel's first cache, the last line of each, is in the other alone."""
    if one.kind != "slabinfo" or other.kind != "slabinfo":
        return None
    mine, others = ({holder.name for holder in each.sections["cache"]} for each in (one, other))
    return f"{LAST_LINE}, the last line of a slabinfo, is missing" if LAST_LINE in others - mine else None
