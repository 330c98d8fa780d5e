"""Lines of a YAML document: their boundaries, and insertion between them that changes no other character."""

from agent_workbench.core.yaml_documents.nodes import Node, YamlMapping, YamlSequence


def line_start(text: str, index: int) -> int:
    """Return the index where the line that contains `index` begins."""
    return text.rfind("\n", 0, index) + 1


def line_end(text: str, index: int) -> int:
    """Return the index just after the line that contains `index`."""
    found = text.find("\n", index)
    return len(text) if found < 0 else found + 1


def after_lines(text: str, node: Node) -> int:
    """Return the index just after the node's last line."""
    end = _last_scalar(node).end.index
    # A block scalar (`|`) ends at the beginning of the next line.
    return end if end and text[end - 1] == "\n" else line_end(text, end)


def with_lines(head: str, lines: str, tail: str) -> str:
    """Return `lines` inserted between two parts of a text, with the text's line endings."""
    newline = "\r\n" if "\r\n" in head or "\r\n" in tail else "\n"
    if head and not head.endswith("\n"):
        head += newline
    return head + lines.replace("\n", newline) + tail


def _last_scalar(node: Node) -> Node:
    match node:
        case YamlSequence(items=items, flow=False) if items:
            return _last_scalar(items[-1])
        case YamlMapping(entries=entries, flow=False) if entries:
            return _last_scalar(entries[-1][1])
    return node
