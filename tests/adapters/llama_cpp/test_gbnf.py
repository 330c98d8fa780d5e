from pathlib import Path

from agent_workbench.adapters.llama_cpp.gbnf import Thinking, sentence_grammar, with_prefix, with_thought
from tests.adapters.llama_cpp.answers import ask, collect
from tests.adapters.llama_cpp.grammar_oracle import fits, grammar_oracle
from tests.llama_fixtures import LlamaServer

THOUGHTS = ["", "so", "a < b", "<<", "see </td> and </thead>", "é\n\n", "x<", "<think>again"]
NOT_THOUGHTS = ["a</think>b", "</think>"]

EVERY_KIND = "".join(chr(code) for code in range(1, 0x100)) + '\u2028\ufeff\u200b\u0301\U000e0001😀\\"[]{}\\x41\\n'


async def test_a_server_says_every_kind_of_character(llama_server: LlamaServer) -> None:
    model = llama_server.model()
    got = await collect(model, ask(grammar=sentence_grammar(EVERY_KIND), answer_tokens=2000))
    await model.close()
    assert got.text == EVERY_KIND


async def test_a_server_says_a_long_text(llama_server: LlamaServer) -> None:
    text = "".join(f"+    line {number} of a long diff\n" for number in range(150))
    model = llama_server.model()
    got = await collect(model, ask(grammar=sentence_grammar(text), answer_tokens=7000))
    await model.close()
    assert got.text == text


def test_a_prefix_renames_the_root_and_nothing_else() -> None:
    grammar = 'root ::= "root" [root] root-two # root\nroot-two ::= root? "\\"root"\n'
    assert with_prefix(grammar, '"x"') == (
        'root ::= "x" answer\nanswer ::= "root" [root] root-two # root\nroot-two ::= answer? "\\"root"\n'
    )


def test_a_prefix_takes_a_name_that_is_free() -> None:
    grammar = 'root ::= answer\nanswer ::= answer-x\nanswer-x ::= "a"\n'
    assert with_prefix(grammar, '"x"').startswith('root ::= "x" answer-x-x\nanswer-x-x ::= answer\n')


def test_without_thoughts_a_grammar_stays_as_it_is() -> None:
    assert with_thought('root ::= "a"', Thinking.NONE) == 'root ::= "a"'


async def test_thoughts_may_hold_anything_but_their_end(tmp_path: Path) -> None:
    opened = with_thought('root ::= "yes"', Thinking.OPENED)
    offered = with_thought('root ::= "yes"', Thinking.OFFERED)
    good = [f"{thought}</think>\n\nyes" for thought in THOUGHTS]
    bad = [f"{thought}</think>yes" for thought in NOT_THOUGHTS]
    offers = ["yes", *(f"<think>{text}" for text in good)]
    async with grammar_oracle(tmp_path, [*good, *bad, *offers, "so</think>no"]) as server:
        assert [text for text in good if not await fits(server, opened, text)] == []
        assert [text for text in bad if await fits(server, opened, text)] == []
        assert not await fits(server, opened, "yes")
        assert not await fits(server, opened, "so</think>no")
        assert await fits(server, offered, "yes")
        assert await fits(server, offered, "<think>so</think>\n\nyes")
