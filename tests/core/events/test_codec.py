import json
import math
import re
import typing
from collections.abc import Callable

import pytest
from hypothesis import given
from msgspec import Struct
from msgspec.structs import fields

from agent_workbench.core import events as e
from agent_workbench.core.checks.results import CheckPurpose
from agent_workbench.core.errors import JournalError
from agent_workbench.core.events.codec import (
    RECORDED_FIELDS,
    JsonObject,
    change_texts,
    decode_event,
    encode_event,
    event_classes,
    kind_of,
)
from agent_workbench.core.ids import ProposalId, TaskId
from agent_workbench.core.plan import Plan, Task, TaskStatus
from agent_workbench.core.proposal_kinds import KINDS
from agent_workbench.core.recorded_value import RecordedValue
from agent_workbench.core.settings import Permission
from agent_workbench.core.tools.strict_json import JsonValue
from tests.strategies import events


@given(events())
def test_what_goes_in_comes_out(event: e.Event) -> None:
    kind, body = encode_event(event)
    assert body == json.loads(json.dumps(body)), "a tuple is no list"
    assert decode_event(kind, json.loads(json.dumps(body, allow_nan=False))) == event


@given(events())
def test_the_types_of_what_comes_out_are_exact(event: e.Event) -> None:
    # A plain string equals its enumeration, a 1 its 1.0: equality alone would not tell.
    again = decode_event(*encode_event(event))
    assert repr(again) == repr(event)


def test_every_event_class_has_its_kind() -> None:
    assert len(event_classes()) == len(typing.get_args(e.Event))
    assert event_classes()["session_started"] is e.SessionStarted
    assert kind_of(e.TestsFinished) == "tests_finished"


def _structs_of(hint: object) -> set[type]:
    found: set[type] = set()
    if isinstance(hint, type) and issubclass(hint, Struct):
        found.add(hint)
        for each in typing.get_type_hints(hint).values():
            found |= _structs_of(each)
    for argument in typing.get_args(hint):
        found |= _structs_of(argument)
    return found


def test_no_value_looks_like_a_blob() -> None:
    # The journal puts {"blob": ..., "bytes": ...} in place of long texts.
    for cls in _structs_of(e.Event):
        assert {field.name for field in fields(cls)} != {"blob", "bytes"}


def test_a_missing_field_takes_its_default() -> None:
    assert decode_event("session_resumed", {}) == e.SessionResumed(0)
    plan = decode_event("plan_read", {"path": "p", "plan": {"tasks": [{"id": "T-1", "description": "d"}]}})
    assert plan == e.PlanRead("p", Plan((Task(TaskId("T-1"), "d"),)))


FINISHED: JsonObject = {"proposal_id": "p", "result": "ok", "observation": "o", "seconds": 1.5}
TESTS: JsonObject = {
    "purpose": "final",
    "results": [{"command": "c", "exit_code": None, "output": "", "seconds": 0.0, "failed_tests": ["a", "b"]}],
}


PROPOSAL: JsonObject = {"id": "P-1", "kind": "diff", "tool": "write_diff", "text": "t", "step": 1}


@pytest.mark.parametrize("name", PROPOSAL)
def test_a_proposal_is_recorded_with_these_fields(name: str) -> None:
    with pytest.raises(JournalError, match=f"missing field {name}"):
        decode_event("action_proposed", {"proposal": {key: PROPOSAL[key] for key in PROPOSAL if key != name}})


@pytest.mark.parametrize("kind", Permission)
def test_every_kind_of_proposal_is_recorded_with_the_fields_of_all(kind: Permission) -> None:
    event = decode_event("action_proposed", {"proposal": PROPOSAL | {"kind": kind.value}})
    assert isinstance(event, e.ActionProposed)
    assert type(event.proposal) is KINDS[kind]
    name, body = encode_event(event)
    recorded = body["proposal"]
    assert isinstance(recorded, dict)
    assert tuple(recorded) == RECORDED_FIELDS
    assert {key: recorded[key] for key in PROPOSAL} == PROPOSAL | {"kind": kind.value}
    assert decode_event(name, body) == event


