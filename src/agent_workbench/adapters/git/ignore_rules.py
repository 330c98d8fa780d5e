"""Ignore rules of one git tree: the patterns of its `.gitignore` files, and no others."""

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
    """The pattern is one that git never matches."""


class _Pattern(Struct, frozen=True):
    """One line of a `.gitignore`. `parts` match names, None any number of names. `floating`: at any depth."""

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
    """Decisions about untracked files as git makes them; `files` are contents of `.gitignore` files by path."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files

    @cached_property
    def _patterns(self) -> dict[str, tuple[_Pattern, ...]]:
        """The patterns by folder, last line first, because the last match decides."""
        found = {path.rpartition("/")[0]: _read(text) for path, text in self._files.items()}
        return {folder: patterns for folder, patterns in found.items() if patterns}

    def ignores(self, path: str, *, is_folder: bool) -> bool:
        """Return True if a pattern ignores `path` itself. Ignored parent folders are the caller's concern."""
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
    """Return the line without trailing spaces, except one that a backslash escapes."""
    bare = line.rstrip(b" ")
    slashes = len(bare) - len(bare.rstrip(b"\\"))
    return bare + b" " if slashes % 2 and len(bare) < len(line) else bare


def _pattern(words: bytes) -> _Pattern | None:
    negated, words = words.startswith(b"!"), words.removeprefix(b"!")
    folders_only, words = words.endswith(b"/"), words.removesuffix(b"/")
    if not words:
        return None
    if b"/" not in words:
        # Matched against a single name, where two stars mean the same as one.
        return _Pattern((_name_matcher(words),), negated, folders_only, floating=True)
    names = _split(words.removeprefix(b"/"))
    parts = tuple(None if name == _DEEP else _name_matcher(name) for name in names)
    return _Pattern(parts, negated, folders_only, floating=False)


def _split(words: bytes) -> list[bytes]:
    """Return the parts between slashes; a slash inside a character class does not split."""
    names, start, at = [], 0, 0
    while at < len(words):
        if words[at : at + 2] == b"\\/":  # an escaped slash is a slash
            words = words[:at] + words[at + 1 :]
            if at > start + 1 and not words[start:at].strip(b"*"):
                names.append(b"*")  # but the stars before it then match one folder at least
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
    # A part of three or more stars means the same as two.
    return [_DEEP if len(name) > 2 and not name.strip(b"*") else name for name in names]


def _name_matcher(glob: bytes) -> Callable[[bytes], object]:
    """Return a matcher for one name; its time is bounded by the product of the two lengths."""
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
    # Atomic groups: each piece matches at its first position. Backtracking finds nothing more, in exponential time.
    middle = b"".join(b"(?>.*?%s)" % piece for piece in pieces[1:-1])
    return re.compile(pieces[0] + middle + b".*" + pieces[-1], re.DOTALL).fullmatch


def _class(glob: bytes, start: int) -> tuple[bytes, int]:
    """Return the character class at `start` as a regular expression, and the position after it."""
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
    """Return the character at a position, without its backslash, and the position after it."""
    at += glob[at : at + 1] == b"\\"
    if at >= len(glob):
        raise _NeverMatches
    return glob[at : at + 1], at + 1


def _named(glob: bytes, start: int) -> tuple[bytes, int] | None:
    """Return the content of a named class such as `[:alpha:]` whose name begins at `start`, None if it is not one."""
    end = glob.find(b"]", start)
    if end < 0:
        raise _NeverMatches
    if end == start or glob[end - 1 : end] != b":":
        return None
    words = _CLASSES.get(glob[start : end - 1])
    if words is None:
        raise _NeverMatches
    return words, end + 1
