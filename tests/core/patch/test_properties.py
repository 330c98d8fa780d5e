"""Properties of every diff: it makes exactly the right contents, or it is refused."""

from contextlib import suppress
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agent_workbench.core.errors import PatchError
from agent_workbench.core.patch.comparison import compare_contents
from agent_workbench.core.patch.diff_text import canonical_patch, patch_stat, render_changes, render_patch
from agent_workbench.core.patch.patch_reader import parse_patch
from agent_workbench.core.patch.values import FileChange, FileContent, Hunk, HunkLine, LineKind, Patch, selectable_ids
from tests.core.patch.diffs import content, edits, fitted, keep_hunks, outcome, texts

PATH = "a b/é.py"
Lines = list[tuple[str, bool]]


def diff_of(before: str, after: str) -> str:
    return render_changes([FileChange(PATH, content(before), content(after))])


def result(patch: Patch, before: str) -> str:
    after = outcome(patch, {PATH: content(before)})[PATH]
    assert after is not None
    return after.data.decode()


def lines_of(text: str) -> Lines:
    *lines, last = text.split("\n")
    return [(line, True) for line in lines] + [(last, False)] * bool(last)


def joined(lines: Lines) -> str | None:
    """Return the text of these lines; None if one that is not the last has no line feed."""
    if not all(newline for _, newline in lines[:-1]):
        return None
    return "".join(text + "\n" * newline for text, newline in lines)


def to_the_letter(patch: Patch, before: str) -> str | None:
    """Apply a patch where its headers say, to the byte; None if that cannot be done. The oracle of these tests."""
    old = lines_of(before)
    new: Lines = []
    done = 0
    for hunk in patch.files[0].hunks:
        at = max(hunk.old_start - 1, 0)
        expected = [(line.text, line.newline) for line in hunk.old]
        if at < done or old[at : at + len(expected)] != expected:
            return None
        new += old[done:at] + [(line.text, line.newline) for line in hunk.new]
        done = at + len(expected)
    return joined(new + old[done:])


def with_hunks(patch: Patch, hunks: list[Hunk]) -> Patch:
    return Patch((replace(patch.files[0], hunks=tuple(hunks)),))


def in_style(made: set[str | None], patch: Patch, before: str) -> set[str | None]:
    """Return the results with those in CRLF, if all line ends of the file are CRLF and none in the diff."""
    lines = [line.text for hunk in patch.files[0].hunks for line in hunk.lines]
    ends = [text.endswith("\r") for text, newline in lines_of(before) if newline]
    if not ends or not all(ends) or any(text.endswith("\r") for text in lines):
        return made
    return made | {text and text.replace("\r\n", "\n").replace("\n", "\r\n") for text in made}


def expect_right_or_refused(patch: Patch, before: str, after: str) -> None:
    with suppress(PatchError):
        made = fitted(render_patch(patch), before, PATH)
        assert made in in_style({after, to_the_letter(patch, before)}, patch, before)
    with suppress(PatchError):
        assert result(patch, before) == to_the_letter(patch, before)


@given(edits())
def test_a_rendered_diff_makes_exactly_the_same_contents(edit: tuple[str, str]) -> None:
    before, after = edit
    patch = parse_patch(diff_of(before, after))
    assert result(patch, before) == after
    assert to_the_letter(patch, before) == after


@given(edits(60))
def test_a_comparison_is_the_patch_that_its_text_is_read_as(edit: tuple[str, str]) -> None:
    change = FileChange(PATH, *map(content, edit))
    assert compare_contents([change]) == parse_patch(render_changes([change]))


@given(edits())
def test_a_patch_is_rendered_as_it_was_read(edit: tuple[str, str]) -> None:
    diff = diff_of(*edit)
    patch = parse_patch(diff)
    assert render_patch(patch) == diff
    kinds = [line.kind for file in patch.files for hunk in file.hunks for line in hunk.lines]
    assert patch_stat(patch) == (kinds.count(LineKind.ADDED), kinds.count(LineKind.REMOVED))


contents = st.none() | st.builds(FileContent, texts(8).map(str.encode), st.booleans())


@given(st.lists(st.tuples(contents, contents), min_size=1, max_size=5))
def test_files_that_come_go_and_change_their_mode(pairs: list[tuple[FileContent | None, FileContent | None]]) -> None:
    changes = [FileChange(f"d/{number}", *pair) for number, pair in enumerate(pairs) if pair[0] != pair[1]]
    diff = render_changes(changes)
    assert bool(diff) is bool(changes)
    if changes:
        patch = parse_patch(diff)
        assert compare_contents(changes) == patch
        assert outcome(patch, {each.path: each.before for each in changes}) == {
            each.path: each.after for each in changes
        }
        assert render_patch(patch) == diff


@given(edits(), st.data())
def test_wrong_line_numbers_never_misplace_a_hunk(edit: tuple[str, str], data: st.DataObject) -> None:
    patch = parse_patch(diff_of(*edit))
    shifts = st.one_of(st.just(0), st.integers(-8, 8), st.integers(0, 999_999_999))
    hunks = [replace(hunk, old_start=max(0, hunk.old_start + data.draw(shifts))) for hunk in patch.files[0].hunks]
    expect_right_or_refused(with_hunks(patch, hunks), *edit)


