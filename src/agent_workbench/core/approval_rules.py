"""Approval rules and modes: what they allow, their text, those offered for a proposal; and tasks of others."""

import re
import shlex
from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType

from msgspec import Struct

from agent_workbench.core.errors import PatchError
from agent_workbench.core.ids import ProposalId
from agent_workbench.core.patch.paths import check_path, literal_glob, matches_glob
from agent_workbench.core.plan import Task, TaskOrigin
from agent_workbench.core.proposals import KINDS, POLICY, Proposal
from agent_workbench.core.recorded_value import RecordedValue
from agent_workbench.core.settings import ALL_TOOLS, TOOL_ALIASES, ApprovalMode, Permission, Rule, tool_name
from agent_workbench.core.text.amounts import did_you_mean, quoted

EVERY_FILE = "**"
_SOURCE_TOOL = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,59}@(?P<digest>[0-9a-f]+)", re.ASCII)
RULE_FIELDS = ("any", "commands", "program", "paths", "tool")
_PROGRAM = re.compile(r"(?!-)/?[A-Za-z0-9_.+-]+(?:/[A-Za-z0-9_.+-]+)*", re.ASCII)
# Characters with which a shell does more than run one program; in quotes too, because shells differ.
_MORE_THAN_WORDS = re.compile(r"[;&|<>()$`\\!{}]")
# Linux starts no longer one, and the time to split a line into words grows with its square.
_LONGEST_LINE = 131_071
# Programs that execute their arguments: a rule for any arguments would allow any command.
_RUNS_ANYTHING = re.compile(
    r"(?:ba|da|a|k|z|c|tc|fi|pw|rba|mk|ya)?sh[-0-9.]*|busybox|toybox|env|sudo|doas|su|runuser|pkexec|xargs|parallel"
    r"|exec|eval|command|builtin|source|\.|trap|coproc|if|then|else|elif|while|until|for|case|do|select|function"
    r"|nohup|time|timeout|nice|ionice|setsid|stdbuf|watch|script|flock|strace|ltrace|chroot|unshare|nsenter|taskset|chrt"
    r"|ssh|find|[gm]?awk|npx|pnpx|bunx|uvx"
    r"|(?:i?python|pypy|perl|ruby|node|nodejs|deno|bun|php|lua|tclsh|expect|osascript|rscript)[-0-9.]*",
    re.ASCII,
)

_EDITS = (Rule(Permission.DIFF, paths=(EVERY_FILE,)),)
_TO_THE_COMMIT = tuple(Rule(kind, any=True) for kind in (Permission.CHECK, Permission.SUMMARY, Permission.COMMIT))
MODE_RULES: Mapping[ApprovalMode, tuple[Rule, ...]] = MappingProxyType(
    {
        ApprovalMode.ASK: (),
        ApprovalMode.ACCEPT_EDITS: _EDITS,
        ApprovalMode.ACCEPT_UNTIL_DONE: (*_EDITS, *_TO_THE_COMMIT),
    }
)
"""Rules of each mode. As any rule, they never approve a diff with special files."""


def rule_problem(rule: Rule) -> str:
    """Return why a rule is invalid and allows nothing; empty if it is valid."""
    facts = KINDS[rule.kind]
    fits = facts.rule_fields
    said = [name for name in RULE_FIELDS if getattr(rule, name)]
    if not fits:
        return f"no rule can allow a {rule.kind}"
    if len(said) != 1 or said[0] not in fits:
        return f"a rule for {rule.kind} needs {' or '.join(fits)}, and nothing else"
    if not all(line.strip() for line in rule.commands):
        return "a command is empty"
    if rule.tool and facts.calls:
        advice = f"a rule for {rule.kind} names the tool as NAME@DIGEST, as `A` at the gate writes it"
        named = _SOURCE_TOOL.fullmatch(rule.tool)
        return "" if named and len(named["digest"]) == facts.digest_chars else advice
    if rule.tool and tool_name(rule.tool) not in ALL_TOOLS:
        return f"there is no tool {quoted(rule.tool)}{did_you_mean(rule.tool, (*ALL_TOOLS, *TOOL_ALIASES))}"
    if rule.program and not _may_take_anything(rule.program):
        return f"{rule.program!r} may not be allowed with any arguments; name the whole command instead"
    return next(filter(None, map(_path_fault, rule.paths)), "")


def rule_allows(rule: Rule, proposal: Proposal) -> bool:
    """Return True if the rule matches the whole proposal. It never allows one with `special` paths."""
    if rule.kind is not proposal.kind or rule_problem(rule):
        return False
    lines = proposal.rule_lines
    if rule.tool:
        return tool_name(rule.tool) == proposal.rule_tool
    if rule.paths:
        touched = proposal.paths
        return bool(touched) and not proposal.special and all(_is_touchable(path, rule.paths) for path in touched)
    if rule.program:
        return runs_only(proposal.text, rule.program)
    if rule.commands:
        return bool(lines) and set(lines) <= set(rule.commands)
    return bool(lines) or "commands" not in proposal.rule_fields


def extends(line: str, known: str) -> bool:
    """Return True if a shell runs for `line` what it runs for `known`, with more arguments."""
    plain = line.isprintable() and not _MORE_THAN_WORDS.search(line)
    return line == known or (plain and " " in known and line.startswith(f"{known} "))


