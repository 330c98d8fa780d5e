"""Questions of a server to a person while a call runs: bounded, as inert text, and as flat forms alone."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

from mcp import types
from mcp.client import ClientRequestContext

from agent_workbench.core.text.sanitizer import without_chat_markers
from agent_workbench.subjects.mcp_client.messages_adapter import Asked, Reply
from agent_workbench.subjects.mcp_client.results_adapter import inert

MAX_QUESTIONS = 10
"""Questions of one call; the others are declined."""
MAX_MESSAGE_CHARS = 4_000
MAX_FIELDS = 30
MAX_CHOICES = 100
MAX_WORDS_CHARS = 500
MAX_FORM_CHARS = 100_000
MAX_URL_CHARS = 2_000
MAX_PAGES = 3
_MOST = 10**15
_FORMATS = frozenset({"email", "uri", "date", "date-time"})
_BOUNDS = {
    "string": ("minLength", "maxLength"),
    "number": ("minimum", "maximum"),
    "integer": ("minimum", "maximum"),
    "boolean": (),
    "array": ("minItems", "maxItems"),
}


class OpenCall:
    """A call that runs, and the questions that its server asks meanwhile."""

    def __init__(self, id: int, running: "asyncio.Task[types.CallToolResult]") -> None:
        self.id = id
        self.running = running
        self.count = 0
        self._questions: asyncio.Queue[tuple[Asked, asyncio.Future[types.ElicitResult]]] = asyncio.Queue()
        self._answered: asyncio.Future[types.ElicitResult] | None = None

    async def ask(self, question: Asked) -> types.ElicitResult:
        """Return a person's answer to a question."""
        answered: asyncio.Future[types.ElicitResult] = asyncio.get_running_loop().create_future()
        await self._questions.put((question, answered))
        return await answered

    async def next(self) -> Asked | None:
        """Return the next question, None once the call has ended; cancelling this ends the call."""
        asking = asyncio.create_task(self._questions.get())
        try:
            await asyncio.wait({self.running, asking}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self.running.cancel()
            raise
        finally:
            asking.cancel()
        if self.running.done() or not asking.done():
            return None
        question, self._answered = asking.result()
        return question

    def answer(self, reply: Reply) -> None:
        """Answer the newest question; one that the server withdrew meanwhile needs none."""
        answered, self._answered = self._answered, None
        if answered is not None and not answered.done():
            content = json.loads(reply.content) if reply.action == "accept" else None
            answered.set_result(types.ElicitResult(action=reply.action, content=content))


class Elicitation:
    """The calls that run, and the callback of the SDK for questions about them. `notice` tells what is not asked."""

    def __init__(self, notice: Callable[[str], None]) -> None:
        self.calls: dict[int, OpenCall] = {}
        self._notice = notice

    async def ask(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """Return a person's answer, or why there is none."""
        if len(self.calls) != 1:
            self._notice("it asked a question about no call, which was declined")
            return types.ElicitResult(action="decline")
        (call,) = self.calls.values()
        call.count += 1
        if call.count > MAX_QUESTIONS:
            self._notice(f"it asked more than {MAX_QUESTIONS} questions about one call; the others were declined")
            return types.ElicitResult(action="decline")
        try:
            question = read_question(call.id, params)
        except ValueError as error:
            self._notice(f"it asked a question that cannot be shown ({error}), which was refused")
            return types.ErrorData(code=types.INVALID_PARAMS, message=f"this question is not asked: {error}")
        return await call.ask(question)


def required_pages(data: object) -> tuple[str, ...]:
    """Return the pages that an error of a call names because the user has to visit them first, a few of them."""
    listed = data.get("elicitations") if isinstance(data, dict) else None
    urls = [each.get("url") for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    return tuple(url for url in urls if isinstance(url, str) and _is_page(url))[:MAX_PAGES]


def read_question(call: int, params: types.ElicitRequestParams) -> Asked:
    """Return a question as a message; raise `ValueError` for one that cannot be shown in full."""
    message = _words(params.message, MAX_MESSAGE_CHARS)
    if isinstance(params, types.ElicitRequestURLParams):
        url = params.url
        if not _is_page(url):
            raise ValueError("its address is none of the web, is too long, or has characters that are not ASCII")
        return Asked(0, call, message, url=url)
    schema = json.dumps(flat_schema(params.requested_schema), ensure_ascii=False, separators=(",", ":"))
    return Asked(0, call, message, schema)


def flat_schema(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a form with the keywords that the protocol knows; raise `ValueError` for any other form."""
    properties, required = said.get("properties"), said.get("required") or []
    if said.get("type") != "object" or not isinstance(properties, dict) or len(properties) > MAX_FIELDS:
        raise ValueError(f"its form is not an object of at most {MAX_FIELDS} fields")
    named = [name for name in properties if isinstance(required, list) and name in required]
    if not isinstance(required, list) or len(named) != len(required):
        raise ValueError("it requires a field that it does not have")
    for name in properties:
        if not 0 < len(name) <= MAX_CHOICES or not _is_plain(name):
            raise ValueError("the name of a field is too long, or has characters that are not ASCII")
    fields = {name: _field(name, field) for name, field in properties.items()}
    if len(json.dumps(fields)) > MAX_FORM_CHARS:
        raise ValueError("its form is too long")
    return {"type": "object", "properties": fields, "required": named, "additionalProperties": False}


def _field(name: str, said: object) -> dict[str, Any]:
    field: Mapping[str, Any] = said if isinstance(said, dict) else {}
    kind = field.get("type")
    if not isinstance(kind, str) or kind not in _BOUNDS:
        raise ValueError(f"the field {name} is no text, number, choice, or true or false")
    kept: dict[str, Any] = {"type": kind}
    for word in ("title", "description"):
        if isinstance(field.get(word), str):
            kept[word] = _words(field[word], MAX_WORDS_CHARS)
    for bound in _BOUNDS[kind]:
        if _is_number(field.get(bound)):
            kept[bound] = field[bound]
    if kind == "string":
        kept |= _choices(name, field)
        if isinstance(field.get("format"), str) and field["format"] in _FORMATS:
            kept["format"] = field["format"]
    if kind == "array":
        items = field.get("items")
        choices = _choices(name, items) if isinstance(items, dict) else {}
        if not choices:
            raise ValueError(f"the field {name} is a list, but of no choices")
        kept["items"] = {"type": "string", **choices}
        kept["uniqueItems"] = True
    default = field.get("default")
    if _fits(kind, default):
        kept["default"] = default
    return kept


def _choices(name: str, said: Mapping[str, Any]) -> dict[str, Any]:
    """Return the choices of a text, none if any text is allowed; titles become a part of the values' description."""
    titled = said.get("oneOf") or said.get("anyOf")
    if isinstance(titled, list):
        pairs = [(each.get("const"), each.get("title", "")) for each in titled if isinstance(each, dict)]
    elif isinstance(said.get("enum"), list):
        names = said.get("enumNames")
        titles = names if isinstance(names, list) and len(names) == len(said["enum"]) else [""] * len(said["enum"])
        pairs = list(zip(said["enum"], titles, strict=True))
    else:
        return {}
    if not 0 < len(pairs) <= MAX_CHOICES or not all(
        isinstance(value, str) and len(value) <= MAX_WORDS_CHARS and inert(value) == value for value, _ in pairs
    ):
        raise ValueError(f"the choices of the field {name} are too many, too long, or no plain text")
    if not any(title for _, title in pairs):
        return {"enum": [value for value, _ in pairs]}
    return {"oneOf": [{"const": value, "title": _words(str(title), MAX_WORDS_CHARS)} for value, title in pairs]}


def _fits(kind: str, default: object) -> bool:
    match default:
        case bool():
            return kind == "boolean"
        case int():
            return kind in {"integer", "number"} and _is_number(default)
        case float():
            return kind == "number" and _is_number(default)
        case str():
            return kind == "string" and len(default) <= MAX_WORDS_CHARS and inert(default) == default
        case list():
            return kind == "array" and len(default) <= MAX_CHOICES and all(_fits("string", each) for each in default)
        case _:
            return False


def _is_number(said: object) -> bool:
    """Return True for a number that JSON and a person can read: servers may write 1e999, which is infinite."""
    return isinstance(said, int | float) and not isinstance(said, bool) and abs(said) < _MOST


def _words(text: str, most: int) -> str:
    whole = inert(text.encode("utf-8", "replace").decode())
    return whole if len(whole) <= most else f"{whole[:most]}… [{len(whole) - most:,} characters more]"


def _is_page(url: str) -> bool:
    return url.startswith(("https://", "http://")) and len(url) <= MAX_URL_CHARS and _is_plain(url)


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable() and not text.isspace() and without_chat_markers(text) == text
