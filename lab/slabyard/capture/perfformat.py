"""What a perf.data file says of its own form, as slabyard-import wants to have it (import/perf.c).

A file has an attribute for each event, which tells of what a sample consists, and the kernel's description of each event ("tracing data",
in the form of tools/perf/Documentation/perf.data-file-format.txt): where its fields are, and how it prints them. What is printed is not
always a field: page block orders are constants, flags have names, and whether an allocation is charged to a cgroup follows from its flags
in some kernels. These expressions are of C, and constant but for a field, so they are worked out here.

Where anything is not as expected, there is no layout, and perf script prints the file.
"""

from __future__ import annotations

import operator
import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .perfdata import PerfData

_TRACEPOINT, _SOFTWARE, _DUMMY = 2, 1, 9  # perf_event_attr: type, type, config
# Of perf_event_attr.sample_type.
_IP, _TID, _TIME, _ADDR, _ID, _CPU, _PERIOD, _STREAM_ID, _RAW = (1 << bit for bit in (0, 1, 2, 3, 6, 7, 8, 9, 10))
_IDENTIFIER = 1 << 16
_NEEDED = _TID | _TIME | _CPU | _RAW
_KNOWN = _NEEDED | _IP | _ADDR | _ID | _PERIOD | _STREAM_ID | _IDENTIFIER
_BEHIND = _TID | _TIME | _ID | _STREAM_ID | _CPU | _IDENTIFIER  # parts that other records have too
_SAMPLE_ID_ALL = 1 << 18
TRACING_DATA = b"\x17\x08\x44tracing"  # how it begins; a file of trace-cmd is such data
_OURS = {
    "kmalloc", "kmalloc_node", "kfree", "kmem_cache_alloc", "kmem_cache_alloc_node", "kmem_cache_free", "mm_page_alloc", "mm_page_free",
    "mm_page_free_direct", "mm_page_alloc_extfrag",
}  # fmt: skip
_FIELDS = ("call_site", "ptr", "bytes_req", "bytes_alloc", "gfp_flags", "node", "name", "pfn", "order", "migratetype")
_SAME = {"alloc_order": "order", "alloc_migratetype": "migratetype"}  # of mm_page_alloc_extfrag
_FIELD = re.compile(r"field:(.*?)(\w+)(\[\d*\])?;\s*offset:(\d+);\s*size:(\d+);\s*signed:([01]);")
_CHARGED = re.compile(r'(?:\(\s*([^&]*?)\s*&&)?\s*(.*?)\s*\?\s*"true"\s*:\s*"false"', re.DOTALL)


class _Unknown(Exception):
    """The file has something that is not understood here."""


@dataclass(frozen=True)
class _Event:
    number: int
    name: str  # kmem:kmalloc
    text: str  # as /sys/kernel/tracing/events/kmem/kmalloc/format has it


def layout(data: PerfData, window: tuple[int, int] | None) -> str | None:
    """The layout of a file; `window`: ns of its clock, from and to. None where perf script has to print it."""
    try:
        lines = [f"data {data.data[0]} {data.data[1]}", f"sample {_parts(data)}"]
        if window:
            lines.append(f"window {window[0]} {window[1]}")
        lines += _lines(list(_events(data.tracing_data)))
    except (_Unknown, ValueError, IndexError, struct.error, RecursionError):
        return None
    return "".join(f"{line}\n" for line in lines)


def _parts(data: PerfData) -> int:
    """The parts of a sample (perf_event_attr.sample_type), which are the same for all events. Beside those a file may have an event that
    never happens, for the records of maps and names; behind these stand the same parts."""
    found, beside = set(), set()
    for attribute, _ in data.attributes:
        kind, _, config, _, parts, _, flags = struct.unpack_from("<IIQQQQQ", attribute)
        if not flags & _SAMPLE_ID_ALL:
            raise _Unknown
        if kind == _TRACEPOINT:
            found.add(parts)
        elif (kind, config) != (_SOFTWARE, _DUMMY):
            raise _Unknown
        beside.add(parts & _BEHIND)
    if len(found) != 1 or len(beside) != 1:
        raise _Unknown
    parts = found.pop()
    if parts & _NEEDED != _NEEDED or parts & ~_KNOWN:
        raise _Unknown
    return int(parts)