def test_the_bodies_the_refusals_start_from_are_good() -> None:
    decode_event("action_proposed", {"proposal": PROPOSAL})
    decode_event("action_finished", FINISHED)
    finished = decode_event("tests_finished", TESTS)
    assert isinstance(finished, e.TestsFinished)
    assert finished.purpose is CheckPurpose.FINAL


@pytest.mark.parametrize(
    ("kind", "body", "named"),
    [
        ("nothing_known", {}, "nothing_known"),
        ("action_finished", [], "expected an object, found a list"),
        ("action_finished", None, "expected an object, found nothing"),
        ("action_finished", FINISHED | {"colour": "red"}, "unknown field colour"),
        ("action_finished", {"proposal_id": "p", "result": "ok"}, "missing field observation"),
        ("action_finished", FINISHED | {"observation": 3}, "observation: expected a text, found a whole number"),
        ("action_finished", FINISHED | {"observation": None}, "observation: expected a text, found nothing"),
        ("action_finished", FINISHED | {"result": "fine"}, "result: 'fine' is not a known value"),
        ("action_finished", FINISHED | {"result": ["ok"]}, "result: expected a text, found a list"),
        ("action_finished", FINISHED | {"seconds": math.nan}, "seconds: expected a finite number, found nan"),
        ("action_finished", FINISHED | {"seconds": -math.inf}, "seconds: expected a finite number, found -inf"),
        ("action_finished", FINISHED | {"seconds": 1e308}, "seconds: expected a finite number, found 1e+308"),
        ("action_finished", FINISHED | {"seconds": True}, "seconds: expected a number, found true or false"),
        ("action_finished", FINISHED | {"seconds": 10**400}, "seconds: Number out of range"),
        ("action_finished", FINISHED | {"cut_bytes": 1.0}, "cut_bytes: expected a whole number, found a number"),
        ("action_finished", FINISHED | {"cut_bytes": False}, "cut_bytes: expected a whole number, found true or false"),
        (
            "action_finished",
            FINISHED | {"cut_bytes": 10**5000},
            "cut_bytes: expected a number of at most 64 bits",
        ),
        ("action_proposed", {}, "missing field proposal"),
        ("action_proposed", {"proposal": "all"}, "proposal: expected an object, found a text"),
        ("action_proposed", {"proposal": PROPOSAL | {"colour": "red"}}, "proposal: unknown field colour"),
        ("action_proposed", {"proposal": PROPOSAL | {"playbook": 1}}, "proposal: unknown field playbook"),
        ("action_proposed", {"proposal": PROPOSAL | {"kind": "fine"}}, "proposal.kind: 'fine' is not a known value"),
        ("action_proposed", {"proposal": PROPOSAL | {"kind": ["diff"]}}, "proposal.kind: expected a text"),
        ("action_proposed", {"proposal": PROPOSAL | {"diff": 1}}, "proposal.diff: expected a text"),
        ("tests_finished", TESTS | {"results": "all"}, "results: expected a list, found a text"),
        (
            "tests_finished",
            TESTS | {"results": [{"command": 1}]},
            "results[0].command: expected a text, found a whole number",
        ),
        ("approval_changed", {"kind": "diff", "always": 1}, "always: expected true or false, found a whole number"),
        (
            "plan_read",
            {"path": "", "plan": {"tasks": [{"id": "T-1", "description": "d", "budget": {"tokens": "9"}}]}},
            "plan.tasks[0].budget.tokens: expected a whole number or nothing, found a text",
        ),
        (
            "tests_finished",
            {
                "purpose": "final",
                "results": [
                    {"command": "c", "exit_code": 0, "output": "", "seconds": 0.0, "failed_tests": ["a", 7]},
                ],
            },
            "results[0].failed_tests[1]: expected a text, found a whole number",
        ),
    ],
)
def test_what_does_not_fit_is_named(kind: str, body: JsonObject, named: str) -> None:
    with pytest.raises(JournalError, match=re.escape(named)) as refused:
        decode_event(kind, body)
    assert kind in str(refused.value)


