"""The kinds of damage, and how a change becomes a case of one."""

from collections.abc import Callable
from enum import StrEnum
from random import Random

from msgspec import Struct

from bench.faults import beds, context, names, numbers, whitespace, wrapping
from bench.faults.change import Change, Texts, diff_of
from bench.faults.draft import Draft, read_draft
from bench.faults.oracle import bare, results

DamageDraft = Callable[[Draft, Random], Draft | None]
DamageText = Callable[[str, Random], str | None]
AlterChange = Callable[[Change, Random], Change | None]
AlterFiles = Callable[[Change, Draft, Random], Texts | None]


class Group(StrEnum):
    """What can be asked of one who applies a diff of a kind."""

    WHOLE = "the diff still says all: it can be applied"
    LOSSY = "something is lost: applied right or refused, both are well"
    UNFIT = "the diff does not fit, or fits twice: it must be refused"


class Kind(Struct, frozen=True):
    """A kind of damage; each part returns None where it cannot do its damage.

    `change` does the same to both sides of a change, before its diff is made. `draft` and `text` damage the diff.
    `files` puts other files under it, which it does not fit.
    """

    name: str
    draft: DamageDraft | None = None
    text: DamageText | None = None
    change: AlterChange | None = None
    files: AlterFiles | None = None
    context: int = 3
    group: Group = Group.WHOLE


class Case(Struct, frozen=True):
    """A damaged diff, the files it meets and what they should be afterwards; `post` is `pre` where it must be refused.

    `unclear`: its old lines, placed by content alone, can make another text than the right one.
    """

    id: str
    kind: str
    group: Group
    patch: str
    pre: Texts
    post: Texts
    unclear: bool


_edges = context.edges_lost
_ALL = 1_000

# In the order in which two of them are done to one diff: content, then numbers, then names, then what stands around.
KINDS: tuple[Kind, ...] = (
    Kind("nothing"),
    Kind("context lost, 1 at the edges, counted", _edges(1, 1, counted=True)),
    Kind("context lost, 1 at the edges, not counted", _edges(1, 1, counted=False)),
    Kind("context lost, 2 at the edges, counted", _edges(2, 2, counted=True)),
    Kind("context lost, 2 at the edges, not counted", _edges(2, 2, counted=False)),
    Kind("context lost, all before, counted", _edges(_ALL, 0, counted=True)),
    Kind("context lost, all before, not counted", _edges(_ALL, 0, counted=False)),
    Kind("context lost, all behind, counted", _edges(0, _ALL, counted=True)),
    Kind("context lost, all behind, not counted", _edges(0, _ALL, counted=False)),
    Kind("context lost, 1 or 2 at one edge, start wrong", context.one_edge_lost),
    Kind("context line lost between others", context.middle_lost),
    Kind("context line lost between others, counted", context.middle_lost_counted),
    Kind("blank context line lost", context.blank_lost),
    Kind("context line lost beside a change", context.beside_lost, group=Group.LOSSY),
    Kind("context line lost beside a change, counted", context.beside_lost_counted, group=Group.LOSSY),
    Kind("context line spelled otherwise", context.spelled_otherwise),
    Kind("context line mistyped", context.mistyped),
    Kind("context line with another name", context.renamed),
    Kind("removed line mistyped", context.removed_mistyped, group=Group.LOSSY),
    Kind("dots for long context", context.elided, context=12),
    Kind("dedented", whitespace.dedented),
    Kind("indented by four", whitespace.indented),
    Kind("tabs as spaces", whitespace.tabs_to_spaces),
    Kind("spaces as tabs", whitespace.spaces_to_tabs),
    Kind("no newline at the end, no marker", whitespace.no_markers, change=whitespace.ended_by_context),
    Kind(
        "no newline at the end, last line changed, no marker",
        whitespace.no_markers,
        change=whitespace.ended_by_change,
        group=Group.LOSSY,
    ),
    Kind("LF diff, CRLF file", whitespace.without_cr, change=whitespace.with_crlf),
    Kind("trailing space trimmed", whitespace.trimmed),
    Kind("context without its space", whitespace.unmarked_context),
    Kind("wrong counts", numbers.wrong_counts),
    Kind("wrong start, by 1 to 3", numbers.shifted_little),
    Kind("wrong start, by 20 to 300", numbers.shifted_far),
    Kind("wrong start, all 1", numbers.all_at_one),
    Kind("no numbers", numbers.no_numbers),
    Kind("one line of context, wrong start", numbers.shifted_far, context=1),
    Kind("almost equal lines where it points", numbers.all_at_one, change=beds.decoy, group=Group.LOSSY),
    Kind("hunks swapped", names.hunks_swapped),
    Kind("two sections for a file", names.split_sections),
    Kind("no a/ b/", names.no_prefixes),
    Kind("no diff --git lines", names.no_git_lines),
    Kind("times behind names", names.timestamps),
    Kind("fence with diff", text=wrapping.fenced_as_diff),
    Kind("plain fence", text=wrapping.fenced),
    Kind("prose around", text=wrapping.talked_around),
    Kind("CRLF diff, LF file", text=whitespace.crlf_diff),
    Kind("no final newline of the diff", text=whitespace.no_final_newline),
    Kind("old lines are gone", files=beds.gone, group=Group.UNFIT),
    Kind("applied already", files=beds.already, group=Group.UNFIT),
    Kind("old lines twice, no numbers", numbers.no_numbers, change=beds.twin, group=Group.UNFIT),
)
PAIR = "two kinds at once"
NAMES = (*(kind.name for kind in KINDS), PAIR)


