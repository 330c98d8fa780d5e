"""OpenTelemetry's own reader reads the exported spans of a recorded session, and its list of names has ours."""

import json
from collections import Counter
from typing import Any

from google.protobuf.json_format import ParseDict  # type: ignore[import-untyped]  # it has no stubs
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
from opentelemetry.semconv._incubating.attributes import error_attributes, gen_ai_attributes, service_attributes

from agent_workbench.views.telemetry import attribute_names
from tests.e2e.conftest import machine
from tests.e2e.machine import Machine
from tests.e2e.test_recorded import EXPECTED, unpacked

__all__ = ["machine"]

NAME = next(name for name in EXPECTED if name.startswith("two-tasks"))
CONTENT = {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true"}
CONVENTIONS = {
    value
    for module in (error_attributes, gen_ai_attributes, service_attributes)
    for value in vars(module).values()
    if isinstance(value, str)
}


def exported(machine: Machine, environ: dict[str, str] | None = None) -> dict[str, Any]:
    """Return the exported document of a session with two tasks."""
    repo, session = unpacked(machine, *NAME.split("/"))
    done = machine.agent("sessions", "export", session, "--format", "otlp", cwd=repo, environ=environ)
    assert done.code == 0, done.said
    document: dict[str, Any] = json.loads(done.out)
    return document


def spans_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    (resource,) = document["resourceSpans"]
    (scope,) = resource["scopeSpans"]
    found: list[dict[str, Any]] = scope["spans"]
    return found


def attributes_of(span: dict[str, Any]) -> dict[str, Any]:
    return {each["key"]: next(iter(each["value"].values())) for each in span["attributes"]}


def test_a_session_becomes_spans_that_the_reader_of_the_field_reads(machine: Machine) -> None:
    document = exported(machine)
    assert ParseDict(document, TracesData()).resource_spans
    spans = spans_of(document)
    assert len({span["traceId"] for span in spans}) == 1
    assert len({span["spanId"] for span in spans}) == len(spans)
    by_operation = Counter(attributes_of(span)[attribute_names.OPERATION] for span in spans)
    assert by_operation["invoke_agent"] == 2
    assert by_operation["chat"] == EXPECTED[NAME]["prompts"]
    assert by_operation["execute_tool"] >= 4
    tasks = {span["spanId"]: span for span in spans if "parentSpanId" not in span}
    for span in spans:
        assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
        if parent := tasks.get(span.get("parentSpanId", "")):
            assert int(parent["startTimeUnixNano"]) <= int(span["startTimeUnixNano"])
    keys = {key for span in spans for key in attributes_of(span)}
    assert {key for key in keys if not key.startswith("agent_workbench.")} <= CONVENTIONS


def test_what_was_said_is_exported_only_where_it_is_asked_for(machine: Machine) -> None:
    said = {attribute_names.OUTPUT_MESSAGES, attribute_names.TOOL_ARGUMENTS, attribute_names.TOOL_RESULT}
    without = {key for span in spans_of(exported(machine)) for key in attributes_of(span)}
    assert not said & without
    machine.run(["rm", "-r", NAME.partition("/")[0]], machine.folder)
    with_content = {key for span in spans_of(exported(machine, CONTENT)) for key in attributes_of(span)}
    assert said <= with_content
