"""Language servers that are known, and the diagnostics that they find in changed files."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from pathlib import PurePosixPath

from msgspec import Struct

from agent_workbench.core.recorded_value import RecordedValue

MAX_DIAGNOSTICS = 50
"""Most diagnostics of one result in the journal."""
TOLD_DIAGNOSTICS = 8
"""Most diagnostics of one result that the model is told."""
MESSAGE_CHARS = 300
_NUMBER = re.compile(r"\d+")
_PYTHON = {".py": "python", ".pyi": "python"}
_C = {
    **dict.fromkeys((".c", ".h"), "c"),
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx"), "cpp"),
}
_SCRIPTS = {
    **dict.fromkeys((".ts", ".mts", ".cts"), "typescript"),
    **dict.fromkeys((".js", ".mjs", ".cjs"), "javascript"),
    ".tsx": "typescriptreact",
    ".jsx": "javascriptreact",
}


class LanguageServer(Struct, frozen=True):
    """A language server: its command line, and the identifiers of its languages by the suffix of a file.

    `runs_code`: it runs programs that a repository brings, such as build scripts and plugins. Where `instead_of` is
    installed too, that one is not started.
    """

    name: str
    argv: tuple[str, ...]
    languages: Mapping[str, str]
    runs_code: bool = False
    instead_of: str = ""

    @property
    def line(self) -> str:
        """The command line, as a rule names it."""
        return " ".join(self.argv)

    def language(self, path: str) -> str:
        """Return the identifier of a file's language, empty if it is none of the server's."""
        return self.languages.get(PurePosixPath(path).suffix, "")


LANGUAGE_SERVERS = (
    LanguageServer("basedpyright", ("basedpyright-langserver", "--stdio"), _PYTHON, instead_of="pyright"),
    LanguageServer("pyright", ("pyright-langserver", "--stdio"), _PYTHON),
    LanguageServer("ruff", ("ruff", "server"), _PYTHON),
    LanguageServer("clangd", ("clangd", "--background-index=false"), _C),
    LanguageServer("gopls", ("gopls",), {".go": "go"}, runs_code=True),
    LanguageServer("rust-analyzer", ("rust-analyzer",), {".rs": "rust"}, runs_code=True),
    LanguageServer("typescript-language-server", ("typescript-language-server", "--stdio"), _SCRIPTS, runs_code=True),
)
SERVER_NAMES = tuple(each.name for each in LANGUAGE_SERVERS)


class Severity(StrEnum):
    """Severity of a diagnostic. Hints and information are left out."""

    ERROR = "error"
    WARNING = "warning"


class Diagnostic(RecordedValue, frozen=True):
    """A problem that a language server reports; `line` counts from 1, `code` may be empty."""

    path: str
    line: int
    severity: Severity
    message: str
    server: str
    code: str = ""

    @property
    def text(self) -> str:
        """The diagnostic as one line."""
        by = f"{self.server} {self.code}" if self.code else self.server
        return f"{self.path}:{self.line}: {self.severity}: {self.message} ({by})"


def permitted_servers(names: Collection[str], *, checked: bool, foreign: bool, commands: Collection[str]) -> set[str]:
    """Return the servers that a task may use, of the `names` in the settings.

    `checked`: checks of the task ran, so the repository's own code was already let run. A task that is not the user's
    own (`foreign`) uses only a server whose command line is one of the `commands` that local rules name.
    """
    return {
        each.name
        for each in LANGUAGE_SERVERS
        if each.name in names and (checked or not each.runs_code) and (not foreign or each.line in commands)
    }


def new_diagnostics(
    before: Sequence[Diagnostic], after: Sequence[Diagnostic], old: Mapping[str, str], new: Mapping[str, str]
) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of `after` that `before` lacks, wherever their lines moved; errors first.

    `old` and `new` are the texts of the files. Of equal diagnostics those on changed lines are the new ones.
    """
    were = Counter(map(_kind, before))
    lines = Counter((_kind(each), _line(each, old)) for each in before)
    groups: dict[tuple[str, ...], list[Diagnostic]] = defaultdict(list)
    for each in after:
        groups[_kind(each)].append(each)
    found: list[Diagnostic] = []
    for kind, group in groups.items():
        changed, moved = list[Diagnostic](), list[Diagnostic]()
        for each in group:
            left = lines[kind, _line(each, new)]
            lines[kind, _line(each, new)] = max(0, left - 1)
            (moved if left else changed).append(each)
        found += [*changed, *moved][: max(0, len(group) - were[kind])]
    return in_order(found)


def in_order(found: Collection[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return diagnostics without repetition, errors first, then by their place."""
    return tuple(sorted(dict.fromkeys(found), key=lambda each: (each.severity, each.path, each.line, each.message)))


def _kind(found: Diagnostic) -> tuple[str, ...]:
    """Return what identifies a diagnostic when lines move: its message may name lines too."""
    return found.path, found.severity, found.server, found.code, _NUMBER.sub("#", found.message)


def _line(found: Diagnostic, texts: Mapping[str, str]) -> str:
    lines = texts.get(found.path, "").split("\n")
    return lines[found.line - 1].strip() if found.line <= len(lines) else ""


def describe_diagnostics(found: Sequence[Diagnostic]) -> str:
    """Return the text about new diagnostics for the model, empty without any. One server alone speaks about a line."""
    first: dict[tuple[str, int], str] = {}
    told = [each for each in found if first.setdefault((each.path, each.line), each.server) == each.server]
    more = [f"and {len(told) - TOLD_DIAGNOSTICS} more"] if len(told) > TOLD_DIAGNOSTICS else []
    lines = [each.text for each in told[:TOLD_DIAGNOSTICS]]
    return "\n".join(["New diagnostics in the changed files:", *lines, *more]) if found else ""
