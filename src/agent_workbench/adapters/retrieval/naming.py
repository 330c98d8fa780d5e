"""What a definition in a syntax tree is called."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tree_sitter

_LONGEST = 80
# Where a name stands, most telling first; C hides it in nested declarators, Rust's `impl` has a type only.
_FIELDS = ("name", "declarator", "left", "key", "type")
_DEEPEST_DECLARATOR = 12


def name_of(node: "tree_sitter.Node", language: str) -> str:
    """Return the name of what `node` defines, on one line; empty where it has none."""
    match language:
        case "html":
            return _element_name(node)
        case "css":
            name = _selector(node)
        case "go":
            name = ".".join(part for part in (_receiver(node), _named(node)) if part)
        case _:
            name = _named(node)
    return name[:_LONGEST]


def _named(node: "tree_sitter.Node") -> str:
    for _ in range(_DEEPEST_DECLARATOR):
        inner = next((found for field in _FIELDS if (found := node.child_by_field_name(field)) is not None), None)
        if inner is None:
            break
        node = inner
        if not node.named_child_count or "declarator" not in node.type:
            return _one_line(node)
    return _one_line(node.named_children[0]) if node.named_child_count else ""


def _one_line(node: "tree_sitter.Node") -> str:
    text = (node.text or b"").decode("utf-8", "replace")
    return " ".join(text.split("<", 1)[0].split()).replace("::", ".")


def _receiver(node: "tree_sitter.Node") -> str:
    """Return the type that a method of Go belongs to."""
    receiver = node.child_by_field_name("receiver")
    if receiver is None:
        return ""
    words = (receiver.text or b"").decode("utf-8", "replace").strip("()").split("[", 1)[0].split()
    return words[-1].lstrip("*") if words else ""


def _selector(node: "tree_sitter.Node") -> str:
    text = (node.text or b"")[: 4 * _LONGEST].decode("utf-8", "replace")
    return " ".join(text.split("{", 1)[0].split())


def _element_name(node: "tree_sitter.Node") -> str:
    """Return `tag#id` of an HTML element."""
    start = next(iter(node.named_children), None)
    if start is None or not start.named_child_count:
        return ""
    tag, *attributes = (_one_line(child) for child in start.named_children)
    identifier = next((each[3:].strip("\"'") for each in attributes if each.startswith("id=")), "")
    return f"{tag}#{identifier}"[:_LONGEST] if identifier else tag[:_LONGEST]
