"""Body of a chat completion: OpenAI's fields, those this server supports, and none that it refused before."""

import re
from collections.abc import Collection

from agent_workbench.adapters.llama_cpp.http_client.capabilities import ServerCapabilities
from agent_workbench.adapters.llama_cpp.http_client.gbnf import with_thought
from agent_workbench.adapters.llama_cpp.http_client.server_errors import ServerError
from agent_workbench.core.model import ModelRequest

GRAMMAR = "grammar"
THINKING_BUDGET = "thinking_budget_tokens"
_LONGER_NAME = "max_completion_tokens"
# Fields that a request can do without, in the order in which an error message is searched for them.
_OPTIONAL = (
    GRAMMAR,
    "cache_prompt",
    "return_progress",
    THINKING_BUDGET,
    "min_p",
    "top_k",
    "top_p",
    "temperature",
    "seed",
    "stream_options",
    "max_tokens",
    _LONGER_NAME,
)
_THIS_GRAMMAR = re.compile(
    r"(pars|initiali[sz]|compil|invalid|too (large|long|many|complex)).{0,60}grammar", re.IGNORECASE
)


def request_body(
    request: ModelRequest, known: ServerCapabilities, most_tokens: int, without: Collection[str]
) -> dict[str, object]:
    """Return the body of a chat completion, streamed, without the fields `without`."""
    sampling = request.sampling
    body: dict[str, object] = {
        "messages": [{"role": message.role.value, "content": message.text} for message in request.messages],
        "stream": True,
        "stream_options": {"include_usage": True},
        "seed": request.seed,
        _LONGER_NAME if "max_tokens" in without else "max_tokens": most_tokens,
    }
    if known.model_name:
        body["model"] = known.model_name
    chosen: dict[str, object] = {"temperature": sampling.temperature, "top_p": sampling.top_p}
    own: dict[str, object] = {
        "top_k": sampling.top_k,
        "min_p": sampling.min_p,
        # Of the tokens that an answer may have, its thought gets half at most.
        THINKING_BUDGET: None
        if sampling.thinking_budget_tokens is None
        else min(sampling.thinking_budget_tokens, request.answer_tokens),
        "cache_prompt": not request.exact,
        "return_progress": True,
        GRAMMAR: with_thought(request.grammar, known.thinking) if request.grammar else None,
    }
    chosen |= {name: value for name, value in own.items() if name in known.fields}
    body |= {name: value for name, value in chosen.items() if value is not None}
    return {name: value for name, value in body.items() if name not in without}


def refused_field(fault: ServerError, body: Collection[str]) -> str:
    """Return the optional field that the server refuses by name; empty if it names none."""
    return next((field for field in _OPTIONAL if field in body and fault.blames(field)), "")


def is_grammar_error(fault: ServerError) -> bool:
    """Return True if the server supports grammars and cannot read this one."""
    return bool(_THIS_GRAMMAR.search(fault.message))
