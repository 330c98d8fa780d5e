"""Answers of servers: values read from JSON without trust, and errors in all their forms, turned into ours."""

import json
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus

from msgspec import Struct

from agent_workbench.core.errors import ContextOverflow, ModelError, ModelRefused, ModelUnavailable

JsonObject = Mapping[str, object]

MOST = 1_000_000_000
"""The largest number that is accepted, of tokens or milliseconds; a larger one is read as 0."""
# A smaller duration would make a rate infinite.
_LEAST = 1e-6
_MOST_DIGITS = 18

# Messages about a prompt that is too long: llama.cpp (current and older builds) and others.
_OVERFLOW_TYPES = {"exceed_context_size_error", "context_length_exceeded"}
_OVERFLOW = re.compile(
    r"exceeds? (the )?(available |maximum )?context|maximum context length|max_model_len|context_length_exceeded"
    r"|context (size|length|window) (was |has been )?exceeded"
    r"|(prompt|input|request) (is|was)? ?too long",
    re.IGNORECASE,
)
# The sizes in such messages, the prompt's or the context's first.
_SIZES = (
    re.compile(r"(?P<prompt>\d+)( tokens)?\)? exceeds? .{0,60}?context.{0,40}?(?P<context>\d+)", re.IGNORECASE),
    re.compile(
        r"context (length|size|window)\D{0,40}(?P<context>\d+)"
        r"(.{0,120}?(resulted in|requested|contains?|has|prompt:?)\D{0,20}(?P<prompt>\d+))?",
        re.IGNORECASE,
    ),
)
# Messages about a conversation that the chat template refuses; asking again does not help.
_HISTORY = re.compile(
    r"roles? must alternate|chat template|jinja|raise_exception|(apply|render|parse).{0,20}(template|messages)"
    r"|(system|assistant|user) role .{0,20}(not|un)\W?(supported|allowed|expected)|Expected.{0,20}role",
    re.IGNORECASE,
)
# Messages of a 503 that ends by itself. A gateway whose server is down answers 503 too, and says nothing of the kind.
_LOADING = re.compile(r"\b(load(s|ing)|start(s|ing)|warm(s|ing) up|not ready)\b", re.IGNORECASE)
_BUSY = re.compile(r"\b(busy|overload(ed)?|capacity|too many|no slots?|try again)\b", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]+")
_MESSAGE_LENGTH = 300
_OF_HISTORY = {HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.INTERNAL_SERVER_ERROR}
_OF_FIELDS = {HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.NOT_IMPLEMENTED}

OVERFLOW_ADVICE = "shorten the task's context, or serve the model with a larger one (model.context_tokens)"


