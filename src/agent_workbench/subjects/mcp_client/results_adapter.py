"""Descriptions and results of a server's tools, as inert, bounded text."""

import json
from collections.abc import Iterable, Iterator, Mapping

from agent_workbench.core.text.sanitizer import sanitize_whole, without_chat_markers
from agent_workbench.subjects.mcp_client.messages_adapter import MAX_TEXT_CHARS, Called, ListedTool

MAX_BLOCKS = 1_000
_HINTS = {
    "readOnlyHint": ("read-only", "changes things"),
    "destructiveHint": ("destructive", "not destructive"),
    "idempotentHint": ("repeatable", "not repeatable"),
    "openWorldHint": ("reaches other systems", "reaches no other system"),
}
_MAX_TITLE_CHARS = 100
_WORDS = {"title", "description"}
_VALUES = {"const", "enum", "default", "examples"}


def called(number: int, result: Mapping[str, object]) -> Called:
    """Return a result of `tools/call` as a message; `result` is what the server sent, already validated."""
    content = result.get("content")
    blocks: list[object] = content if isinstance(content, list) else []
    texts = list(_texts(blocks))
    structured = result.get("structuredContent")
    if structured is not None and not any(map(_is_text, blocks)):
        texts.append(json.dumps(structured, ensure_ascii=False))
    text = "\n".join(texts).encode("utf-8", "replace").decode()
    kept = text[:MAX_TEXT_CHARS]
    return Called(number, inert(kept), result.get("isError") is True, len(text[MAX_TEXT_CHARS:].encode()))


def inert(text: str) -> str:
    """Return text with visible control characters, and without markers that a model's server could obey."""
    return without_chat_markers(sanitize_whole(text))


def _is_text(block: object) -> bool:
    return isinstance(block, dict) and block.get("type") == "text"


def _texts(blocks: list[object]) -> Iterator[str]:
    for block in blocks[:MAX_BLOCKS]:
        if isinstance(block, dict):
            yield _text(block)
    if len(blocks) > MAX_BLOCKS:
        yield f"[{len(blocks) - MAX_BLOCKS} more parts were left out]"


def _text(block: Mapping[str, object]) -> str:
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text", ""))
    if kind in {"image", "audio"}:
        # Base64 has four characters for three bytes.
        size = len(str(block.get("data", ""))) * 3 // 4
        return f"[{kind} {_word(block.get('mimeType'))}, {size:,} bytes, left out]"
    if kind == "resource_link":
        return f"[link to the resource {_word(block.get('uri'))}, not read]"
    resource = block.get("resource")
    if kind == "resource" and isinstance(resource, dict):
        size = len(str(resource["text"]).encode("utf-8", "replace")) if "text" in resource else 0
        size = size or len(str(resource.get("blob", ""))) * 3 // 4
        return f"[resource {_word(resource.get('uri'))} {_word(resource.get('mimeType'))}, {size:,} bytes, left out]"
    return f"[a part of the type {_word(kind)}, left out]"


def _word(value: object) -> str:
    text = without_chat_markers(
        "".join(each if each.isprintable() else " " for each in str(value or "unknown"))
    ).strip()
    return text if len(text) <= 200 else f"{text[:199]}…"


def listed_tools(tools: Iterable[object]) -> tuple[ListedTool, ...]:
    """Return the tools of `tools/list`; a description that is missing is the title, else the name.

    What a server says of a tool may have any form: a name that is no text is empty, as is a schema that is missing.
    """
    return tuple(_listed(tool) for tool in tools)


def _listed(said: object) -> ListedTool:
    tool: Mapping[str, object] = said if isinstance(said, dict) else {}
    name = _string(tool.get("name"))
    annotations = tool.get("annotations")
    marks = annotations if isinstance(annotations, dict) else {}
    title = _word(tool.get("title") or marks.get("title") or "")[:_MAX_TITLE_CHARS]
    hints = [words[0] if marks[key] else words[1] for key, words in _HINTS.items() if isinstance(marks.get(key), bool)]
    if title and title != "unknown":
        hints.append(f"titled {title}")
    summary = _string(tool.get("description")).strip() or f"the tool {name} (it has no description)"
    there = "inputSchema" in tool
    schema = json.dumps(_described(tool["inputSchema"]), ensure_ascii=False, separators=(",", ":")) if there else ""
    # Half characters cannot be encoded.
    name, schema = (text.encode("utf-8", "replace").decode() for text in (name, schema))
    return ListedTool(name, inert(summary.encode("utf-8", "replace").decode()), schema, tuple(hints))


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _described(schema: object) -> object:
    """Return a schema whose titles and descriptions are inert; its values stay as they are."""
    if isinstance(schema, list):
        return [_described(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: inert(value)
        if key in _WORDS and isinstance(value, str)
        else value
        if key in _VALUES
        else _described(value)
        for key, value in schema.items()
    }