def _events(text: bytes) -> Iterator[_Event]:
    """The events that the tracing data describes."""
    end = text.index(b"\0", len(TRACING_DATA)) + 1
    big_endian, long_bytes = text[end], text[end + 1]
    if not text.startswith(TRACING_DATA) or big_endian or long_bytes != 8:
        raise _Unknown
    at = end + 6
    for name in (b"header_page\0", b"header_event\0"):
        if not text.startswith(name, at):
            raise _Unknown
        at += len(name)
        at += 8 + struct.unpack_from("<Q", text, at)[0]
    (of_ftrace,) = struct.unpack_from("<I", text, at)
    at += 4
    for _ in range(of_ftrace):
        at += 8 + struct.unpack_from("<Q", text, at)[0]
    (systems,) = struct.unpack_from("<I", text, at)
    at += 4
    for _ in range(systems):
        end = text.index(b"\0", at)
        system = text[at:end].decode()
        (events,) = struct.unpack_from("<I", text, end + 1)
        at = end + 5
        for _ in range(events):
            (size,) = struct.unpack_from("<Q", text, at)
            described = text[at + 8 : at + 8 + size].decode()
            at += 8 + size
            head = re.match(r"name: (\w+)\nID: (\d+)\n", described)
            if not head:
                raise _Unknown
            yield _Event(int(head[2]), f"{system}:{head[1]}", described)


def _lines(events: list[_Event]) -> list[str]:
    lines: list[str] = []
    names: list[tuple[int, str]] | None = None
    for event in events:
        lines.append(f"event {event.number} {event.name}")
        if event.name.partition(":")[2] not in _OURS or not event.name.startswith("kmem:"):
            continue
        printed = _printed(event.text)
        lines += _fields(event.text, printed)
        if "gfp_flags" in printed:
            these = _flags(printed["gfp_flags"])
            if names is not None and these != names:
                raise _Unknown
            names = these
        if "pageblock_order" in printed:
            lines.append(f"pageblock {_value(printed['pageblock_order'])}")
    return lines + [f"flag {bits} {name}" for bits, name in names or []]


def _fields(text: str, printed: dict[str, str]) -> list[str]:
    """Where the fields of one of our events are, and what its flags say of charges."""
    places: dict[str, str] = {}
    for kind, name, array, offset, size, signed in _FIELD.findall(text):
        loc = kind.strip().startswith("__data_loc")
        if name == "name" and not loc:
            raise _Unknown
        places[name] = f"{offset} {size} {signed} {int(loc)}"
        if array and not loc:
            del places[name]
    lines = [f"field {_SAME.get(name, name)} {place}" for name, place in places.items() if _SAME.get(name, name) in _FIELDS]
    needed = {"pfn", "order"} if "pfn" in printed else {"ptr", "call_site"}
    if not needed <= {line.split()[1] for line in lines}:
        raise _Unknown
    return lines + (_charged(printed["accounted"], places) if "accounted" in printed else [])


def _charged(expression: str, places: dict[str, str]) -> list[str]:
    """`(1 && (REC->gfp_flags & 16)) ? "true" : "false"`: perhaps a constant of the kernel, and some bits of the flags or a field."""
    found = _CHARGED.fullmatch(expression.strip())
    if not found:
        raise _Unknown
    constant, charged = found.groups()
    if constant and not _value(_balanced(constant)):
        return ["charge 0"]
    if of_flags := re.fullmatch(r"[(\s]*REC->gfp_flags\s*&\s*(.*)", charged, re.DOTALL):
        return [f"charge {_value(_balanced(of_flags[1]))}"]
    if re.fullmatch(r"[(\s]*REC->accounted[)\s]*", charged) and "accounted" in places:
        return [f"field accounted {places['accounted']}"]
    raise _Unknown


def _balanced(expression: str) -> str:
    """Without the closing parentheses at its end that nothing opens."""
    while expression.count(")") > expression.count("("):
        expression = expression.rstrip().removesuffix(")")
    return expression


