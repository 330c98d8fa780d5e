"""Specs of the built-in tools as version 0.1 had them: its journals hold the names alone."""

from collections.abc import Iterable

from agent_workbench.core.settings import Permission
from agent_workbench.core.tools.arguments import Argument, ArgumentKind, schema_of
from agent_workbench.core.tools.spec import ToolSpec

_TEXT, _NUMBER = ArgumentKind.STRING, ArgumentKind.INTEGER
_SPECS = (
    ToolSpec(
        "read_file",
        "show lines of a file",
        Permission.READ,
        schema_of(
            (
                Argument("path", _TEXT, "path from the repo's root"),
                Argument("first_line", _NUMBER, "first line, from 1", required=False),
                Argument("last_line", _NUMBER, "last line", required=False),
            )
        ),
    ),
    ToolSpec(
        "list_files",
        "list files whose path matches a glob (** for any folders)",
        Permission.READ,
        schema_of((Argument("glob", _TEXT, "such as src/**/*.py", required=False),)),
    ),
    ToolSpec(
        "grep",
        "find lines that hold a text, taken literally, upper and lower case alike",
        Permission.READ,
        schema_of(
            (
                Argument("text", _TEXT, "what to look for"),
                Argument("glob", _TEXT, "only in paths that match", required=False),
            )
        ),
    ),
    ToolSpec(
        "search_code",
        "find functions and classes by words, names, or lines of a stack trace",
        Permission.READ,
        schema_of((Argument("query", _TEXT, "words or names", max_length=400),)),
    ),
    ToolSpec(
        "write_diff",
        "change files with a unified diff (--- a/path, +++ b/path, @@ hunks with 3 lines of context); no fence; "
        "a new file has --- /dev/null, a removed one +++ /dev/null, a renamed one begins with `rename from`, "
        "`rename to`",
        Permission.DIFF,
    ),
    ToolSpec("run_tests", "run the task's tests", Permission.CHECK, schema_of(())),
    ToolSpec("static_analyze", "run the repo's lint command", Permission.CHECK, schema_of(())),
    ToolSpec(
        "note",
        "keep a line in the task's scratchpad",
        Permission.READ,
        schema_of((Argument("text", _TEXT, "what to remember", max_length=600),)),
    ),
    ToolSpec(
        "finish",
        "say that the task is done; its checks are run and a commit is offered",
        Permission.READ,
        schema_of((Argument("summary", _TEXT, "what was changed and why", max_length=600),)),
    ),
    ToolSpec(
        "run_command",
        "run a shell command in the workspace",
        Permission.COMMAND,
        schema_of((Argument("command", _TEXT, "one command line", max_length=500),)),
    ),
)


def specs_of_0_1(names: Iterable[str]) -> tuple[ToolSpec, ...]:
    """Return the specs of these tools, in the order of the names; unknown names are left out."""
    known = {spec.name: spec for spec in _SPECS}
    return tuple(known[name] for name in names if name in known)
