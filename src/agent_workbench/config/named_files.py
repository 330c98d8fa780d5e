"""Files of a repository that its command lines name: their content is trusted with the entry that names them."""

import errno
import os
import re
import shlex
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from agent_workbench.config.layers import Layer
from agent_workbench.config.role_chains import HOOKS, hook_entry, hook_names
from agent_workbench.config.tool_servers import GROUP, flat, server_entry, server_names
from agent_workbench.system.folder_trees import read_regular

MAX_FILE_BYTES = 50_000_000
_ENTRIES = ("__main__.py", "__init__.py", "index.js", "package.json")
"""Files by which a folder or a package is started."""
_WORD = re.compile(r"[^\s;|&()<>`'\"$={}]+")


def named_files(root: Path, layer: Layer) -> Iterator[tuple[str, str]]:
    """Yield a name and a digest for each file of the repo that the command line of a server or a hook names.

    No gate waits before the server is started or the hook runs. Blocks.
    """
    for name in server_names(layer):
        own = server_entry(layer, name)
        words = tuple(flat([own[key].value for key in ("command", "args") if key in own]))
        yield from _digests(root, f"{GROUP}{name}", words)
    for name in hook_names(layer):
        said = hook_entry(layer, name).get("command")
        yield from _digests(root, f"{HOOKS}{name}", _shell_words(str(said.value)) if said is not None else ())


def _digests(root: Path, entry: str, words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for path in dict.fromkeys(_paths(words)):
        if digest := _file_digest(root, path):
            yield f"{entry} file {path}", digest


def _shell_words(line: str) -> tuple[str, ...]:
    """Return the words of a shell's line, those inside of quotes and substitutions too."""
    try:
        whole = shlex.split(line)
    except ValueError:  # a quote is not closed
        whole = []
    return (*whole, *_WORD.findall(line))


def _paths(words: tuple[str, ...]) -> Iterator[str]:
    """Yield the paths that the words of a command line may name: as they are, as an option's value, as a module."""
    for before, word in zip(("", *words), words, strict=False):
        option, _, value = word.partition("=")
        named = value if option.startswith("-") and value else word
        yield named
        yield from (f"{named.rstrip('/')}/{entry}" for entry in _ENTRIES)
        glued = word.startswith("-m") and len(word) > 2
        if before == "-m" or glued:
            *packages, _ = parts = (word[2:] if glued else named).split(".")
            path = "/".join(parts)
            yield f"{path}.py"
            yield from (f"{path}/{entry}" for entry in _ENTRIES)
            yield from (f"{'/'.join(packages[: end + 1])}/__init__.py" for end in range(len(packages)))


def _file_digest(root: Path, word: str) -> str:
    """Return the digest of the file that a word of a command line names, empty if it names none inside the repo.

    A link that leads out of the repo is told with its target.
    """
    try:
        inside = Path(os.path.normpath(root / word)).is_relative_to(root)
        real = (root / word).resolve()
        out = not real.is_relative_to(root.resolve())
        data = read_regular(real, MAX_FILE_BYTES) if inside or not out else None
    except OSError as error:
        return str(error) if error.errno == errno.EFBIG else ""
    except (RuntimeError, ValueError):  # a loop of links, or no path at all
        return ""
    if data is None:
        return ""
    digest = sha256(data).hexdigest()
    return f"a link to {real}, {digest}" if out else digest