def make_case(change: Change, name: str, seed: int) -> Case | None:
    """Return the change damaged as `name` says, or None where it cannot be; the same seed gives the same case."""
    random = Random(f"{seed}:{change.id}:{name}")
    if name == PAIR:
        return _pair(change, random)
    return _case(change, name, [next(kind for kind in KINDS if kind.name == name)], random)


def _pair(change: Change, random: Random) -> Case | None:
    able = [kind for kind in KINDS[1:] if kind.group is Group.WHOLE]
    for _ in range(20):
        first, second = sorted(random.sample(able, 2), key=KINDS.index)
        # Of two kinds that ask for other files or another width of context, one would undo the other.
        if (first.change and second.change) or (first.context, second.context) not in {
            (3, 3),
            (3, 12),
            (12, 3),
            (3, 1),
        }:
            continue
        case = _case(change, PAIR, [first, second], random)
        if case is not None:
            return case
    return None


def _case(change: Change, name: str, kinds: list[Kind], random: Random) -> Case | None:
    for kind in kinds:
        if kind.change is not None:
            altered = kind.change(change, random)
            if altered is None:
                return None
            change = altered
    width = next((kind.context for kind in kinds if kind.context != 3), 3)
    sound = read_draft(diff_of(change, width))
    draft = sound
    for kind in kinds:
        if kind.draft is not None:
            damaged = kind.draft(draft, random)
            if damaged is None:
                return None
            draft = damaged
    text = draft.text()
    for kind in kinds:
        if kind.text is not None:
            spoiled = kind.text(text, random)
            if spoiled is None:
                return None
            text = spoiled
    return _laid(change, name, kinds, draft, text, random)


def _laid(change: Change, name: str, kinds: list[Kind], draft: Draft, text: str, random: Random) -> Case | None:
    group = kinds[0].group
    case_id = f"{' + '.join(kind.name for kind in kinds)} · {change.id}"
    pre, unclear = change.pre, _unclear(change, draft)
    if kinds[0].files is not None:
        other = kinds[0].files(change, draft, random)
        if other is None:
            return None
        return Case(case_id, name, group, text, other, other, unclear)
    if group is Group.UNFIT:
        return Case(case_id, name, group, text, pre, pre, unclear) if unclear else None
    return Case(case_id, name, group, text, pre, change.post, unclear)


def _unclear(change: Change, draft: Draft) -> bool:
    for drafted in draft.files:
        file = next(file for file in change.files if file.path == drafted.path)
        if file.pre and file.post and len(draft.files) == len(change.files):
            others = results(file.pre, drafted.hunks) - {bare(file.post)}
            if others:
                return True
    return False
