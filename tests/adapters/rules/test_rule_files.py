"""Rules in files: nothing else of a file changes, and a rule counts only where its file is trusted."""

import asyncio
import re
from functools import partial
from pathlib import Path

import pytest

from agent_workbench.adapters.journal.redaction import Redactor
from agent_workbench.adapters.journal.session_list import past_actions
from agent_workbench.adapters.journal.writer import JournalWriter
from agent_workbench.adapters.rules import REPO_KEYS, RuleFiles, rules_at, with_rule, without_rule
from agent_workbench.config.settings_loader import load_settings
from agent_workbench.config.trust_question import trust_question, without_untrusted
from agent_workbench.config.trust_store import RuleTrust, TrustStore
from agent_workbench.config.yaml_parser import compose_text
from agent_workbench.core.approval_rules import RuleScope, StoredRule
from agent_workbench.core.errors import ConfigError, TrustError
from agent_workbench.core.events import ActionDecided, ActionProposed, SessionStarted
from agent_workbench.core.history.past_actions import PastActions
from agent_workbench.core.ids import CommitId, ProposalId, SessionId
from agent_workbench.core.proposal_kinds import DiffProposal
from agent_workbench.core.proposals import Verdict
from agent_workbench.core.settings import Permission, Rule
from agent_workbench.core.yaml_documents import DocumentError

GREP = Rule(Permission.READ, tool="grep")
CHECKS = Rule(Permission.CHECK, any=True)
ODD = Rule(Permission.COMMAND, commands=("yes: # 'no' \"x\" \\ \t é",))
COMMENTS = """\
# mine
test_command: pytest -q  # fast
{}
# Where a task ends.
limits: {{command_seconds: 3}}
"""


def added(text: str, rule: Rule) -> str:
    return with_rule(text, REPO_KEYS, rule, compose_text)


LINE = '- {kind: read, tool: "grep"}'
FIRST = f"approvals:\n  rules:\n    {LINE}\n"
BLOCK = "approvals:\n  rules:\n  - kind: check # each\n    any: true # of them\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", FIRST),
        ("# only words", f"# only words\n{FIRST}"),
        (
            COMMENTS.format("approvals:\n    diff: ask # really\n"),
            COMMENTS.format(f"approvals:\n    rules:\n      {LINE}\n    diff: ask # really\n"),
        ),
        (COMMENTS.format(f"{BLOCK}  # the end\n"), COMMENTS.format(f"{BLOCK}  {LINE}\n  # the end\n")),
        ("python: a\r\n", f"python: a\n{FIRST}".replace("\n", "\r\n")),
    ],
)
def test_a_rule_is_added_in_place_and_taken_out_again(before: str, after: str) -> None:
    assert added(before, GREP) == after
    assert added(after, GREP) == after
    end = "\r\n" if "\r" in after else "\n"
    assert without_rule(after, REPO_KEYS, GREP, compose_text).split(end) == [
        line for line in after.split(end) if LINE not in line
    ]


RULE = '{kind: read, tool: "grep"}'


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("approvals: {diff: ask}  # c\n", "approvals: {diff: ask, rules: [%]}  # c\n"),
        ("approvals: {} # c\n", "approvals: {rules: [%]} # c\n"),
        (
            "approvals: {rules: [{kind: check, any: true}]} # c\n",
            "approvals: {rules: [{kind: check, any: true}, %]} # c\n",
        ),
        ("# first\napprovals:\n  rules: [] # c\n# last\n", "# first\napprovals:\n  rules: [%] # c\n# last\n"),
        ("approvals: # c\n# last\n", "approvals: {rules: [%]} # c\n# last\n"),
        ("approvals: ~ # c\n", "approvals: {rules: [%]} # c\n"),
        ("approvals:\n  rules: # c\n# last\n", "approvals:\n  rules: [%] # c\n# last\n"),
        ("{test_command: a} # c\n", "{test_command: a, approvals: {rules: [%]}} # c\n"),
        ("# first\r\n---\r\napprovals:\r\n  rules: # c\r\n", "# first\r\n---\r\napprovals:\r\n  rules: [%] # c\r\n"),
        ("--- # c\n# last\n", "--- # c\n# last\napprovals:\n  rules:\n    - %\n"),
        (
            "approvals:\n  rules:\n  -   {kind: check, any: true} # c\n",
            "approvals:\n  rules:\n  -   {kind: check, any: true} # c\n  - %\n",
        ),
        ("python: a\n... # end\n", "python: a\napprovals:\n  rules:\n    - %\n... # end\n"),
        (
            "approvals: {rules: [\n  # each\n  {kind: check, any: true}, # c\n]}\n",
            "approvals: {rules: [\n  # each\n  {kind: check, any: true}, %, # c\n]}\n",
        ),
    ],
)
def test_an_odd_spelling_is_changed_in_place(text: str, after: str) -> None:
    whole = after.replace("%", RULE)
    assert added(text, GREP) == whole
    assert rules_at(added(text, ODD), REPO_KEYS, compose_text)[-1] == ODD
    assert without_rule(whole, REPO_KEYS, GREP, compose_text) == re.sub(r" *- %\n|, %|%", "", after)


