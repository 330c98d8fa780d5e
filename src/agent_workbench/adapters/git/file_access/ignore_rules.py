"""Ignore rules of one git tree: the patterns of the `.gitignore` files that it holds, and no others."""

import os
import re
from collections.abc import Callable, Mapping
from functools import cached_property

from msgspec import Struct

_CLASSES = {
    b"alnum": rb"0-9A-Za-z",
    b"alpha": rb"A-Za-z",
    b"blank": rb" \t",
    b"cntrl": rb"\x00-\x1f\x7f",
    b"digit": rb"0-9",
    b"graph": rb"!-~",
    b"lower": rb"a-z",
    b"print": rb" -~",
    b"punct": rb"!-/:-@\[-`{-~",
    b"space": rb" \t-\r",
    b"upper": rb"A-Z",
    b"xdigit": rb"0-9A-Fa-f",
}
_DEEP = b"**"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_Names = tuple[bytes, ...]


class _NeverMatches(Exception):
    """Git takes the pattern for one that matches nothing."""


class _Pattern(Struct, frozen=True):
    """One line of a `.gitignore`. `parts` are names; None is any number of them. A `floating` one fits at any depth."""

    parts: tuple[Callable[[bytes], object] | None, ...]
    negated: bool
    folders_only: bool
    floating: bool

    def matches(self, names: _Names) -> bool:
        """Return True if the names, relative to the folder of the `.gitignore`, match the pattern."""
        if self.floating:
            part = self.parts[0]
            return part is None or bool(part(names[-1]))
        # reached[i]: the parts so far match the first i names. Linear in names times parts, whatever the pattern.
        reached = [True] + [False] * len(names)
        for position, part in enumerate(self.parts):
            if part is None:
                least = 1 if position and position == len(self.parts) - 1 else 0
                first = reached.index(True) + least if True in reached else len(reached)
                reached = [index >= first for index in range(len(reached))]
            else:
                reached = [False] + [
                    before and bool(part(name)) for before, name in zip(reached[:-1], names, strict=True)
                ]
        return reached[-1]


