"""Names of the definitions in a syntax tree."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tree_sitter

LONGEST_NAME = 80
# Fields that hold a name, best first. In C it is in nested declarators; Rust's `impl` has a type only.
_FIELDS = ("name", "declarator", "left", "key", "type")
_MAX_DECLARATOR_DEPTH = 12


def name_of(node: "tree_sitter.Node", source: bytes, language: str) -> str:
    """Return the name that `node` in the tree of `source` defines, on one line; empty if it has none."""
    match language:
        case "html":
            return _element_name(node, source)
        case "css":
            name = _selector(node, source)
        case "go":
            name = ".".join(part for part in (_receiver(node, source), _named(node, source)) if part)
        case _:
            name = _named(node, source)
    return name[:LONGEST_NAME]


def text_of(node: "tree_sitter.Node", source: bytes) -> str:
    """Return the text of a node. Its own `text` would read the source byte by byte, because it was parsed in slices."""
    return source[node.start_byte : node.end_byte].decode("utf-8", "replace")


def _named(node: "tree_sitter.Node", source: bytes) -> str:
    for _ in range(_MAX_DECLARATOR_DEPTH):
        inner = next((found for field in _FIELDS if (found := node.child_by_field_name(field)) is not None), None)
        if inner is None:
            break
        node = inner
        if not node.named_child_count or "declarator" not in node.type:
            return _one_line(node, source)
    return _one_line(node.named_children[0], source) if node.named_child_count else ""


def _one_line(node: "tree_sitter.Node", source: bytes) -> str:
    return " ".join(text_of(node, source).split("<", 1)[0].split()).replace("::", ".")


def _receiver(node: "tree_sitter.Node", source: bytes) -> str:
    """Return the receiver type of a Go method."""
    receiver = node.child_by_field_name("receiver")
    if receiver is None:
        return ""
    words = text_of(receiver, source).strip("()").split("[", 1)[0].split()
    return words[-1].lstrip("*") if words else ""


def _selector(node: "tree_sitter.Node", source: bytes) -> str:
    text = source[node.start_byte : min(node.end_byte, node.start_byte + 4 * LONGEST_NAME)].decode("utf-8", "replace")
    return " ".join(text.split("{", 1)[0].split())


def _element_name(node: "tree_sitter.Node", source: bytes) -> str:
    """Return `tag#id` of an HTML element."""
    start = next(iter(node.named_children), None)
    if start is None or not start.named_child_count:
        return ""
    tag, *attributes = (_one_line(child, source) for child in start.named_children)
    identifier = next((each[3:].strip("\"'") for each in attributes if each.startswith("id=")), "")
    return f"{tag}#{identifier}"[:LONGEST_NAME] if identifier else tag[:LONGEST_NAME]
