"""Serialized stamps of all indexed files, saved with the index."""

import json
from array import array
from collections.abc import Iterable, Mapping, Sequence

from agent_workbench.adapters.retrieval.indexer.indexable_files import FileStamp

# Flag for a stamp that is equal to no later one, because the file may change at the same time stamp.
_NUMBERS = 4
_NEVER = -1


def encode_stamps(stamps: Mapping[str, FileStamp], indexed: Iterable[str], header: Mapping[str, str]) -> bytes:
    """Return the stamps as bytes; paths that are `indexed` are not stored again."""
    first = [path for path in indexed if path in stamps]
    known = set(first)
    others = [path for path in stamps if path not in known]
    numbers = array("q")
    for path in (*first, *others):
        each = stamps[path]
        numbers.extend((each.modified_ns, each.changed_ns, _NEVER if each.fresh else each.size, each.inode))
    head = json.dumps([dict(header), len(first), others]).encode()
    return len(head).to_bytes(4, "little") + head + numbers.tobytes()


def decode_stamps(data: bytes, indexed: Sequence[str], header: Mapping[str, str]) -> dict[str, FileStamp] | None:
    """Return the encoded stamps; None if they were encoded with another header or for other indexed files."""
    size = int.from_bytes(data[:4], "little")
    try:
        stored, count, others = json.loads(data[4 : 4 + size])
        numbers = array("q", data[4 + size :])
    except (ValueError, TypeError, RecursionError):
        return None
    if stored != dict(header) or count != len(indexed) or not isinstance(others, list):
        return None
    paths = [*indexed, *others]
    if len(numbers) != _NUMBERS * len(paths) or not all(type(path) is str for path in others):
        return None
    rows = zip(*(numbers[place::_NUMBERS] for place in range(_NUMBERS)), strict=True)
    return {
        path: FileStamp(modified, changed, size, inode)
        for path, (modified, changed, size, inode) in zip(paths, rows, strict=True)
    }
