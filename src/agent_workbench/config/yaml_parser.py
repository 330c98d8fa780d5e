"""Strict and bounded YAML parser: text to nodes with positions."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from agent_workbench.core.text.amounts import quoted
from agent_workbench.core.yaml_documents import (
    CollectionEnd,
    CollectionStart,
    DocumentError,
    Mark,
    Node,
    ParserEvent,
    YamlScalar,
    compose,
    decode_document,
    mark_at,
)

if TYPE_CHECKING:
    import yaml

# Longer texts get the C parser's message: the parser in Python reads only some 100 kB a second.
EXPLAINED_CHARACTERS = 50_000


def read_node(data: bytes) -> Node | None:
    """Return the document in `data`, None if it is empty; raise `DocumentError`."""
    return compose_text(decode_document(data))


def compose_text(text: str) -> Node | None:
    """Return the document of a YAML text, None if it is empty; raise `DocumentError`."""
    import yaml

    try:
        return compose(_events(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except yaml.YAMLError as error:
        if len(text) > EXPLAINED_CHARACTERS:
            raise _fault(error, text) from error
    # The parser in C is fast; the one in Python has clearer messages.
    try:
        return compose(_events(text, yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise _fault(error, text) from error


def _events(text: str, loader: "type[yaml.SafeLoader]") -> Iterator[ParserEvent]:
    import yaml

    documents = 0
    for event in yaml.parse(text, Loader=loader):
        start, end = _mark(event.start_mark), _mark(event.end_mark)
        match event:
            case yaml.AliasEvent(anchor=str(name)):
                raise DocumentError(start, f"expected a value, found the alias {quoted(name)}", "write the value out")
            case yaml.DocumentStartEvent():
                documents += 1
                if documents > 1:
                    raise DocumentError(start, "expected one document, found a second one ('---')")
            case yaml.NodeEvent(anchor=str(name)):
                raise DocumentError(start, f"expected a value, found the anchor {quoted(name)}", "leave it out")
            case yaml.ScalarEvent(tag=str(name)) | yaml.CollectionStartEvent(tag=str(name)):
                raise DocumentError(start, f"expected a value, found the tag {quoted(name)}", "leave it out")
            case yaml.ScalarEvent():
                yield YamlScalar(event.value, not event.style, start, end)
            case yaml.CollectionStartEvent():
                yield CollectionStart(isinstance(event, yaml.MappingStartEvent), bool(event.flow_style), start)
            case yaml.CollectionEndEvent():
                yield CollectionEnd(end)


def _mark(mark: "yaml.Mark | yaml._yaml.Mark | None") -> Mark:
    return Mark(0, 1, 1) if mark is None else Mark(mark.index, mark.line + 1, mark.column + 1)


def _fault(error: "yaml.YAMLError", text: str) -> DocumentError:
    import yaml

    if found := yaml.reader.Reader.NON_PRINTABLE.search(text):
        return DocumentError(
            mark_at(text, found.start()), f"expected printable text, found the character U+{ord(found[0]):04X}"
        )
    if isinstance(error, yaml.MarkedYAMLError):
        return DocumentError(_mark(error.problem_mark), f"this is not YAML: {_message(error)}")
    return DocumentError(Mark(0, 1, 1), f"this is not YAML: {error}")


def _message(error: "yaml.MarkedYAMLError") -> str:
    context = f" ({error.context})" if error.context else ""
    return f"{error.problem}{context}"
