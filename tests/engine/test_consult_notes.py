"""Notes in the answers of retrospective and trainer."""

from agent_workbench.core.knowledge import read_head
from agent_workbench.engine.consultation import MAX_NOTE_CHARS, MAX_NOTES, proposed_notes

RETROSPECTIVE = """\
### Close what you open
**Learning**: a server outlives its client.
**Context**: debug found it.
**Recommendation**: end it in a finally.

### Not one
Only words.

### Close what you open
**Learning**: again.

2 learnings worth writing to brain
"""
TRAINER = """\
# [Retry "late"]

## Lesson
Wait before the second try.

## Example
sleep

---

# Other

## Lesson
Two.

2 entries ready for brain_write
"""


def test_each_learning_is_a_note() -> None:
    first, second = proposed_notes("retrospective", RETROSPECTIVE)
    assert (first.name, second.name) == ("close-what-you-open", "close-what-you-open-2")
    assert "title: " in first.text.split("\n")[1]
    assert "# Close what you open\n\n**Learning**" in first.text
    assert "worth writing" not in second.text


def test_each_entry_of_the_trainer_is_a_note() -> None:
    first, second = proposed_notes("trainer", TRAINER)
    assert first.name == "retry-late"
    assert read_head(first.text).title.startswith("Retry")
    assert "## Example\nsleep" in first.text
    assert second.text.endswith("## Lesson\nTwo.\n")


def test_hostile_titles_become_plain_names() -> None:
    (note,) = proposed_notes("trainer", "# ../../etc/passwd\x1b[2J\n\n## Lesson\nx")
    assert note.name.startswith("etc-passwd")
    assert "\x1b" not in note.text
    (other,) = proposed_notes("trainer", "# ☃\n## Lesson\nx")
    assert other.name == "note"


def test_notes_are_bounded_and_others_have_none() -> None:
    many = "\n".join(f"# n{number}\n## Lesson\n{'x' * 2 * MAX_NOTE_CHARS}" for number in range(MAX_NOTES + 5))
    found = proposed_notes("trainer", many)
    assert len(found) == MAX_NOTES
    assert all(len(each.text) <= MAX_NOTE_CHARS + 200 for each in found)
    assert proposed_notes("review", RETROSPECTIVE) == ()