@given(edits(), st.data())
def test_less_context_never_misplaces_a_hunk(edit: tuple[str, str], data: st.DataObject) -> None:
    patch = parse_patch(diff_of(*edit))
    hunks = []
    for hunk in patch.files[0].hunks:
        shift = data.draw(st.integers(-2, 2))
        hunks.append(replace(hunk, old_start=max(0, hunk.old_start + shift), lines=without_edges(hunk, data)))
    # Only outer context is dropped, so the other lines are still consecutive at their old position.
    expect_right_or_refused(with_hunks(patch, hunks), *edit)


def without_edges(hunk: Hunk, data: st.DataObject) -> tuple[HunkLine, ...]:
    context = [line.kind is LineKind.CONTEXT for line in hunk.lines]
    head, tail = [*context, False].index(False), [*context[::-1], False].index(False)
    return hunk.lines[data.draw(st.integers(0, head)) : len(hunk.lines) - data.draw(st.integers(0, tail))]


@given(edits(), st.data())
def test_a_lost_line_never_misplaces_a_hunk(edit: tuple[str, str], data: st.DataObject) -> None:
    before, after = (text.replace("\r", "") for text in edit)
    if before == after:
        return
    patch = parse_patch(diff_of(before, after))
    hunks = list(patch.files[0].hunks)
    number = data.draw(st.integers(0, len(hunks) - 1))
    lines = hunks[number].lines
    context = [index for index, line in enumerate(lines) if line.kind is LineKind.CONTEXT]
    if not context:
        return
    lost = data.draw(st.sampled_from(context))
    hunks[number] = replace(hunks[number], lines=(*lines[:lost], *lines[lost + 1 :]))
    mutated = with_hunks(patch, hunks)
    # A gap inside makes another diff. If that matches somewhere, it may change only its own lines there.
    with suppress(PatchError):
        made = result(mutated, before)
        assert made in {after, to_the_letter(mutated, before)} or made in anywhere(mutated, before)


def anywhere(patch: Patch, before: str) -> set[str | None]:
    """Return the results of placing the hunks exactly, in order, at every possible combination of positions."""
    size = len(lines_of(before))
    made: set[str | None] = set()

    def place(hunks: tuple[Hunk, ...], done: list[Hunk]) -> None:
        if not hunks:
            made.add(to_the_letter(with_hunks(patch, done), before))
            return
        for start in range(1, size + 1):
            candidate = [*done, replace(hunks[0], old_start=start)]
            if all(a.old_start + len(a.old) <= b.old_start for a, b in pairwise(candidate)) and stands(candidate[-1]):
                place(hunks[1:], candidate)

    def stands(hunk: Hunk) -> bool:
        return to_the_letter(with_hunks(patch, [replace(hunk, lines=hunk.old)]), before) is not None

    place(patch.files[0].hunks, [])
    return made


@given(edits(), texts(6), st.booleans())
def test_lines_that_came_meanwhile_never_misplace_a_hunk(edit: tuple[str, str], more: str, double: bool) -> None:
    before, after = edit
    head = before if double else more
    head = head if not head or head.endswith("\n") else head + "\n"
    # In a doubled file every context occurs twice.
    expect_right_or_refused(parse_patch(diff_of(before, after)), head + before, head + after)


@given(edits())
def test_a_forgotten_marker_on_context_changes_nothing(edit: tuple[str, str]) -> None:
    patch = parse_patch(diff_of(*edit))
    hunks = [
        replace(
            hunk,
            lines=tuple(replace(line, newline=line.newline or line.kind is LineKind.CONTEXT) for line in hunk.lines),
        )
        for hunk in patch.files[0].hunks
    ]
    expect_right_or_refused(with_hunks(patch, hunks), *edit)


@given(edits(), st.data())
def test_a_diff_without_carriage_returns_fits_a_file_that_has_them(edit: tuple[str, str], data: st.DataObject) -> None:
    before, after = (text.replace("\r", "") for text in edit)
    if before == after:
        return
    patch = parse_patch(diff_of(before, after))
    crlf_before, crlf_after = before.replace("\n", "\r\n"), after.replace("\n", "\r\n")
    if "\n" not in before:
        crlf_after = after  # No line of the file has a CRLF.
    with suppress(PatchError):
        assert fitted(render_patch(patch), crlf_before, PATH) == crlf_after


@given(edits(60), st.data())
def test_taken_hunks_make_what_they_make_alone(edit: tuple[str, str], data: st.DataObject) -> None:
    before, _ = edit
    patch = parse_patch(diff_of(*edit))
    taken = data.draw(st.sets(st.sampled_from(selectable_ids(patch)), min_size=1))
    kept = keep_hunks(patch, taken)
    assert canonical_patch(kept) == parse_patch(render_patch(kept))
    expected = to_the_letter(with_hunks(patch, [hunk for hunk in patch.files[0].hunks if hunk.id in taken]), before)
    made = None
    with suppress(PatchError):
        made = result(kept, before)
        assert result(parse_patch(render_patch(kept)), before) == made
    assert made == expected


@given(edits(60))
def test_all_hunks_are_the_whole(edit: tuple[str, str]) -> None:
    patch = parse_patch(diff_of(*edit))
    assert keep_hunks(patch, selectable_ids(patch)) == patch
    assert len(set(selectable_ids(patch))) == len(selectable_ids(patch))
