"""Markers of chat templates in foreign text: a server may read them as the beginning or end of a message."""

import re

_MARKER = re.compile(
    r"<(?=[|｜])"  # <|im_start|>, <|eot_id|>, <｜User｜>
    r"|(?<=[|｜])>"
    r"|<(?=/?(?:s|bos|eos|pad|unk|start_of_turn|end_of_turn|start_header_id|end_header_id|eot_id|think|tool_call)>)"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\])"
    r"|<(?=</?SYS>>)",
    re.IGNORECASE,
)


def without_chat_markers(text: str) -> str:
    """Return the text with a space inside each marker of a chat template, so that it is plain text to a tokenizer."""
    return _MARKER.sub(lambda match: f" {match[0]}" if match[0] == ">" else f"{match[0]} ", text)
