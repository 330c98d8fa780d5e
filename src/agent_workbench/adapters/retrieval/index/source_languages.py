"""Table of languages: the grammar of each, and the syntax nodes that are definitions and comments."""

from functools import cache
from pathlib import PurePosixPath

from msgspec import Struct


class Language(Struct, frozen=True):
    """Language with a tree-sitter grammar.

    `module` and `entry` locate the grammar. `definitions` and `comments` are tree-sitter patterns. `wrappers` are nodes
    around a definition (decorators, `export`); `leaders` are nodes before it that belong to it (attributes,
    annotations).
    """

    name: str
    module: str
    definitions: tuple[str, ...]
    comments: tuple[str, ...] = ("(comment)",)
    wrappers: frozenset[str] = frozenset()
    leaders: frozenset[str] = frozenset()
    entry: str = "language"


_JAVASCRIPT = (
    *("(function_declaration)", "(generator_function_declaration)", "(class_declaration)", "(method_definition)"),
    "(variable_declarator value: [(arrow_function) (function_expression) (class)])",
    "(assignment_expression right: [(arrow_function) (function_expression) (class)])",
    "(pair value: [(arrow_function) (function_expression)])",
)
_JAVASCRIPT_WRAPPERS = frozenset(
    {"export_statement", "lexical_declaration", "variable_declaration", "expression_statement"}
)
_TYPESCRIPT = (
    *_JAVASCRIPT,
    *("(interface_declaration)", "(type_alias_declaration)", "(enum_declaration)", "(abstract_class_declaration)"),
    *("(internal_module)", "(function_signature)", "(public_field_definition value: [(arrow_function)])"),
)
_C = (
    "(function_definition)",
    *("(struct_specifier body: (_))", "(enum_specifier body: (_))", "(union_specifier body: (_))"),
    *("(preproc_function_def)", "(type_definition)"),
)
_TWO_COMMENTS = ("(line_comment)", "(block_comment)")