def parse_object(text: str | bytes) -> JsonObject | None:
    """Return the JSON object in `text`, None if there is none or it nests too deeply."""
    try:
        value: object = json.loads(text, parse_int=_whole, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _whole(digits: str) -> int:
    """Return the number, 0 if it has too many digits: Python refuses to read more than 4,300."""
    return int(digits) if len(digits) <= _MOST_DIGITS else 0


def _no_number(_: str) -> None:
    """Read NaN and Infinity as None."""


def object_at(value: JsonObject, key: str) -> JsonObject:
    """Return the object under `key`, an empty one if there is none."""
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def first_at(value: JsonObject, key: str) -> JsonObject:
    """Return the first element of the list under `key` if it is an object, else an empty one."""
    found = value.get(key)
    return found[0] if isinstance(found, list) and found and isinstance(found[0], dict) else {}


def list_at(value: JsonObject, key: str) -> Sequence[object]:
    """Return the list under `key`, an empty one if there is none."""
    found = value.get(key)
    return found if isinstance(found, list) else ()


def text_at(value: JsonObject, key: str) -> str:
    """Return the text under `key`; empty if there is none."""
    found = value.get(key)
    return found if isinstance(found, str) else ""


def real_at(value: JsonObject, key: str) -> float:
    """Return the number under `key`; 0.0 if there is none, or it is negative, NaN or above `MOST`."""
    found = value.get(key)
    if isinstance(found, bool) or not isinstance(found, int | float) or not _LEAST <= found <= MOST:
        return 0.0
    return float(found)


def number_at(value: JsonObject, key: str) -> int:
    """Return the number under `key` as a whole one, as `real_at` reads it."""
    return int(real_at(value, key))


class ServerError(Struct, frozen=True):
    """An error response: HTTP status (0 inside a stream), kind, message, and the token counts of an overflow."""

    status: int
    kind: str
    message: str
    prompt_tokens: int = 0
    context_tokens: int = 0

    @property
    def passes(self) -> bool:
        """True if a later request may succeed: the server says that it loads its model, or is overloaded."""
        if self.status == HTTPStatus.SERVICE_UNAVAILABLE:
            return self.is_loading or bool(_BUSY.search(self.message))
        return self.status == HTTPStatus.TOO_MANY_REQUESTS

    @property
    def is_loading(self) -> bool:
        """True if the server says that it loads its model."""
        return self.status == HTTPStatus.SERVICE_UNAVAILABLE and bool(_LOADING.search(self.message))

    @property
    def is_overflow(self) -> bool:
        """True if the prompt was too long."""
        return self.kind in _OVERFLOW_TYPES or bool(_OVERFLOW.search(self.message))

    @property
    def is_of_history(self) -> bool:
        """True if the conversation is refused: roles or texts that the chat template does not know."""
        return self.status in _OF_HISTORY and bool(_HISTORY.search(self.message))

    def blames(self, field: str) -> bool:
        """Return True if the request is refused and the message names `field` as the reason."""
        named = re.search(rf"(?<![\w-]){re.escape(field)}(?![\w-])", self.message)
        return self.status in _OF_FIELDS and named is not None


def server_error_in(status: int, body: JsonObject | None, *, secret: str = "", location: str = "") -> ServerError:
    """Return what `body` (None: it was no JSON object) tells; `secret` never shows in it.

    `location` is where a redirect leads.
    """
    error = object_at(body or {}, "error")
    kind = text_at(error, "type") or text_at(error, "code")
    if text_at(error, "code") in _OVERFLOW_TYPES:
        kind = text_at(error, "code")
    message = _message(error, body or {}) or location
    if secret:
        message = message.replace(secret, "…")
    message = _CONTROL.sub(" ", message)[:_MESSAGE_LENGTH].strip()
    prompt_tokens, context_tokens = _sizes(message)
    return ServerError(
        status=status or number_at(error, "code"),
        kind=kind,
        message=message,
        prompt_tokens=number_at(error, "n_prompt_tokens") or prompt_tokens,
        context_tokens=number_at(error, "n_ctx") or context_tokens,
    )


def _message(error: JsonObject, body: JsonObject) -> str:
    """Return the message from where a server puts it: llama.cpp (old ones: `status`) and OpenAI, Ollama, FastAPI."""
    places = ((error, "message"), (body, "error"), (body, "message"), (body, "detail"), (body, "status"))
    said = next((text for place, key in places if (text := text_at(place, key))), "")
    said = said or text_at(object_at(body, "detail"), "msg")
    if said:
        return said
    detail = first_at(body, "detail")
    where = detail.get("loc")
    field = str(where[-1]) if isinstance(where, list) and where else ""
    return f"{field}: {text_at(detail, 'msg')}" if detail else ""


def _sizes(message: str) -> tuple[int, int]:
    """Return the tokens of the prompt and of the context from the message, 0 for each that it lacks."""
    for pattern in _SIZES:
        if found := pattern.search(message):
            return _size(found["prompt"]), _size(found["context"])
    return 0, 0


def _size(digits: str | None) -> int:
    size = int(digits or 0)
    return size if size <= MOST else 0


def model_error(fault: ServerError, address: str, *, partial: str = "") -> ModelError:
    """Return the error for `fault` of the server at `address`; `partial` is the answer so far."""
    said = f": {fault.message}" if fault.message else ""
    if fault.is_overflow:
        return overflow(said, fault.prompt_tokens, fault.context_tokens)
    if fault.is_of_history:
        return ModelRefused(
            f"the chat template of the server at {address} rejects this conversation ({fault.status}){said}",
            advice="serve the model with another template (--chat-template), or ask another model",
        )
    match fault.status:
        case status if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
            return ModelRefused(
                f"the server at {address} redirects to another address ({status}){said}",
                advice="set model.url to that address if it is right; redirects are not followed",
            )
        case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
            return ModelRefused(
                f"the server at {address} refuses the API key ({fault.status}){said}",
                advice="put the key into the environment variable that the server's api_key_env in .agent.yml names",
            )
        case HTTPStatus.NOT_FOUND | HTTPStatus.METHOD_NOT_ALLOWED:
            return ModelRefused(
                f"the server at {address} has no such route or model ({fault.status}){said}",
                advice="check model.url and model.name; the address goes without /v1/chat/completions",
            )
        case HTTPStatus.NOT_IMPLEMENTED:
            return ModelRefused(
                f"the server at {address} was started without a feature that is needed ({fault.status}){said}",
                advice="start it with the flag in its message",
            )
        case HTTPStatus.TOO_MANY_REQUESTS:
            return ModelUnavailable(
                f"the server at {address} is overloaded (429){said}",
                advice="try again later, or raise model.answer_seconds",
                partial=partial,
            )
        case HTTPStatus.SERVICE_UNAVAILABLE if not fault.passes:
            return ModelUnavailable(
                f"what answers at {address} is unavailable (503), and not because it loads a model{said}",
                advice="if it is a proxy, start the model server behind it; else check model.url",
                partial=partial,
            )
        case status if HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR:
            return ModelRefused(
                f"the server at {address} rejected the request ({status}){said}",
                advice="check the server's log"
                if "grammar" not in fault.message
                else "a newer llama.cpp may know this grammar",
            )
        case status:
            return ModelUnavailable(
                f"the server at {address} failed ({status or 'in the middle of its answer'}){said}",
                advice="check the server's log, then press t to retry",
                partial=partial,
            )


def overflow(said: str, prompt_tokens: int, context_tokens: int) -> ContextOverflow:
    """Return the error for a prompt of `prompt_tokens` in a context of `context_tokens` (0: not known)."""
    sizes = f" ({prompt_tokens} tokens in {context_tokens})" if prompt_tokens and context_tokens else ""
    return ContextOverflow(
        f"the prompt does not fit into the model's context{sizes}{said}",
        prompt_tokens=prompt_tokens,
        context_tokens=context_tokens,
        advice=OVERFLOW_ADVICE,
    )
