"""Conventions of commit subjects: which one a repository follows, and the check of a new subject."""

import re
from collections.abc import Sequence
from enum import StrEnum

SUBJECT_CHARS = 72
LOOKED_AT = 20
LEAST_SUBJECTS = 5
"""With fewer commits than these no convention is assumed."""


class CommitConvention(StrEnum):
    """Form of commit subjects; `none` where a repository has no common one."""

    NONE = ""
    CONVENTIONAL = "conventional"
    AREA = "area"
    IMPERATIVE = "imperative"


_TYPES = "build|chore|ci|docs|feat|fix|perf|refactor|revert|style|test"
_TYPED = re.compile(rf"(?:{_TYPES})(?:\([^()\s][^()]{{0,40}}\))?!?: (\S.*)")
_AREA = re.compile(r"[\w./*@+#-]{1,40}(?:[,/] ?[\w./*@+#-]{1,40}){0,3}: (\S.*)")
_WORD = re.compile(r"([A-Za-z']+)(?: \S.*)")
_VERB_LIST = """
accept add adjust align allow annotate apply assert avoid backport batch bound bring build bump cache call
change check clarify clean close collect combine compare compute configure convert copy correct cover create cut
declare deduplicate default define delete deprecate describe detect disable disallow display do document don't
drop embed emit enable encode end enforce ensure escape exclude expand explain export expose extend extract fail
feed fetch fill filter find finish fix flatten follow forbid force format forward generate get give group guard
handle hide ignore implement import improve include increase inherit initialize inline insert install introduce
invert keep leave let limit link list load lock log lower make map mark match measure mention merge migrate mock
modernize move name normalize note omit open optimize pass pin ping point port prefer prepare preserve prevent
print propagate protect provide publish push put quote raise read rebuild record recover reduce refactor refuse
register reject relax release reload remove rename render reorder reorganize replace report require reset
resolve respect restore restrict restructure return reuse revert revise rework rewrite run save say search seed
select send separate serve set share shorten show simplify skip sort specify speed split start state stop store
strip support suppress swap switch sync tell test throw tidy touch track translate treat trim try turn tweak
undo unify update upgrade use validate verify wait warn wrap write
"""
_VERBS = frozenset(_VERB_LIST.split())
_NOT_IMPERATIVE = re.compile(r"[a-z]+(?:ed|ing)")


def common_convention(subjects: Sequence[str]) -> CommitConvention:
    """Return the convention that at least half of the newest subjects follow; they are given newest first."""
    seen = subjects[:LOOKED_AT]
    if len(seen) < LEAST_SUBJECTS:
        return CommitConvention.NONE
    kinds = (CommitConvention.CONVENTIONAL, CommitConvention.AREA, CommitConvention.IMPERATIVE)
    return next(
        (kind for kind in kinds if 2 * sum(_follows(each, kind) for each in seen) >= len(seen)), CommitConvention.NONE
    )


def subject_problem(subject: str, convention: CommitConvention) -> str:
    """Return what is wrong with a subject as the end of a sentence, empty if it follows the convention."""
    if not subject.strip():
        return "is empty"
    if len(subject) > SUBJECT_CHARS:
        return f"has {len(subject)} characters, and may have {SUBJECT_CHARS}"
    if not subject.isprintable() or subject != subject.strip():
        return "must be one line of printable characters, without spaces at its ends"
    if convention is CommitConvention.IMPERATIVE:
        first = subject.split(" ", 1)[0]
        if _WORD.fullmatch(subject) and (first.lower() in _VERBS or not _NOT_IMPERATIVE.fullmatch(first.lower())):
            return ""
    elif convention is CommitConvention.NONE or _follows(subject, convention):
        return ""
    return f"does not follow this repository's form: {convention_text(convention)}"


def convention_text(convention: CommitConvention) -> str:
    """Return a description of a convention with an example."""
    match convention:
        case CommitConvention.CONVENTIONAL:
            return "`type(scope): text` or `type: text`, such as `fix(parser): accept an empty line`"
        case CommitConvention.AREA:
            return "`area: text`, such as `parser: accept an empty line`"
        case CommitConvention.IMPERATIVE:
            return "it begins with a verb in the imperative, such as `Accept an empty line in the parser`"
        case CommitConvention.NONE:
            return ""


def _follows(subject: str, convention: CommitConvention) -> bool:
    match convention:
        case CommitConvention.CONVENTIONAL:
            return _TYPED.fullmatch(subject) is not None
        case CommitConvention.AREA:
            return _AREA.fullmatch(subject) is not None
        case CommitConvention.IMPERATIVE:
            word = _WORD.fullmatch(subject)
            return word is not None and word[1].lower() in _VERBS
        case CommitConvention.NONE:
            return False