def runs_only(line: str, program: str) -> bool:
    """Return True if a shell runs only `program` with some arguments for `line`."""
    if not program or not line.isprintable() or _MORE_THAN_WORDS.search(line) or not _may_take_anything(program):
        return False
    if len(line) > _LONGEST_LINE or (line != program and not line.startswith(f"{program} ")):
        return False
    try:
        return shlex.split(line)[0] == program
    except ValueError:  # an unclosed quote
        return False


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


def offered_rules(proposal: Proposal) -> tuple[Rule, ...]:
    """Return the rules that would allow this proposal, narrowest first; none if a person must decide."""
    return tuple(dict.fromkeys(rule for rule in _candidates(proposal) if rule_allows(rule, proposal)))


def is_wide(rule: Rule) -> bool:
    """Return True if a rule allows more than anyone can foresee."""
    return bool(rule.program) or EVERY_FILE in rule.paths


def _candidates(proposal: Proposal) -> Iterator[Rule]:
    kind, paths = proposal.kind, proposal.paths
    for field in proposal.rule_fields:
        match field:
            case "tool":
                yield Rule(kind, tool=proposal.rule_tool)
            case "paths":
                yield Rule(kind, paths=tuple(map(literal_glob, paths)))
                yield Rule(kind, paths=tuple(dict.fromkeys(map(_folder, paths))))
                yield Rule(kind, paths=(EVERY_FILE,))
            case "commands":
                yield Rule(kind, commands=proposal.rule_lines)
            case "program":
                yield Rule(kind, program=proposal.text.split(" ", 1)[0])
            case "any":
                yield Rule(kind, any=True)


def _folder(path: str) -> str:
    """Return the glob of a file's folder; the file itself if it is at the top."""
    above = path.rpartition("/")[0]
    return f"{literal_glob(above)}/**" if above else literal_glob(path)


def rule_words(rule: Rule) -> str:
    """Return the text of a rule, as decisions and lists show it."""
    if rule.tool:
        return f"{KINDS[rule.kind].tool_words} {rule.tool}"
    if rule.paths:
        return "diff of any file" if EVERY_FILE in rule.paths else f"diff of {' '.join(map(_plain, rule.paths))}"
    if rule.commands:
        return f"{rule.kind} {'; '.join(rule.commands)}"
    return f"{rule.kind} {rule.program} with any arguments" if rule.program else f"any {rule.kind}"


def decided_by(rule: Rule) -> str:
    """Return the value of a decision's `by` for a rule."""
    return f"{POLICY}{rule_words(rule)}"


def _plain(glob: str) -> str:
    return re.sub(r"\[([*?[])\]", r"\1", glob)


class RuleScope(StrEnum):
    """Scope of a rule: the session, the repo's settings, the user's rules for the repo, or those for all repos."""

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


class ActiveMode(Struct, frozen=True):
    """Mode in force. `kept` is the scope of its rules: all repos for the start mode of the user's own settings.

    `spared` is a proposal that waited when the mode was entered, and that the user decides.
    """

    mode: ApprovalMode = ApprovalMode.ASK
    kept: RuleScope = RuleScope.SESSION
    spared: ProposalId | None = None

    def rules_for(self, proposal: Proposal) -> tuple[StoredRule, ...]:
        """Return the rules of the mode that count for this proposal."""
        if proposal.id == self.spared:
            return ()
        return tuple(StoredRule(rule, self.kept) for rule in MODE_RULES[self.mode])


def mode_label(mode: ApprovalMode) -> str:
    """Return the mode as the screen shows it."""
    return mode.value.replace("_", " ")


def decided_in(mode: ApprovalMode) -> str:
    """Return the value of a decision's `by` for a mode."""
    return f"{POLICY}mode {mode_label(mode)}"


def next_mode(mode: ApprovalMode) -> ApprovalMode:
    """Return the mode after this one; the first after the last."""
    order = tuple(ApprovalMode)
    return order[(order.index(mode) + 1) % len(order)]


def is_foreign(task: Task | None) -> bool:
    """Return True for a task from a forge, an MCP client, a database, or a file that came with the repository."""
    return task is not None and task.origin is not TaskOrigin.LOCAL


def own_commands(proposal: Proposal, configured: Collection[str]) -> tuple[str, ...]:
    """Return the commands of a proposal that are none of the `configured` ones (tests and lint of the settings)."""
    return tuple(line for line in proposal.commands if line not in configured)


def local_person_reason(proposal: Proposal, task: Task | None, configured: Collection[str]) -> str:
    """Return why only a person at this machine may approve a proposal, empty if a forge's allowed user may too.

    `configured` are the tests and lint of the settings, `task` the one that is worked on (None: a plan or a chat).
    """
    if proposal.local_only:
        return proposal.local_only
    if proposal.special:
        return f"these are approved at this machine: {', '.join(proposal.special)}"
    if not is_foreign(task) or not proposal.runs_commands:
        return ""
    if proposal.kind is Permission.CHECK and not own_commands(proposal, configured):
        return ""
    return "commands of a task that came from elsewhere are approved at this machine"
