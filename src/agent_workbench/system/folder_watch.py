"""Watch of folders: the kernel reports which files below them changed (inotify, on Linux and local disks only)."""

import ctypes
import os
import struct
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_MODIFY, _ATTRIB, _CLOSE_WRITE = 0x2, 0x4, 0x8
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF = 0x400, 0x800
_UNMOUNT, _OVERFLOW, _IGNORED, _IS_FOLDER = 0x2000, 0x4000, 0x8000, 0x40000000
_ONLY_FOLDERS, _NO_LINKS, _NOT_UNLINKED = 0x1000000, 0x2000000, 0x4000000
_CHANGES = _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF
_MASK = _CHANGES | _ONLY_FOLDERS | _NO_LINKS | _NOT_UNLINKED
_GONE = _DELETE_SELF | _UNMOUNT | _IGNORED
# After one of these, names that the kernel reports may belong to other folders than before, or are missing. A folder
# that moves takes its watches along.
_LOST = _MOVE_SELF | _UNMOUNT | _OVERFLOW
_MOVED = _MOVED_FROM | _MOVED_TO
_EVENT = struct.Struct("iIII")
_READ_BYTES = 1 << 16
# Watches are limited for each user, and an editor needs them too.
_MAX_FOLDERS = 8_192
_SHARE_OF_LIMIT = 4
_LIMIT = Path("/proc/sys/fs/inotify/max_user_watches")
# Magic numbers of file systems whose every change passes through this kernel: ext, XFS, Btrfs, tmpfs, ramfs, overlay,
# F2FS, ZFS, bcachefs. A network disk reports nothing of what others change.
_LOCAL = frozenset(
    {0xEF53, 0x58465342, 0x9123683E, 0x01021994, 0x858458F6, 0x794C7630, 0xF2F52010, 0x2FC12FC1, 0xCA451A4E}
)
_STATFS_BYTES = 256


class WatchLost(Exception):
    """The watch is of no use: it cannot be had here, or changes were not reported. Everything may have changed."""


class FolderWatch:
    """Watched folders below `root`; each is added by name, none is added with the folders below it.

    Every method blocks, and raises `WatchLost` when the watch is lost; it must be closed then too.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._folders: dict[int, str] = {}
        self._names: set[str] = set()
        self._library = _library()
        self._limit = min(_MAX_FOLDERS, _user_limit() // _SHARE_OF_LIMIT)
        if not _is_local(self._library, root):
            raise WatchLost
        self._descriptor = self._library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0:
            raise WatchLost

    def add(self, folders: Iterable[str]) -> bool:
        """Watch these folders (relative to the root, empty for the root); return True if any was not watched before.

        Folders that are gone are passed over.
        """
        before = len(self._names)
        for name in folders:
            if name in self._names:
                continue
            if len(self._names) >= self._limit:
                raise WatchLost
            path = os.fsencode(f"{self._root}/{name}")
            number = self._library.inotify_add_watch(self._descriptor, path, _MASK)
            if number >= 0:
                self._folders[number] = name
                self._names.add(name)
            elif os.path.isdir(path):  # noqa: PTH112  the path is bytes
                raise WatchLost
        return len(self._names) > before

    def changes(self) -> set[str]:
        """Return the files and folders (relative to the root) that changed, came or went since the last call."""
        found: set[str] = set()
        while data := self._read():
            place = 0
            while place < len(data):
                number, mask, _, size = _EVENT.unpack_from(data, place)
                name = os.fsdecode(data[place + _EVENT.size : place + _EVENT.size + size].rstrip(b"\0"))
                place += _EVENT.size + size
                if mask & _LOST or (mask & _IS_FOLDER and mask & _MOVED):
                    raise WatchLost
                if mask & _GONE:
                    self._forget(number)
                elif name and (folder := self._folders.get(number)) is not None:
                    found.add(f"{folder}/{name}" if folder else name)
        return found

    def _forget(self, number: int) -> None:
        """Drop the watch of a folder that was deleted, which the kernel reports twice."""
        folder = self._folders.pop(number, None)
        if folder == "":
            raise WatchLost
        if folder is not None:
            self._names.discard(folder)

    def close(self) -> None:
        """Give the watches back."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _read(self) -> bytes:
        try:
            return os.read(self._descriptor, _READ_BYTES)
        except BlockingIOError:
            return b""
        except OSError as error:
            raise WatchLost from error


def _library() -> ctypes.CDLL:
    """Return the C library; raise `WatchLost` if it has no inotify."""
    try:
        library = ctypes.CDLL(None, use_errno=True)
        library.inotify_init1.argtypes = [ctypes.c_int]
        library.inotify_add_watch.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32]
        library.statfs.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
    except (OSError, AttributeError, TypeError):
        raise WatchLost from None
    return library


def _is_local(library: ctypes.CDLL, path: str) -> bool:
    """Return True for a folder on a disk of this machine."""
    facts = ctypes.create_string_buffer(_STATFS_BYTES)
    if library.statfs(os.fsencode(path), facts):
        return False
    return ctypes.c_long.from_buffer(facts).value & 0xFFFFFFFF in _LOCAL


def _user_limit() -> int:
    with suppress(OSError, ValueError):
        return int(_LIMIT.read_text())
    return 0
