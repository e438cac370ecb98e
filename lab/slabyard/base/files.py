"""Files that the program writes, and what it tells of those that it cannot.

A file is written under a temporary name in its own directory and renamed when it is complete, so nobody ever finds half a file, whatever
ends the program. A symbolic link stays one: its target is replaced. A device or a FIFO is never replaced: the complete file is copied
into it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .errors import UserError


def to_json(value: Any) -> str:
    """JSON with two blanks of indentation and keys in the order given, lists of plain numbers on one line."""
    return _one_line_lists(value, 0) + "\n"


def _one_line_lists(value: Any, depth: int) -> str:
    pad, inner = "  " * depth, "  " * (depth + 1)
    if isinstance(value, dict) and value:
        items = [f"{inner}{json.dumps(str(k))}: {_one_line_lists(v, depth + 1)}" for k, v in value.items()]
        return "{\n" + ",\n".join(items) + f"\n{pad}}}"
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        return "[\n" + ",\n".join(inner + _one_line_lists(item, depth + 1) for item in value) + f"\n{pad}]"
    return json.dumps(value)


def _check_writable(path: Path) -> None:
    """Refuses an output before the work for it is done."""
    if path.is_dir():
        raise UserError(f"{path}: is a folder; name a file in it")
    folder = Path(os.path.realpath(path)).parent
    if not is_special(path) and not folder.is_dir():
        raise UserError(f"{path}: there is no folder {folder}; make it first")
    if not os.access(path if is_special(path) else folder, os.W_OK):
        raise UserError(f"{path}: permission denied")


def check_folder(path: Path) -> None:
    """Refuses a folder to write into, made if need be, before the work for it is done."""
    above = next(one for one in (path.absolute(), *path.absolute().parents) if os.path.lexists(one))
    if not above.is_dir():
        raise UserError(f"{path}: {above} is no folder; name another one")
    if not os.access(above, os.W_OK):
        raise UserError(f"{path}: permission denied")


def check_outputs(outputs: Sequence[Path | None], inputs: Sequence[Path] = ()) -> None:
    """Refuses outputs before the work for them is done: one that cannot be written, is read as well, or is named twice."""
    given = [path for path in outputs if path is not None]
    for at, path in enumerate(given):
        _check_writable(path)
        if any(same_file(path, other) for other in inputs):
            raise UserError(f"{path}: is also read; name another file for the output")
        if any(same_file(path, other) for other in given[:at]):
            raise UserError(f"{path}: named for two outputs; name two files")


def same_file(one: Path, other: Path) -> bool:
    """Whether both name one file, that is there or is to be. Of what is no regular file, never."""
    if is_special(one):
        return False
    try:
        return one.samefile(other)
    except OSError:
        return os.path.realpath(one) == os.path.realpath(other)


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Gives a temporary name beside `path`; renames it to `path` when the block ends well, removes it otherwise.

    Where `path` is a device or a FIFO, the temporary file lies in the folder for such, and is copied. UserError when the directory
    cannot be written or the disk is full.
    """
    direct = is_special(path)
    target = path if direct else Path(os.path.realpath(path))
    # Named before it is there, so that it is removed at whatever moment Ctrl-C comes.
    part = Path(tempfile.gettempdir() if direct else target.parent) / f".{target.name[:40]}.{secrets.token_hex(8)}.part"
    try:
        try:
            os.close(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise UserError(describe_os_error(error, tempfile.gettempdir() if direct else path)) from error
        yield part
        if direct:
            with part.open("rb") as content, os.fdopen(os.open(target, os.O_WRONLY), "wb") as out:
                shutil.copyfileobj(content, out)
        else:
            umask = os.umask(0)
            os.umask(umask)
            part.chmod(0o666 & ~umask)
            part.replace(target)
    except BrokenPipeError:
        raise UserError(f"{path}: the reader has closed it") from None
    except OSError as error:
        raise UserError(describe_os_error(error, path)) from error
    finally:
        part.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Writes a whole file. UserError as whole_file."""
    with whole_file(path) as part:
        part.write_text(text, "utf-8")


def export_json(path: Path | None, found: Any) -> None:
    """Writes result records to a file; None: to none. UserError as whole_file."""
    if path is not None:
        write_text(path, to_json(found))


def read_text_if_there(path: Path) -> str | None:
    """The text of a file of the kernel's, say; None where it cannot be read."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return None


def is_special(path: Path) -> bool:
    """Whether there is something at `path`, or where it links to, that is neither a regular file nor a folder."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def describe_os_error(error: OSError, path: Path | str) -> str:
    """One line about a file that could not be read or written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"no space left on the disk of {path}; free some, or name a file on another disk"
    if error.errno == errno.EFBIG:
        return f"{path}: too large for a file here; raise the limit (ulimit -f)"
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return "too many files are open; raise the limit (ulimit -n)"
    if error.errno == errno.ENOENT:
        return f"{path}: no such file"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"{path}: permission denied"
    return f"{path}: {(error.strerror or str(error)).lower()}"


def cache_home() -> Path:
    """Where what takes long to make is kept for the user, as the XDG specification has it. UserError where there is no such place."""
    given, home = os.environ.get("XDG_CACHE_HOME", ""), os.environ.get("HOME") or "~"
    folder = Path(given if given.startswith("/") else os.path.expanduser(f"{home}/.cache"))  # noqa: PTH111 (it leaves ~ where it must)
    if not folder.is_absolute():
        raise UserError("this user has no home folder to keep things in; have XDG_CACHE_HOME name a folder")
    return folder / "slabyard"


def sha256(path: Path) -> str:
    """The hash of a file, in hexadecimal."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(describe_os_error(error, path)) from error
