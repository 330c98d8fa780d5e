"""A text's tokens as a server tells them, and the grammar that says exactly these."""

import pytest

from agent_workbench.adapters.llama_cpp.gbnf import tokens_grammar
from agent_workbench.adapters.llama_cpp.token_counts import Token
from agent_workbench.core.errors import UsageError
from tests.llama_fixtures import LlamaServer


@pytest.mark.parametrize("text", ["Thought: so", "é 😀 ✓", "  two\n\n\ttabs\r\n", "<|im_end|> [12] <[3]>"])
async def test_the_tokens_of_a_text_are_its_bytes(llama_server: LlamaServer, text: str) -> None:
    model = llama_server.model()
    tokens = await model.tokens_of(text)
    counted = await model.count_tokens([text])
    await model.close()
    assert b"".join(token.data for token in tokens) == text.encode()
    assert (len(tokens),) == counted


def test_whole_characters_are_said_by_their_token_and_parts_of_them_as_text() -> None:
    tokens = (Token(7, b"ab"), Token(1, b"\xc3"), Token(2, b"\xa9"), Token(3, " ✓".encode()))
    assert tokens_grammar(tokens) == 'root ::= <[7]> "é" <[3]>\n'


def test_tokens_that_end_within_a_character_are_refused() -> None:
    with pytest.raises(UsageError, match="end within a character"):
        tokens_grammar((Token(1, b"a"), Token(2, b"\xc3")))
