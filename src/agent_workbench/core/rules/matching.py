"""Approval rules: their validity, the proposals they allow, and the rules that a proposal offers."""

import re
import shlex
from enum import StrEnum
from typing import assert_never

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.globs import literal_glob, matches_glob
from agent_workbench.core.patch.paths import check_path
from agent_workbench.core.proposals import POLICY, Proposal
from agent_workbench.core.recorded_value import RecordedValue
from agent_workbench.core.settings import ALL_TOOLS, TOOL_ALIASES, Permission, Rule, tool_name
from agent_workbench.core.text.messages import did_you_mean, quoted

EVERY_FILE = "**"
# Fields of a rule that say what it matches; exactly one is set.
MATTERS: dict[Permission, tuple[str, ...]] = {
    Permission.READ: ("tool",),
    Permission.DIFF: ("paths",),
    Permission.CHECK: ("commands", "any"),
    Permission.COMMAND: ("commands", "program"),
    Permission.COMMIT: ("any",),
    Permission.MERGE: (),
    Permission.SUMMARY: ("any",),
    Permission.FINISH: ("any",),
}
FIELDS = ("any", "commands", "program", "paths", "tool")
_PROGRAM = re.compile(r"(?!-)/?[A-Za-z0-9_.+-]+(?:/[A-Za-z0-9_.+-]+)*", re.ASCII)
# Characters with which a shell does more than run one program; in quotes too, because shells differ.
_MORE_THAN_WORDS = re.compile(r"[;&|<>()$`\\!{}]")
# Programs that execute their arguments: a rule for any arguments would allow any command.
_RUNS_ANYTHING = re.compile(
    r"(?:ba|da|a|k|z|c|tc|fi|pw|rba|mk|ya)?sh[-0-9.]*|busybox|toybox|env|sudo|doas|su|runuser|pkexec|xargs|parallel"
    r"|exec|eval|command|builtin|source|\.|trap|coproc|if|then|else|elif|while|until|for|case|do|select|function"
    r"|nohup|time|timeout|nice|ionice|setsid|stdbuf|watch|script|flock|strace|ltrace|chroot|unshare|nsenter|taskset|chrt"
    r"|ssh|find|[gm]?awk|npx|pnpx|bunx|uvx"
    r"|(?:i?python|pypy|perl|ruby|node|nodejs|deno|bun|php|lua|tclsh|expect|osascript|rscript)[-0-9.]*",
    re.ASCII,
)


class RuleScope(StrEnum):
    """Where a rule is stored: in the session, the repo's settings, the user's rules for the repo, or for all repos."""

    SESSION = "session"
    REPO = "repo"
    USER = "user"
    EVERYWHERE = "all repos"


RULE_SCOPE_LABELS = {
    RuleScope.SESSION: "this session",
    RuleScope.REPO: "this repo",
    RuleScope.USER: "you, here",
    RuleScope.EVERYWHERE: "you, everywhere",
}


class StoredRule(RecordedValue, frozen=True):
    """A rule that is in force, and where it is stored."""

    rule: Rule
    kept: RuleScope


def rule_problem(rule: Rule) -> str:
    """Return why a rule is invalid and allows nothing; empty if it is valid."""
    fits = MATTERS[rule.kind]
    said = [name for name in FIELDS if getattr(rule, name)]
    if not fits:
        return f"a {rule.kind} is never let through by a rule"
    if len(said) != 1 or said[0] not in fits:
        return f"a rule for {rule.kind} needs {' or '.join(fits)}, and nothing else"
    if not all(line.strip() for line in rule.commands):
        return "a command is empty"
    if rule.tool and tool_name(rule.tool) not in ALL_TOOLS:
        return f"there is no tool {quoted(rule.tool)}{did_you_mean(rule.tool, (*ALL_TOOLS, *TOOL_ALIASES))}"
    if rule.program and not _may_take_anything(rule.program):
        return f"{rule.program!r} is no program that may run with any arguments; say the whole command instead"
    return next(filter(None, map(_path_fault, rule.paths)), "")