def _printed(text: str) -> dict[str, str]:
    """By key, the expression whose value is printed."""
    found = re.search(r'print fmt: "(.*?)"\s*,(.*)', text, re.DOTALL)
    if not found:
        raise _Unknown
    keys = re.findall(r"(\w+)=(?:0x)?%", found[1])
    expressions = list(_arguments(found[2]))
    if len(keys) != len(expressions) or found[1].count("%") != len(keys):
        raise _Unknown
    return dict(zip(keys, expressions, strict=True))


def _arguments(text: str) -> Iterator[str]:
    """What stands between the outermost commas."""
    depth, start, quoted = 0, 0, False
    for at, letter in enumerate(text):
        if letter == '"':
            quoted = not quoted
        elif not quoted:
            depth += (letter in "({") - (letter in ")}")
            if letter == "," and depth == 0:
                yield text[start:at]
                start = at + 1
    yield text[start:]


def _flags(expression: str) -> list[tuple[int, str]]:
    """Bits and their names, in the order in which the kernel tries them."""
    if not re.match(r'\s*\(REC->gfp_flags\)\s*\?\s*__print_flags\(REC->gfp_flags, "\|",', expression):
        raise _Unknown
    found = re.findall(r'\{([^{}"]*),\s*"(\w+)"\s*\}', expression)
    if not found:
        raise _Unknown
    return [(_value(bits), name) for bits, name in found]


# ---- Expressions of C ------------------------------------------------------------------------------------------------------

_CAST = re.compile(r"\(\s*(?:unsigned|signed|long|int|char|short|gfp_t|u\d+|void)(?:\s+(?:long|int|char|short))*\s*\**\s*\)")
_TOKEN = re.compile(r"\s*(0[xX][0-9a-fA-F]+|\d+|<<|>>|<=|>=|==|!=|&&|\|\||[-+*~!&|^<>?:()])")
# Loosest first.
_BINARY: tuple[dict[str, Callable[[int, int], int]], ...] = (
    {"||": lambda left, right: bool(left or right)},
    {"&&": lambda left, right: bool(left and right)},
    {"|": operator.or_},
    {"^": operator.xor},
    {"&": operator.and_},
    {"==": operator.eq, "!=": operator.ne},
    {"<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge},
    {"<<": operator.lshift, ">>": operator.rshift},
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul},
)
_MOST_SHIFTED = 63


def _value(expression: str) -> int:
    """The value of a constant expression, as an unsigned number of 64 bits."""
    text = re.sub(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]+\b", r"\1", _CAST.sub(" ", expression))
    tokens, at = [], 0
    text = text.strip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if not found:
            raise _Unknown
        tokens.append(found[1])
        at = found.end()
    tokens.reverse()
    value = _choice(tokens)
    if tokens:
        raise _Unknown
    return value & (1 << 64) - 1


def _choice(tokens: list[str]) -> int:
    """The tokens from the last one on, up to one that belongs to what is around."""
    value = _operation(tokens, 0)
    if not tokens or tokens[-1] != "?":
        return value
    tokens.pop()
    yes = _choice(tokens)
    _expect(tokens, ":")
    no = _choice(tokens)
    return yes if value else no


def _operation(tokens: list[str], level: int) -> int:
    if level == len(_BINARY):
        return _operand(tokens)
    value = _operation(tokens, level + 1)
    while tokens and tokens[-1] in _BINARY[level]:
        name = tokens.pop()
        right = _operation(tokens, level + 1)
        if name in ("<<", ">>") and not 0 <= right <= _MOST_SHIFTED:
            raise _Unknown
        value = int(_BINARY[level][name](value, right))
    return value


def _operand(tokens: list[str]) -> int:
    token = tokens.pop()
    if token == "(":
        value = _choice(tokens)
        _expect(tokens, ")")
        return value
    if token in ("-", "~", "!"):
        value = _operand(tokens)
        return -value if token == "-" else ~value if token == "~" else int(not value)
    return int(token, 0)


def _expect(tokens: list[str], token: str) -> None:
    if tokens.pop() != token:
        raise _Unknown