class IgnoreRules:
    """Decides as git does for files that it does not track, from the content of `.gitignore` files by their path."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files

    @cached_property
    def _patterns(self) -> dict[str, tuple[_Pattern, ...]]:
        """The patterns by folder, the last line first: it is the one that counts."""
        found = {path.rpartition("/")[0]: _read(text) for path, text in self._files.items()}
        return {folder: patterns for folder, patterns in found.items() if patterns}

    def ignores(self, path: str, *, is_folder: bool) -> bool:
        """Return True if `path` itself is ignored; a folder above it that is ignored is not asked for here."""
        if not self._patterns:
            return False
        names = tuple(os.fsencode(path).split(b"/"))
        folder = path
        while folder:
            folder = folder.rpartition("/")[0]
            patterns = self._patterns.get(folder)
            if not patterns:
                continue
            inside = names[folder.count("/") + 1 :] if folder else names
            for pattern in patterns:
                if (is_folder or not pattern.folders_only) and pattern.matches(inside):
                    return not pattern.negated
        return False


def _read(text: bytes) -> tuple[_Pattern, ...]:
    found = []
    for line in text.removeprefix(_BYTE_ORDER_MARK).split(b"\n"):
        if not line.startswith(b"#"):
            words = _trimmed(line.removesuffix(b"\r").partition(b"\0")[0])
            try:
                if pattern := _pattern(words):
                    found.append(pattern)
            except _NeverMatches:
                continue
    return tuple(reversed(found))


def _trimmed(line: bytes) -> bytes:
    """Return the line without the blanks at its end that no backslash keeps."""
    bare = line.rstrip(b" ")
    slashes = len(bare) - len(bare.rstrip(b"\\"))
    return bare + b" " if slashes % 2 and len(bare) < len(line) else bare


def _pattern(words: bytes) -> _Pattern | None:
    negated, words = words.startswith(b"!"), words.removeprefix(b"!")
    folders_only, words = words.endswith(b"/"), words.removesuffix(b"/")
    if not words:
        return None
    if b"/" not in words:
        # Compared with one name alone: two stars say no more than one.
        return _Pattern((_name_matcher(words),), negated, folders_only, floating=True)
    names = _split(words.removeprefix(b"/"))
    parts = tuple(None if name == _DEEP else _name_matcher(name) for name in names)
    return _Pattern(parts, negated, folders_only, floating=False)


def _split(words: bytes) -> list[bytes]:
    """Return what stands between slashes, of which those in a class of characters are none."""
    names, start, at = [], 0, 0
    while at < len(words):
        if words[at : at + 2] == b"\\/":  # an escaped slash is a slash
            words = words[:at] + words[at + 1 :]
        if words[at : at + 1] == b"\\":
            at += 2
        elif words[at : at + 1] == b"[":
            at = _class(words, at)[1]
        else:
            if words[at : at + 1] == b"/":
                names.append(words[start:at])
                start = at + 1
            at += 1
    names.append(words[start:])
    # Stars in a row that stand alone are as two.
    return [_DEEP if len(name) > 2 and not name.strip(b"*") else name for name in names]


def _name_matcher(glob: bytes) -> Callable[[bytes], object]:
    """Return what tells if a name matches; the time it takes grows with the name's length times the pattern's."""
    pieces: list[bytes] = [b""]
    at = 0
    while at < len(glob):
        char = glob[at : at + 1]
        at += 1
        if char == b"*":
            pieces.append(b"")
        elif char == b"?":
            pieces[-1] += b"."
        elif char == b"[":
            words, at = _class(glob, at - 1)
            pieces[-1] += words
        else:
            if char == b"\\":
                char = glob[at : at + 1]
                at += 1
                if not char:
                    raise _NeverMatches
            pieces[-1] += re.escape(char)
    if len(pieces) == 1:
        return re.compile(pieces[0], re.DOTALL).fullmatch
    # Each piece is taken where it comes first, for good: going back would find nothing more and take ages.
    middle = b"".join(b"(?>.*?%s)" % piece for piece in pieces[1:-1])
    return re.compile(pieces[0] + middle + b".*" + pieces[-1], re.DOTALL).fullmatch


def _class(glob: bytes, start: int) -> tuple[bytes, int]:
    """Return a class of characters that begins at `start` as a regular expression, and where it ends."""
    at = start + 1
    negated = glob[at : at + 1] in {b"!", b"^"}
    at += negated
    found, before, first = b"", b"", True
    while first or glob[at : at + 1] != b"]":
        first = False
        char = glob[at : at + 1]
        if not char:
            raise _NeverMatches
        if char == b"-" and before and glob[at + 1 : at + 2] not in {b"", b"]"}:
            last, at = _escaped(glob, at + 1)
            found += b"%s-%s" % (re.escape(before), re.escape(last)) if before <= last else b""
            before = b""
        elif char == b"[" and glob[at + 1 : at + 2] == b":" and (named := _named(glob, at + 2)):
            words, at = named
            found, before = found + words, b""
        else:
            before, at = _escaped(glob, at)
            found += re.escape(before)
    if not found:
        return (rb"[^/]" if negated else rb"[^\x00-\xff]"), at + 1
    return b"[%s%s]" % (b"^/" if negated else b"", found), at + 1


def _escaped(glob: bytes, at: int) -> tuple[bytes, int]:
    """Return the character that is meant at a place, and the place behind it."""
    at += glob[at : at + 1] == b"\\"
    if at >= len(glob):
        raise _NeverMatches
    return glob[at : at + 1], at + 1


def _named(glob: bytes, start: int) -> tuple[bytes, int] | None:
    """Return a class such as `[:alpha:]`, whose name begins at `start`; None if it is not one."""
    end = glob.find(b"]", start)
    if end < 0:
        raise _NeverMatches
    if end == start or glob[end - 1 : end] != b":":
        return None
    words = _CLASSES.get(glob[start : end - 1])
    if words is None:
        raise _NeverMatches
    return words, end + 1