def rule_allows(rule: Rule, proposal: Proposal) -> bool:
    """Return True if the rule matches the whole proposal. It never allows one with `special` paths."""
    if rule.kind is not proposal.kind or rule_problem(rule):
        return False
    match rule.kind:
        case Permission.READ:
            return tool_name(rule.tool) == proposal.tool
        case Permission.DIFF:
            touched = proposal.paths
            return bool(touched) and not proposal.special and all(_is_touchable(path, rule.paths) for path in touched)
        case Permission.CHECK:
            lines = proposal.commands
            return bool(lines) and (rule.any or set(lines) <= set(rule.commands))
        case Permission.COMMAND:
            return proposal.text in rule.commands or runs_only(proposal.text, rule.program)
        case Permission.COMMIT | Permission.SUMMARY | Permission.FINISH:
            return rule.any
        case Permission.MERGE:
            return False
    assert_never(rule.kind)


def offered_rules(proposal: Proposal) -> tuple[Rule, ...]:
    """Return the rules that would allow this proposal, narrowest first; none if a person must decide."""
    return tuple(dict.fromkeys(rule for rule in _thinkable(proposal) if rule_allows(rule, proposal)))


def is_wide(rule: Rule) -> bool:
    """Return True if a rule allows more than anyone can foresee."""
    return bool(rule.program) or EVERY_FILE in rule.paths


def rule_words(rule: Rule) -> str:
    """Return the text of a rule, as decisions and lists show it."""
    match rule.kind:
        case Permission.READ:
            return f"tool {rule.tool}"
        case Permission.DIFF:
            return "diff of any file" if EVERY_FILE in rule.paths else f"diff of {' '.join(map(_plain, rule.paths))}"
        case Permission.CHECK if rule.commands:
            return f"check {'; '.join(rule.commands)}"
        case Permission.COMMAND if rule.program:
            return f"command {rule.program} with any arguments"
        case Permission.COMMAND if rule.commands:
            return f"command {'; '.join(rule.commands)}"
        case _:
            return f"any {rule.kind}"


def decided_by(rule: Rule) -> str:
    """Return the value of a decision's `by` for a rule."""
    return f"{POLICY}{rule_words(rule)}"


def runs_only(line: str, program: str) -> bool:
    """Return True if a shell runs only `program` with some arguments for `line`."""
    if not program or not line.isprintable() or _MORE_THAN_WORDS.search(line) or not _may_take_anything(program):
        return False
    if line != program and not line.startswith(f"{program} "):
        return False
    try:
        return shlex.split(line)[0] == program
    except ValueError:  # an unclosed quote
        return False


def _thinkable(proposal: Proposal) -> tuple[Rule, ...]:
    kind = proposal.kind
    match kind:
        case Permission.READ:
            return (Rule(kind, tool=proposal.tool),)
        case Permission.DIFF:
            exactly = tuple(map(literal_glob, proposal.paths))
            folders = tuple(dict.fromkeys(map(_folder, proposal.paths)))
            return Rule(kind, paths=exactly), Rule(kind, paths=folders), Rule(kind, paths=(EVERY_FILE,))
        case Permission.CHECK:
            return Rule(kind, commands=proposal.commands), Rule(kind, any=True)
        case Permission.COMMAND:
            first = proposal.text.split(" ", 1)[0]
            return Rule(kind, commands=(proposal.text,)), Rule(kind, program=first)
        case Permission.COMMIT | Permission.SUMMARY | Permission.FINISH:
            return (Rule(kind, any=True),)
        case Permission.MERGE:
            return ()
    assert_never(kind)


def _may_take_anything(program: str) -> bool:
    name = program.rpartition("/")[2]
    return bool(_PROGRAM.fullmatch(program)) and ".." not in program and not _RUNS_ANYTHING.fullmatch(name.lower())


def _is_touchable(path: str, globs: tuple[str, ...]) -> bool:
    return not _path_fault(path) and any(matches_glob(path, each) for each in globs)


def _path_fault(path: str) -> str:
    """Return why no file of the repo can have this path (`..`, absolute, git's folder); empty if one can."""
    try:
        check_path(path)
    except PatchError as error:
        return str(error)
    return ""


def _plain(glob: str) -> str:
    return re.sub(r"\[([*?[])\]", r"\1", glob)


def _folder(path: str) -> str:
    """Return the glob of a file's folder; the file itself if it is at the top."""
    above = path.rpartition("/")[0]
    return f"{literal_glob(above)}/**" if above else literal_glob(path)
