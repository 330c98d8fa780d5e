"""The built-in tools as a model reads them: what version 0.1 recorded by name alone reads the same to the byte."""

from hashlib import sha256

from agent_workbench.core.proposal_kinds import KINDS
from agent_workbench.core.settings import ALL_TOOLS, Approvals, Permission
from agent_workbench.core.tools.spec import spec_problem, unheld
from agent_workbench.core.tools.specs_of_0_1 import specs_of_0_1
from agent_workbench.engine.answer.grammar import step_grammar
from agent_workbench.engine.prompt.prompt_text import VERSION, rules
from agent_workbench.engine.tools.registry import builtin_specs

# SHA-256 of what version 0.1 made of the same tools.
RULES = "4d81d5462a86bb4bfc174aefadb489920514773a83d0c4cce2762804adc5537e"
GRAMMAR = "1854c1677609e3839c8e4e51f2e17b17d9760768b61e97accb2bbfe9d2f6a223"
WITH_CHOICES = "26ac6ee3bdb18c8eb6c505ff15a21b1a974f656290b3e1c356d8365ca1eea348"


def sha(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def test_the_specs_of_0_1_are_those_of_the_tools_as_long_as_their_words_are() -> None:
    # Where a tool gets other words, its former ones stay in `specs_of_0_1`, and VERSION tells the two apart.
    assert VERSION > 1 or specs_of_0_1(ALL_TOOLS) == builtin_specs(ALL_TOOLS)
    assert specs_of_0_1(("finish", "commit", "nonsense", "run_tests")) == builtin_specs(("finish", "run_tests"))


def test_the_prompt_of_built_in_tools_is_that_of_0_1() -> None:
    assert sha(rules(specs_of_0_1(ALL_TOOLS), 1)) == RULES


def test_the_grammar_of_built_in_tools_is_that_of_0_1() -> None:
    specs = specs_of_0_1(ALL_TOOLS)
    paths = ("a.py", "ab\u200b.py", "größe.md")
    assert sha(step_grammar(specs, ('diff ::= "x"',))) == GRAMMAR
    assert sha(step_grammar(specs, (), {"read_file": {"path": paths}, "grep": {}})) == WITH_CHOICES


def test_a_grammar_holds_the_built_in_tools_in_full() -> None:
    assert [spec.name for spec in builtin_specs(ALL_TOOLS) if unheld(spec)] == []


def test_no_source_can_bring_a_built_in_tool() -> None:
    assert all(spec_problem(spec) == "its source is called 'builtin'" for spec in builtin_specs(ALL_TOOLS))


def test_every_permission_has_its_facts_and_its_setting() -> None:
    assert set(KINDS) == set(Permission)
    assert all(facts.kind is kind and facts.plural for kind, facts in KINDS.items())
    assert {kind: Approvals().of(kind) for kind in Permission}.keys() == KINDS.keys()
