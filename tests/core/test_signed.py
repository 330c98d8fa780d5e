"""Bytes that signatures cover."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from agent_workbench.core.signed import SignedPurpose, signed_message

PARTS = st.lists(st.one_of(st.text("ab:\n1 ", max_size=4), st.integers(0, 99)), max_size=4)


class TestSignedMessage:
    """One form, in which no two things look the same."""

    def test_the_form_of_version_1_never_changes(self) -> None:
        message = signed_message(SignedPurpose.JOURNAL, "20260102T030405-abc234", 7, b"\x00\xff")
        assert message == b"agent-workbench/1 agent-journal\n22:20260102T030405-abc234\n1:7\n2:\x00\xff\n"

    @given(PARTS, PARTS)
    def test_two_lists_of_parts_have_two_messages(self, one: list[str | int], other: list[str | int]) -> None:
        same = [str(each) for each in one] == [str(each) for each in other]
        messages = (signed_message(SignedPurpose.TASK, *one), signed_message(SignedPurpose.TASK, *other))
        assert (messages[0] == messages[1]) is same

    def test_what_is_signed_for_one_purpose_is_signed_for_no_other(self) -> None:
        for one, other in combinations(SignedPurpose, 2):
            assert signed_message(one, "x") != signed_message(other, "x")

    def test_a_lone_surrogate_is_signed_as_it_is(self) -> None:
        assert signed_message(SignedPurpose.RESULT, "\udc80").endswith(b"3:\xed\xb2\x80\n")
