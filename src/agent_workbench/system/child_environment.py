"""What a process of ours is told of the user's environment: where things are, and no secret."""

from collections.abc import Mapping

from agent_workbench.core.text.secrets import looks_secret

_NAMES = frozenset({"HOME", "PATH", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "XDG_CACHE_HOME"})
_LOCALE = "LC_"


def handed_on(environ: Mapping[str, str], *prefixes: str) -> dict[str, str]:
    """Return the variables that a child needs, and those that begin with one of `prefixes` and name no secret."""
    begins = (_LOCALE, *prefixes)
    return {
        name: value
        for name, value in environ.items()
        if name in _NAMES or (name.startswith(begins) and not looks_secret(name))
    }
