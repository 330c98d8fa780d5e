"""Words of a prompt: its texts, and the files that it links as mentions."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from acp import schema as wire

from agent_workbench.core.text.amounts import quoted
from agent_workbench.core.text.markdown import fenced_whole
from agent_workbench.core.text.mentions import mention_of, without_mentions

Block = (
    wire.TextContentBlock
    | wire.ImageContentBlock
    | wire.AudioContentBlock
    | wire.ResourceContentBlock
    | wire.EmbeddedResourceContentBlock
)
MAX_BLOCKS = 200
MAX_EMBEDDED_CHARS = 4_000
MAX_URI_CHARS = 4_000
_LINES = re.compile(r"L(\d{1,7})(?:[:-]L?(\d{1,7}))?")


def prompt_words(blocks: Sequence[Block], roots: Iterable[str]) -> str:
    """Return the words of a prompt; a link to a file below one of the `roots` of the repository becomes a mention.

    Any other link is quoted, and the file behind it is not read; a text that comes with it is a part of the words.
    Images and sounds are named, because no model here takes them.
    """
    pieces = [*_pieces(blocks[:MAX_BLOCKS], tuple(roots))]
    if len(blocks) > MAX_BLOCKS:
        pieces.append(f"\n({len(blocks) - MAX_BLOCKS} more parts of the message are left out)")
    return "".join(pieces).strip()


def _pieces(blocks: Iterable[Block], roots: tuple[str, ...]) -> Iterator[str]:
    for block in blocks:
        match block:
            case wire.TextContentBlock():
                yield block.text
            case wire.ResourceContentBlock():
                yield f" {_link(block.uri, roots)} "
            case wire.EmbeddedResourceContentBlock():
                yield _embedded(block.resource, roots)
            case wire.ImageContentBlock() | wire.AudioContentBlock():
                yield f" (an attachment of type {quoted(block.type)} is left out) "


def _embedded(resource: wire.TextResourceContents | wire.BlobResourceContents, roots: tuple[str, ...]) -> str:
    """Return the mention of a file of the repository, or the text that comes with any other resource."""
    path, _ = _file_of(resource.uri[:MAX_URI_CHARS])
    if isinstance(resource, wire.BlobResourceContents) or any(path.startswith(f"{root}{os.sep}") for root in roots):
        return f" {_link(resource.uri, roots)} "
    text = resource.text[:MAX_EMBEDDED_CHARS]
    more = len(resource.text) - len(text)
    cut = f"\n({more:,} more characters are left out)" if more else ""
    return f"\n{quoted(resource.uri, 200)}:\n{fenced_whole(without_mentions(text))}{cut}\n"


def _link(uri: str, roots: tuple[str, ...]) -> str:
    path, fragment = _file_of(uri[:MAX_URI_CHARS])
    for root in roots:
        if path and path.startswith(f"{root}{os.sep}"):
            lines = _LINES.match(fragment)
            place = f":{lines[1]}" + (f"-{lines[2]}" if lines[2] else "") if lines else ""
            name = Path(path).relative_to(root).as_posix()
            if '"' in name or not name.isprintable():  # the rest of it would be words, or another mention
                return f"({quoted(uri, 200)} has a name that cannot be mentioned, and is not read)"
            return mention_of(f"{name}{place}")
    return f"({quoted(uri, 200)} is outside of the repository and is not read)"


def _file_of(uri: str) -> tuple[str, str]:
    """Return the normalized path of a file's URI and its fragment; empty for the URI of anything else."""
    try:
        parts = urlsplit(uri)
        local = parts.scheme in {"", "file"} and parts.netloc in {"", "localhost"}
    except ValueError:
        return "", ""
    path = unquote(parts.path) if local else ""
    return (os.path.normpath(path), parts.fragment) if path.startswith("/") and "\0" not in path else ("", "")
