"""Checks JSON values against schemas: `python -m agent_workbench.adapters.schema_process`.

Standard input is one JSON list of `[schema, value]` pairs, both JSON text; a value of null asks about the schema alone.
Standard output is a line for each, a problem as JSON text, "" where there is none. A schema may hold patterns that take
exponential time and references that multiply, so the process limits its own time and memory, and ends when they are
used up.
"""

import ctypes
import json
import resource
import signal
import sys

CPU_SECONDS = 5
MEMORY_BYTES = 1_000_000_000
MESSAGE_CHARS = 300
_PR_SET_PDEATHSIG = 1


def main() -> int:
    """Answer what standard input asks; return 0."""
    _end_with_parent()
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    if sys.platform == "linux":  # macOS refuses to limit the address space
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    asked = json.load(sys.stdin)
    for schema, value in asked:
        # Each at once: the first one that is not answered is the one that used up the time or memory.
        sys.stdout.write(json.dumps(problem_of(json.loads(schema), value)) + "\n")
        sys.stdout.flush()
    return 0


def _end_with_parent() -> None:
    """Have the kernel end this process when the workbench is gone; elsewhere than on Linux its time limit does."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def problem_of(schema: dict[str, object], value: str | None) -> str:
    """Return why the schema is invalid (`value` None) or the value does not fit it; empty if all is well."""
    from jsonschema import SchemaError
    from jsonschema.exceptions import best_match
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing import Registry

    try:
        checker = validator_for(schema, default=Draft202012Validator)
        checker.check_schema(schema)
        if value is None:
            return ""
        # Without a registry of our own the library would fetch what a reference points to.
        found = best_match(checker(schema, registry=Registry()).iter_errors(json.loads(value)))
    except SchemaError as error:
        return f"{_place(error.absolute_path)}{_short(error.message)}"
    except RecursionError:
        return "its references never end"
    except Exception as error:
        # The library lets errors of `re` and of its own parts through: each means that the schema cannot be used.
        return f"the schema cannot be used: {_short(str(error) or type(error).__name__)}"
    return "" if found is None else f"{_place(found.absolute_path)}{_short(found.message)}"


def _place(path: object) -> str:
    parts = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in list(path))  # type: ignore[call-overload]
    return f"{_short(parts.removeprefix('.'))}: " if parts else ""


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MESSAGE_CHARS else f"{line[: MESSAGE_CHARS - 1]}…"


if __name__ == "__main__":
    sys.exit(main())
