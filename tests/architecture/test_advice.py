"""Commands that a message or a page tells the user to run: none may touch more than the paths it is about."""

import ast
import re
from collections.abc import Iterator

from tests.architecture.source_tree import ROOT, Module, expect_none, modules

# Commands that can throw work away, and the only forms in which they may be named. `{…}` is a quoted value.
DESTRUCTIVE = re.compile(
    r"\b(?:git(?: -[^\s`]+)* (?:restore|checkout|reset|clean|stash|prune|gc|rm|filter-branch|update-ref"
    r"|worktree (?:prune|remove|move)|branch (?:-d|-D|-m|-M|-f|--delete|--force)|switch (?:-f|--discard\S*|-C)"
    r"|push (?:[^`;]*)--force(?!-with-lease)|reflog (?:expire|delete)|rebase|read-tree|checkout-index)\b"
    r"|rm -)[^`;&\n]*"
)
ALLOWED = {
    "git --literal-pathspecs restore -- {…}": "files that a failed merge could not restore, by name",
    "rm -- {…}": "files that a failed merge could not remove, by name",
    "rm -rf {…}": "one worktree that git does not know any more",
    "git worktree remove --force {…}": "one worktree",
    "git branch -d {…}": "one branch, which git keeps if it is not merged",
    "git branch -m agent <another name>": "one branch, which is kept under another name",
}
# A pattern of commands that are refused, not advice.
PATTERNS = {"rm -rf", "git push*--force*", "git push.*--force", "git push origin main --force"}
# A value in a command, by a name that paths have.
PATH = re.compile(
    r"(?:[`:&] ?|^(?=rm|mv|chmod))(?:git|rm|mv|chmod|cd) [^`;&{]*\{(?P<value>[^}…]*(?:path|root|tree|folder)[^}]*)\}"
)
COMMAND = re.compile(r"\b(?:git (?:-|[a-z])|rm -|chmod |mv |cd )[^()\n]*")
QUOTED = re.compile(r"(?:shlex\.quote|_quoted)\(.*\)", re.DOTALL)


def _texts(module: Module) -> Iterator[tuple[int, str]]:
    """Yield the strings of a module that are no docstrings, with `{…}` for a quoted value and `{name}` for another."""
    if not any(DESTRUCTIVE.search(each[0]) or "{" in each[0] for each in COMMAND.finditer(module.text)):
        return  # parsing all modules takes seconds
    tree = module.tree
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield node.lineno, "".join(_part(each) for each in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and not {id(node)} & (inside | statements):
            yield node.lineno, node.value


def _part(value: ast.expr) -> str:
    if isinstance(value, ast.FormattedValue):
        shown = ast.unparse(value.value)
        return "{…}" if QUOTED.fullmatch(shown) else f"{{{shown}}}"
    return str(value.value) if isinstance(value, ast.Constant) else ""


def _named() -> Iterator[tuple[str, str]]:
    for module in modules():
        for place, text in _texts(module):
            for found in DESTRUCTIVE.finditer(text):
                yield f"{module.where}:{place}", found[0]
    pages = (*ROOT.glob("docs/**/*.md"), *ROOT.glob("skills/**/*.md"), ROOT / "README.md")
    for page in sorted(each for each in pages if "decisions" not in each.parts):
        for number, line in enumerate(page.read_text(encoding="utf-8").split("\n"), 1):
            for found in DESTRUCTIVE.finditer(line):
                if found[0].startswith("git "):  # pages show `rm` as what is refused, and in scripts
                    yield f"{page.relative_to(ROOT)}:{number}", found[0]


def test_no_advice_runs_over_more_than_the_paths_it_is_about() -> None:
    named = [(where, re.sub(r"\{…\}.*", "{…}", command).strip().rstrip(" .,)\"'#")) for where, command in _named()]
    expect_none(f"{where}: {command}" for where, command in named if command not in {*ALLOWED, *PATTERNS})
    assert {command for _, command in named} >= ALLOWED.keys()


def test_advised_commands_quote_what_they_are_given() -> None:
    """A path with a space, as the state folder of macOS has, would be two paths."""
    expect_none(
        f"{module.where}:{line}: {found['value']}"
        for module in modules()
        for line, text in _texts(module)
        for found in PATH.finditer(text)
    )
