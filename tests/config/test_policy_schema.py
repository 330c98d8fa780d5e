"""JSON Schemas of policies and queue files: they take and refuse what the readers take and refuse."""

from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from agent_workbench.adapters.plans.queue_schema import queue_task_schema
from agent_workbench.adapters.plans.queued_task import KEYS
from agent_workbench.bootstrap.task_queue import read_definition
from agent_workbench.config.policy_file import ALLOWED, load_policy
from agent_workbench.config.policy_schema import policy_schema
from agent_workbench.config.schema import setting_keys
from agent_workbench.core.errors import ConfigError, PlanError
from agent_workbench.core.plan import TaskOrigin
from agent_workbench.core.settings import Permission
from agent_workbench.core.tools.permissions import PERMISSIONS
from agent_workbench.core.yaml_documents.json_schema import JsonSchema

POLICIES = [
    *("approvals: {diff: auto, check: once}", "approvals: {diff: once}", "approvals: {dif: auto}", "approvals: []"),
    *("approvals: {diff: }", "approvals:", "limits: {command_seconds: 0}", "limits: {command_seconds: 0.5}"),
    *("limits: {command_seconds: -1}", "limits: {max_reflexion_retries: 0}", "limits: {max_reflexion_retries: 1.5}"),
    *(
        "limits: {review: yes}",
        "limits: {review: true}",
        "limits: {reflexion: sometimes}",
        "limits: {reflexion: never}",
    ),
    *("tools_allowed: [grep, vector_search]", "tools_allowed: [grep, rm]", "tools_allowed: grep", "tools_allowed: [1]"),
    *("sandbox: {network: false, user: agent}", "sandbox: {user: 1}", "sandbox: {unconfined: true}", "sandbox: true"),
    *("model: {name: x}", "ui: {theme: nord}", "approvals: {rules: }", "approvals: {rules: [diff]}"),
    "approvals: {rules: [{kind: diff, paths: [src/**]}, {kind: command, program: git}]}",
    "approvals: {rules: [{kind: check, any: true, commands: [x]}]}",
    "approvals: {rules: [{kind: merge, any: true}]}",
    "approvals: {rules: [{kind: command, any: true}]}",
    "approvals: {rules: [{kind: check, commands: []}]}",
    "approvals: {rules: [{any: true}]}",
    "approvals: {rules: [{kind: check, any: false}]}",
]
TASKS = [
    *("goal: x", "description: x", "goal: ", "{}", "[]", "text", "goal: 1", "goal: {a: b}", "priority: 3", "goals: x"),
    *("goal: x\npriority: 3", "goal: x\npriority: -3", "goal: x\npriority: high", "goal: x\norigin: local"),
    *(
        "goal: x\nid: T-1",
        "goal: x\nid: 1T",
        "goal: x\nid: a b",
        "goal: x\nparent_issue: 7",
        "goal: x\nparent_issue: -7",
    ),
    *("goal: x\nsubtask: 1/4", "goal: x\nsubtask: 1 of 4", "goal: x\nverify: [a, {command: b}]", "goal: x\nverify: a"),
    *(
        "goal: x\nverify: [{command: b, shell: c}]",
        "goal: x\nverify: [[a]]",
        "goal: x\nverify:",
        "goal: x\nstatus: done",
    ),
    *("goal: x\nconstraints: {timeout_seconds: 1.5}", "goal: x\nconstraints: {timeout: 1}", "goal: x\nscope: []"),
    *("goal: x\nedits: [{path: a, content: b}]", "goal: x\nedits: [{path: a}]", "goal: x\nedits: [{diff: a, path: b}]"),
    *(
        "goal: x\nedits: [{path: a, find: b, replace: c}]",
        "goal: x\nedits: {path: a}",
        "goal: x\nbudget: {tokens: 1.5}",
    ),
    *("goal: x\nscope: {allowed_write_globs: [a]}", "goal: x\ndepends_on: [T-1]", "goal: x\nowner: agent"),
]


def takes(schema: JsonSchema, text: str) -> bool:
    Draft202012Validator.check_schema(schema)
    # The reader refuses what YAML's versions read in different ways, so that both see the same values.
    return Draft202012Validator(schema).is_valid(YAML(typ="safe", pure=True).load(text))


@pytest.mark.parametrize("text", POLICIES)
def test_a_policy_is_taken_by_both_or_by_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "p.yml").write_text(text)
    try:
        load_policy(tmp_path / "p.yml")
        read = True
    except ConfigError:
        read = False
    # A whole that is left open is no mapping, but an empty policy for the reader.
    assert takes(policy_schema(), text) == read


@pytest.mark.parametrize("text", TASKS)
def test_a_task_is_taken_by_both_or_by_none(text: str) -> None:
    try:
        read_definition(text, TaskOrigin.LOCAL, "q.yaml")
        read = True
    except PlanError:
        read = False
    assert takes(queue_task_schema(), text) == read


@pytest.mark.slow
def test_every_key_and_every_form_of_a_rule_is_in_the_schema(tmp_path: Path) -> None:
    assert set(queue_task_schema()["properties"]) == set(KEYS)  # type: ignore[arg-type]
    policy = str(policy_schema())
    for key in setting_keys():
        if key.startswith(ALLOWED):
            assert repr(key.rpartition(".")[2]) in policy
    examples = {
        "any": "true",
        "commands": "[x]",
        "program": "make",
        "paths": "[src/a.py]",
        "tool": "t@0123456789abcdef",
    }
    for kind in Permission:
        for field, said in examples.items():
            fits = field in PERMISSIONS[kind].rule_fields
            text = f"approvals: {{rules: [{{kind: {kind}, {field}: {said}}}]}}"
            assert takes(policy_schema(), text) == fits