CHECK = "{kind: check, any: true}"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"[\n  {CHECK}, # mine\n  %,\n]", f"[\n  {CHECK}, # mine\n]"),
        (f"[\n  {CHECK}, # mine\n  %\n  # end\n]", f"[\n  {CHECK}, # mine\n  # end\n]"),
        (f"[\n  %,\n  # mine\n  {CHECK}\n]", f"[\n  # mine\n  {CHECK}\n]"),
        (f"[%, # of it\n  %, {CHECK}, %]", f"[# of it\n  {CHECK}]"),
        (f"[\n  %\n  , # mine\n  {CHECK}]", f"[\n  # mine\n  {CHECK}]"),
        (f"[{CHECK} # mine\n  , %, %]", f"[{CHECK} # mine\n  , ]"),
    ],
)
def test_the_comments_of_other_rules_stay_when_one_is_taken_out(text: str, left: str) -> None:
    whole = f"approvals:\n  rules: {text}\n".replace("%", RULE)
    assert without_rule(whole, REPO_KEYS, GREP, compose_text) == f"approvals:\n  rules: {left}\n"


def test_a_rule_that_stands_there_often_is_taken_out_everywhere() -> None:
    text = f"approvals:\n  rules:\n    - {CHECK}\n" + f"    {LINE}\n" * 2_000
    assert without_rule(text, REPO_KEYS, GREP, compose_text) == f"approvals:\n  rules:\n    - {CHECK}\n"


def test_a_rule_in_brackets_goes_with_its_comma() -> None:
    text = f"approvals: {{rules: [{RULE}, {{kind: check, any: true}}, {RULE.replace('grep', 'x')}]}} # c\n"
    without = without_rule(text, REPO_KEYS, GREP, compose_text)
    assert without == text.replace(f"{RULE}, ", "")
    assert without_rule(without, REPO_KEYS, CHECKS, compose_text) == without.replace("{kind: check, any: true}, ", "")


@pytest.mark.parametrize("rule", [ODD, Rule(Permission.DIFF, paths=("src/[[]a]/**", "*.py")), CHECKS])
def test_what_is_written_reads_back(rule: Rule) -> None:
    assert rules_at(added("", rule), REPO_KEYS, compose_text) == (rule,)


def test_what_cannot_be_written_is_refused_and_nothing_is_lost() -> None:
    with pytest.raises(ConfigError, match="could not be written"):
        added("", Rule(Permission.COMMAND, commands=("a\x07b",)))
    with pytest.raises(DocumentError):
        added("approvals: {rules: [{kind: all}]}", GREP)


class Place:
    """A repo, the user's folders, and the rules of both."""

    def __init__(self, folder: Path, settings: str) -> None:
        self.root, self.own = folder / "repo", folder / "config"
        self.root.mkdir(parents=True)
        self.file = self.root / ".agent.yml"
        self.file.write_text(settings)
        self.store = TrustStore(folder / "state")
        trust = RuleTrust(self.root, partial(load_settings, self.root, {}, {}), self.store)
        self.book = RuleFiles(self.root, self.own, compose_text, trust.change, lambda _: PastActions())

    @property
    def trusted(self) -> bool:
        return self.store.is_trusted(self.root, trust_question(self.root, load_settings(self.root, {}, {})))

    def trust(self) -> "Place":
        self.store.trust(self.root, trust_question(self.root, load_settings(self.root, {}, {})))
        return self


def test_a_rule_of_the_repo_is_trusted_with_what_was_trusted(tmp_path: Path) -> None:
    place = Place(tmp_path, "test_command: pytest # fast\n").trust()
    asyncio.run(place.book.keep(StoredRule(GREP, RuleScope.REPO)))
    assert place.trusted
    loaded = load_settings(place.root, {}, {})
    assert loaded.settings.approvals.rules == (GREP,)
    assert without_untrusted(loaded).settings.approvals.rules == ()
    assert "# fast" in place.file.read_text()
    asyncio.run(place.book.revoke(StoredRule(GREP, RuleScope.REPO)))
    assert place.trusted
    assert load_settings(place.root, {}, {}).settings.approvals.rules == ()


def test_a_repo_that_is_not_trusted_as_it_stands_gets_no_rule(tmp_path: Path) -> None:
    place = Place(tmp_path, "test_command: pytest\n").trust()
    place.file.write_text("test_command: rm -rf /\n")
    with pytest.raises(TrustError, match="not trusted in its present form"):
        asyncio.run(place.book.keep(StoredRule(GREP, RuleScope.REPO)))
    assert place.file.read_text() == "test_command: rm -rf /\n"