def _wrong(value: object) -> typing.Any:
    """Return a value where the types would not let it through."""
    return value


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (
            lambda: e.ActionFinished(ProposalId("p"), e.ActionResult.OK, "o", seconds=math.nan),
            "seconds: expected a finite number, found nan",
        ),
        (
            lambda: e.ActionFinished(ProposalId("p"), e.ActionResult.OK, "o", seconds=math.inf),
            "seconds: expected a finite number, found inf",
        ),
        (lambda: e.ActionFinished(ProposalId("p"), e.ActionResult.OK, _wrong(b"o")), "observation: "),
        (lambda: e.PlanRead("p", plan=_wrong("no plan")), "plan: "),
        (lambda: e.SessionResumed(2**70), "torn_bytes: "),
    ],
)
def test_what_could_not_be_read_back_is_not_written(make: Callable[[], e.Event], named: str) -> None:
    with pytest.raises(JournalError, match=re.escape(named)):
        encode_event(make())


def test_what_is_no_event_is_refused() -> None:
    with pytest.raises(JournalError, match="Plan is not an event"):
        encode_event(typing.cast(e.Event, Plan()))


def test_a_whole_number_of_seconds_is_written_with_its_point() -> None:
    _, body = encode_event(e.ActionFinished(ProposalId("p"), e.ActionResult.OK, "o", seconds=2))
    assert json.dumps(body["seconds"]) == "2.0"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("session_resumed", {"torn_bytes": "x" * 1_000_000}),
        ("action_finished", FINISHED | {"result": "x" * 1_000_000}),
        ("action_finished", FINISHED | {"x" * 1_000_000: 1}),
        ("action_finished", FINISHED | {"\x1b]0;title\x07\n": 1}),
        ("x" * 1_000_000, FINISHED),
        ("\x1b[31m", FINISHED),
        ("\ud800", FINISHED),
        ("action_finished", FINISHED | {"result": "\ud800"}),
        ("action_finished", FINISHED | {"\ud800": 1}),
    ],
)
def test_an_error_is_one_short_line_without_control_codes(kind: str, body: JsonObject) -> None:
    with pytest.raises(JournalError) as refused:
        decode_event(kind, body)
    assert len(str(refused.value)) < 400
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("levels", [10, 500, 100_000])
def test_nesting_of_any_depth_is_refused(levels: int) -> None:
    nested: JsonValue = "text"
    for _ in range(levels):
        nested = [nested]
    with pytest.raises(JournalError, match="expected a text, found a list"):
        decode_event("action_finished", FINISHED | {"observation": nested})


def test_every_value_of_an_event_refuses_unknown_fields() -> None:
    for cls in _structs_of(e.Event):
        assert issubclass(cls, RecordedValue), cls


def test_changing_texts_leaves_names_alone() -> None:
    event = e.TaskFinished(TaskId("task"), TaskStatus.FAILED, "the task failed")
    assert change_texts(event, str.upper) == e.TaskFinished(TaskId("task"), TaskStatus.FAILED, "THE TASK FAILED")


def test_changing_texts_reaches_everything_nested() -> None:
    plan = Plan((Task(TaskId("T-1"), "say hush", accept_tests=("echo hush",)),), goal="hush")
    changed = change_texts(e.PlanRead("hush.yaml", plan), lambda text: text.replace("hush", "*"))
    assert changed == e.PlanRead("*.yaml", Plan((Task(TaskId("T-1"), "say *", accept_tests=("echo *",)),), goal="*"))


@given(events())
def test_changing_nothing_changes_nothing(event: e.Event) -> None:
    assert repr(change_texts(event, lambda text: text)) == repr(event)
