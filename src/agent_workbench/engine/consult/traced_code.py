"""Code that an error names: the files of a trace that belong to the repository, around the lines it names."""

from msgspec.structs import replace

from agent_workbench.core.checks.failure_tree import named_places
from agent_workbench.core.errors import UsageError
from agent_workbench.engine.consult.context import ConsultContext
from agent_workbench.engine.consult.judged_files import JudgedFile, read_judged

MOST_FILES = 6


async def read_traced(context: ConsultContext, error: str, root: str) -> tuple[JudgedFile, ...]:
    """Return the files that an error names, the last named first; those that are not shown to a model are left out."""
    present = await context.files.list_files()
    named: dict[str, list[int]] = {}
    for place in reversed(list(named_places(error))):
        path = _own(place.path, present, root)
        if path and (path in named or len(named) < MOST_FILES):
            named.setdefault(path, []).append(place.line)
    found: list[JudgedFile] = []
    for path, lines in named.items():
        try:
            (file,) = await read_judged(context, (path,))
        except UsageError:
            continue
        found.append(replace(file, changed=tuple(lines)))
    return tuple(found)


def _own(path: str, present: tuple[str, ...], root: str) -> str:
    """Return the path of a file of the repository, empty for any other; the end of a path is enough if it is unique."""
    plain = path.removeprefix(f"{root.rstrip('/')}/").removeprefix("./")
    if plain in present:
        return plain
    ends = [each for each in present if plain.endswith(f"/{each}") or each.endswith(f"/{plain}")]
    return ends[0] if len(ends) == 1 else ""
