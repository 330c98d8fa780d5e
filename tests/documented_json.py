"""Check of what `--json` printed against docs/reference/json.md: each field is listed there, with its type."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from tests.architecture.source_tree import ROOT

PAGE = ROOT / "docs/reference/json.md"
ROW = re.compile(r"^\| `(?P<path>[^`]+)` \| (?P<type>[^|]+?) \|", re.MULTILINE)
Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Fields = Mapping[str, str]
"""Type of each field by its path."""


@cache
def documents() -> Mapping[str, Sequence[Fields]]:
    """Return the documents that a verb may print, by its words; each subsection of the page is one."""
    found: dict[str, list[Fields]] = {}
    for section in re.split(r"^## ", PAGE.read_text("utf-8"), flags=re.MULTILINE)[1:]:
        title, _, text = section.partition("\n")
        tables = [dict(ROW.findall(part)) for part in re.split(r"^### ", text, flags=re.MULTILINE)]
        found |= {verb.removeprefix("agent "): [each for each in tables if each] for verb in title.split(", ")}
    return found


def assert_documented(arguments: Sequence[str], printed: str) -> None:
    """Fail if a command line with `--json` printed a field that the page does not list, or left one out."""
    if "--json" not in arguments or not printed.strip():
        return
    words = [word for word in arguments if re.fullmatch(r"[a-z]+", word)]
    verbs = (" ".join(words[:count]) for count in (2, 1) if count <= len(words))
    tables = next(documents()[verb] for verb in verbs if verb in documents())
    for value in _values(printed):
        wrong = [list(_problems(value, fields)) for fields in tables]
        assert [] in wrong, f"docs/reference/json.md, agent {' '.join(words[:2])}: {min(wrong, key=len)}"


def _values(printed: str) -> Iterator[Json]:
    for line in printed.splitlines():
        value: Json = json.loads(line)
        yield from value if isinstance(value, list) else [value]


def _problems(value: Json, fields: Fields, at: str = "") -> Iterator[str]:
    match value:
        case dict():
            below = {
                path.removeprefix(f"{at}.") if at else path for path in fields if not at or path.startswith(f"{at}.")
            }
            names = {path for path in below if not re.search(r"[.\[]", path)}
            if not names:
                return  # an object whose fields are described in words
            optional = {name for name in names if "optional" in fields[f"{at}.{name}" if at else name]} | {"*"}
            yield from (f"{at}.{name} is missing" for name in sorted(names - optional - set(value)))
            for name, each in value.items():
                yield from _field(each, fields, f"{at}.{name if name in names else '*'}".lstrip("."), name)
        case list():
            if any(path.startswith(f"{at}[]") for path in fields):
                for each in value:
                    yield from _problems(each, fields, f"{at}[]")


def _field(value: Json, fields: Fields, path: str, name: str) -> Iterator[str]:
    if path not in fields:
        yield f"{path} ({name}) is not listed"
    elif not _fits(value, fields[path]):
        yield f"{path} is {value!r}, not {fields[path]}"
    else:
        yield from _problems(value, fields, path)


def _fits(value: Json, kind: str) -> bool:
    match value:
        case None:
            return "null" in kind
        case bool():
            return "true or false" in kind
        case int():
            return "number" in kind
        case float():
            return re.search(r"(?<!whole )number", kind) is not None
        case str():
            return f"`{value}`" in kind or re.search(r"(?<!of )text", kind) is not None
        case list():
            return "list" in kind
        case dict():
            return "object" in kind
