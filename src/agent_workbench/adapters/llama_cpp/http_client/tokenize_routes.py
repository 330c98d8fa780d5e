"""Routes for token counts in different servers, and detection of the one that a server has."""

from http import HTTPStatus

from msgspec import Struct
from msgspec.structs import replace

from agent_workbench.adapters.llama_cpp.http_client.endpoint import Endpoint
from agent_workbench.adapters.llama_cpp.http_client.json_values import JsonObject, list_at, number_at
from agent_workbench.adapters.llama_cpp.http_client.server_errors import model_error

_PROBE = "one two three"


class Tokenizer(Struct, frozen=True):
    """A route for token counts: its path, the key for the text, and further fields.

    `context_tokens` is the context size in its answer (0: none).
    """

    kind: str
    route: str
    text_key: str
    more: tuple[tuple[str, str | bool], ...] = ()
    context_tokens: int = 0

    def body(self, text: str) -> dict[str, object]:
        """Return the request body for `text`."""
        return {self.text_key: text, **dict(self.more)}

    def count(self, said: JsonObject) -> int | None:
        """Return the token count in an answer, None if it has none."""
        if isinstance(said.get("tokens"), list):
            return len(list_at(said, "tokens"))
        return number_at(said, "count") if "count" in said else None


LLAMA_CPP = Tokenizer("llama.cpp", "/tokenize", "content")
VLLM = Tokenizer("vLLM", "/tokenize", "prompt", (("add_special_tokens", False),))
LLAMA_CPP_PYTHON = Tokenizer("llama-cpp-python", "/extras/tokenize", "input")


async def find_tokenizer(endpoint: Endpoint, model_name: str, deadline: float) -> Tokenizer | None:
    """Return the server's route for token counts, None if it has none; raise `ModelError` if the server fails."""
    for known in (LLAMA_CPP, VLLM, LLAMA_CPP_PYTHON):
        tried = replace(known, more=(*known.more, ("model", model_name))) if model_name else known
        reply = await endpoint.post(tried.route, tried.body(_PROBE), deadline)
        said = reply.json or {}
        if reply.ok and tried.count(said):
            return replace(tried, context_tokens=number_at(said, "max_model_len"))
        if reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR and reply.status != HTTPStatus.NOT_IMPLEMENTED:
            raise model_error(endpoint.fault(reply), endpoint.address)
    return None