_LANGUAGES = (
    Language(
        "python",
        "tree_sitter_python",
        ("(function_definition)", "(class_definition)"),
        (
            "(comment)",
            "(module . (expression_statement (string)))",
            "(block . (expression_statement (string)))",
        ),
        frozenset({"decorated_definition"}),
    ),
    Language(
        "javascript",
        "tree_sitter_javascript",
        (*_JAVASCRIPT, "(field_definition value: [(arrow_function) (function_expression)])"),
        wrappers=_JAVASCRIPT_WRAPPERS,
        leaders=frozenset({"decorator"}),
    ),
    Language(
        "typescript",
        "tree_sitter_typescript",
        _TYPESCRIPT,
        wrappers=_JAVASCRIPT_WRAPPERS | {"ambient_declaration"},
        leaders=frozenset({"decorator"}),
        entry="language_typescript",
    ),
    Language(
        "tsx",
        "tree_sitter_typescript",
        _TYPESCRIPT,
        wrappers=_JAVASCRIPT_WRAPPERS | {"ambient_declaration"},
        leaders=frozenset({"decorator"}),
        entry="language_tsx",
    ),
    Language(
        "go",
        "tree_sitter_go",
        ("(function_declaration)", "(method_declaration)", "(type_spec)", "(type_alias)"),
        wrappers=frozenset({"type_declaration"}),
    ),
    Language(
        "rust",
        "tree_sitter_rust",
        (
            *("(function_item)", "(struct_item)", "(enum_item)", "(union_item)", "(trait_item)", "(impl_item)"),
            *("(mod_item)", "(macro_definition)", "(type_item)"),
        ),
        _TWO_COMMENTS,
        leaders=frozenset({"attribute_item"}),
    ),
    Language(
        "java",
        "tree_sitter_java",
        (
            *("(class_declaration)", "(interface_declaration)", "(enum_declaration)", "(record_declaration)"),
            *("(annotation_type_declaration)", "(method_declaration)", "(constructor_declaration)"),
        ),
        _TWO_COMMENTS,
    ),
    Language("c", "tree_sitter_c", _C),
    Language(
        "cpp",
        "tree_sitter_cpp",
        (*_C, "(class_specifier body: (_))", "(namespace_definition)", "(alias_declaration)", "(concept_definition)"),
        wrappers=frozenset({"template_declaration"}),
    ),
    Language(
        "c_sharp",
        "tree_sitter_c_sharp",
        (
            *("(class_declaration)", "(interface_declaration)", "(struct_declaration)", "(enum_declaration)"),
            *("(record_declaration)", "(delegate_declaration)", "(namespace_declaration)", "(method_declaration)"),
            *("(constructor_declaration)", "(property_declaration)", "(local_function_statement)"),
        ),
    ),
    Language(
        "ruby",
        "tree_sitter_ruby",
        ("(method)", "(singleton_method)", "(class name: (_))", "(module name: (_))"),
    ),
    Language(
        "php",
        "tree_sitter_php",
        (
            *("(function_definition)", "(class_declaration)", "(interface_declaration)", "(trait_declaration)"),
            *("(enum_declaration)", "(method_declaration)"),
        ),
        leaders=frozenset({"attribute_list"}),
        entry="language_php",
    ),
    Language(
        "kotlin",
        "tree_sitter_kotlin",
        ("(class_declaration)", "(object_declaration)", "(function_declaration)", "(type_alias)"),
        _TWO_COMMENTS,
    ),
    Language(
        "swift",
        "tree_sitter_swift",
        ("(class_declaration)", "(protocol_declaration)", "(function_declaration)", "(init_declaration)"),
        ("(comment)", "(multiline_comment)"),
    ),
    Language(
        "lua",
        "tree_sitter_lua",
        (
            "(function_declaration)",
            "(assignment_statement (expression_list value: (function_definition)))",
        ),
        wrappers=frozenset({"variable_declaration"}),
    ),
    Language("bash", "tree_sitter_bash", ("(function_definition)",)),
    Language(
        "css",
        "tree_sitter_css",
        ("(rule_set)", "(media_statement)", "(keyframes_statement)", "(supports_statement)"),
    ),
    Language("html", "tree_sitter_html", ("(element)", "(script_element)", "(style_element)")),
)

_SUFFIXES = {
    **dict.fromkeys((".py", ".pyi", ".pyw"), "python"),
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs"), "javascript"),
    **dict.fromkeys((".ts", ".mts", ".cts"), "typescript"),
    ".tsx": "tsx",
    ".go": "go",
    ".rs": "rust",
    ".java": "java",
    **dict.fromkeys((".c", ".h"), "c"),
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".ipp"), "cpp"),
    ".cs": "c_sharp",
    **dict.fromkeys((".rb", ".rake", ".gemspec"), "ruby"),
    ".php": "php",
    **dict.fromkeys((".kt", ".kts"), "kotlin"),
    ".swift": "swift",
    ".lua": "lua",
    **dict.fromkeys((".sh", ".bash"), "bash"),
    ".css": "css",
    **dict.fromkeys((".html", ".htm"), "html"),
}
_NAMES = {"Rakefile": "ruby", "Gemfile": "ruby"}


def language_of(path: str) -> str:
    """Return the language of a file by its name, including `markdown`; empty for an unknown one."""
    name = PurePosixPath(path)
    if name.suffix.lower() in {".md", ".markdown"}:
        return "markdown"
    return _NAMES.get(name.name) or _SUFFIXES.get(name.suffix.lower(), "")


def find_language(name: str) -> Language | None:
    """Return the entry of a language, None if it has no grammar."""
    return _by_name().get(name)


def parsed_languages() -> tuple[str, ...]:
    """Return the names of all languages with a grammar."""
    return tuple(_by_name())


@cache
def _by_name() -> dict[str, Language]:
    return {language.name: language for language in _LANGUAGES}