@pytest.mark.parametrize(
    "written", ["test_command: rm\n", "test_command: pytest\napprovals: {rules: [{kind: check, any: true}]}\n"]
)
def test_what_else_changes_meanwhile_is_not_trusted(tmp_path: Path, written: str) -> None:
    place = Place(tmp_path, "test_command: pytest\n").trust()

    def write() -> None:
        place.file.write_text(written)

    with pytest.raises(TrustError, match="changes besides the rule"):
        RuleTrust(place.root, partial(load_settings, place.root, {}, {}), place.store).change(GREP, True, write)
    assert not place.trusted


def test_rules_that_the_repo_brings_have_to_be_trusted(tmp_path: Path) -> None:
    place = Place(tmp_path, "approvals: {rules: [{kind: command, program: make}]}\n")
    (line,) = trust_question(place.root, load_settings(place.root, {}, {})).lines
    assert "command make with any arguments" in line
    assert not place.trusted


@pytest.mark.parametrize("rule", ["{kind: command, program: bash}", "{kind: merge, any: true}", "{kind: check}"])
def test_a_rule_that_is_none_is_refused_where_it_stands(tmp_path: Path, rule: str) -> None:
    place = Place(tmp_path, f"approvals:\n  rules:\n    - {rule}\n")
    with pytest.raises(ConfigError, match=r"\.agent\.yml:3"):
        load_settings(place.root, {}, {})


def test_own_rules_count_here_or_everywhere(tmp_path: Path) -> None:
    here, there = Place(tmp_path / "a", ""), Place(tmp_path / "b", "")
    there.book._own_folder = here.own
    assert asyncio.run(here.book.kept()) == ()
    asyncio.run(here.book.keep(StoredRule(GREP, RuleScope.USER)))
    asyncio.run(there.book.keep(StoredRule(CHECKS, RuleScope.EVERYWHERE)))
    assert asyncio.run(here.book.kept()) == (StoredRule(GREP, RuleScope.USER), StoredRule(CHECKS, RuleScope.EVERYWHERE))
    assert asyncio.run(there.book.kept()) == (StoredRule(CHECKS, RuleScope.EVERYWHERE),)
    asyncio.run(there.book.revoke(StoredRule(CHECKS, RuleScope.EVERYWHERE)))
    assert asyncio.run(here.book.kept()) == (StoredRule(GREP, RuleScope.USER),)
    file = here.own / "rules.yaml"
    assert file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o666)
    with pytest.raises(TrustError, match="written by others"):
        asyncio.run(here.book.kept())
    file.chmod(0o600)
    file.write_text("everywhere:\n  - {kind: command, program: sh}\n")
    with pytest.raises(ConfigError, match="may not be allowed"):
        asyncio.run(here.book.kept())
    for repo in ("~/shop", "shop", "/home/mia/shop/", "/home/../shop"):
        file.write_text(f"repos:\n  {repo}: []\n")
        with pytest.raises(ConfigError, match=r"rules\.yaml:2:3: repos: expected the absolute path of a repo"):
            asyncio.run(here.book.kept())
    file.write_text("- {kind: check, any: true}\n")
    with pytest.raises(ConfigError, match="expected a mapping"):
        asyncio.run(here.book.kept())
    file.write_text("everywere: []\n")
    with pytest.raises(ConfigError, match="everywere"):
        asyncio.run(here.book.kept())


async def written(session: Path, parent: SessionId | None = None, copied: int | None = None) -> None:
    proposal = DiffProposal(ProposalId("P-1"), "write_diff", "x" * 9000, 1, diff="y" * 9000, paths=("a",))
    writer = await asyncio.to_thread(JournalWriter.open_new, session, Redactor({}))
    await writer.append(0, "t", SessionStarted(SessionId(session.name), "r", CommitId("c"), "0", parent, copied))
    await writer.append(1, "t", ActionProposed(proposal))
    await writer.append(2, "t", ActionDecided(proposal.id, Verdict.APPROVE, "user"))
    await writer.close()


def test_past_actions_are_read_from_all_journals_that_can_be(tmp_path: Path) -> None:
    for day in ("01", "02"):
        asyncio.run(written(tmp_path / f"202601{day}T030405-abc234"))
    (tmp_path / "20260103T030405-abc234").mkdir()
    asyncio.run(written(tmp_path / "20260104T030405-abc234", SessionId("20260101T030405-abc234"), 2))
    asyncio.run(written(tmp_path / "20260105T030405-abc234", SessionId("20260101T030405-abc234"), 1))
    past = past_actions(tmp_path, Permission.DIFF)
    assert [each.session[:8] for each in past.actions] == ["20260105", "20260102", "20260101"], "a fork's own alone"
    assert {(each.proposal.paths, each.verdict) for each in past.actions} == {(("a",), Verdict.APPROVE)}
    assert past_actions(tmp_path, Permission.COMMAND).actions == ()
