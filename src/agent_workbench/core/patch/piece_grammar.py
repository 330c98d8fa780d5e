"""Grammar (GBNF) of rewritten pieces: it holds the heads, the fences and a sensible length; the text itself is free."""

from collections.abc import Mapping, Sequence

from agent_workbench.core.patch import grammar_rules
from agent_workbench.core.patch.file_piece import FilePiece
from agent_workbench.core.patch.grammar_rules import GrammarRules, literal
from agent_workbench.core.patch.rewritten_pieces import NEW_FILE, PIECE, fence_for

LEAST_LINES, GROWTH = 60, 2
"""An answer may have this many lines more than this multiple of the piece that it rewrites."""
NEW_LINES = 200
MOST_OFFERED = 40
USUAL_FENCE = 3


def piece_rules(
    pieces: Sequence[FilePiece], names: Sequence[str], name_rules: Sequence[str], *, imports_follow: bool = True
) -> tuple[str, ...]:
    """Return the rules of `pieces`: one of them rewritten, or a new file with a name of the rules `names`.

    None if nothing can be written. `name_rules` are the rules of the names. Those of pieces begin with `w`. With
    `imports_follow` the imports of its file may follow a piece.
    """
    rules = GrammarRules("w")
    offered = sorted(pieces[:MOST_OFFERED], key=_number)
    each = {piece.number: _piece(rules, piece) for piece in offered}
    imports = [piece for piece in offered if piece.imports and imports_follow]
    ways = [_with_more(rules, piece, each, imports) for piece in offered]
    if names:
        ways.append(_new(rules, rules.add(" | ".join(names))))
    if not ways:
        return ()
    # One piece in an answer: a small model goes on with files that nobody asked for where it may.
    one = rules.add(" | ".join(ways))
    return (f"pieces ::= {one}", *rules.lines, *name_rules, *(grammar_rules.COMMON if names else ()))


def _number(piece: FilePiece) -> int:
    return piece.number


def _with_more(rules: GrammarRules, piece: FilePiece, each: Mapping[int, str], imports: Sequence[FilePiece]) -> str:
    """Return a name of the rule of a piece; the imports of its file may follow it."""
    own = each[piece.number]
    more = [each[other.number] for other in imports if other.path == piece.path]
    return own if piece.imports or not more else rules.add(f'{own} ("\\n" ({" | ".join(more)}))?')


def _piece(rules: GrammarRules, piece: FilePiece) -> str:
    fence = fence_for("\n".join(piece.lines))
    most = GROWTH * len(piece.lines) + LEAST_LINES
    head = f'"{PIECE} {piece.number}\\n"'
    if piece.whole:
        # A model that calls its piece a new file would have to spell another name.
        head = f'({head} | {literal(f"{NEW_FILE} {piece.path}")} "\\n")'
    return rules.add(f"{head} {_fenced(rules, fence, most, empty=not piece.whole)}")


def _new(rules: GrammarRules, name: str) -> str:
    return rules.add(f'"{NEW_FILE} " {name} "\\n" {_fenced(rules, "```", NEW_LINES)}')


def _fenced(rules: GrammarRules, fence: str, most: int, *, empty: bool = True) -> str:
    """Return the expression of at most `most` lines between fences, of which none closes them.

    Unless the text may be `empty`, its first line is not blank.
    """
    char = rules.shared(r"[^\x00-\x08\x0A-\x1F\x7F]")
    plain = rules.shared(r"[^\x00-\x08\x0A-\x1F\x7F`]")
    # A line may begin with fewer back-ticks than the fence has. Two alone are a fence of three misspelt; a longer fence
    # is there because lines of the text begin with nearly as many, such as the fences of a Markdown file.
    usual = len(fence) == USUAL_FENCE
    rest = f"{plain} {char}*" if usual else f"({plain} {char}*)?"
    most_ticks = len(fence) - (2 if usual else 1)
    starts = [f"{plain} {char}*", *(f'"{"`" * count}" {rest}' for count in range(1, most_ticks + 1))]
    text = "(" + " | ".join(starts) + ")"
    line = rules.shared(rf'{text}? "\n"')
    first = "" if empty else rules.shared(rf'{text} "\n"') + " "
    word = rules.shared("[a-z+#]")
    return f'"{fence}" {word}{{0,12}} "\\n" {first}{line}{{0,{most}}} "{fence}"'
