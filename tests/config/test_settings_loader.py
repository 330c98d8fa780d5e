import os
from pathlib import Path

import pytest

from agent_workbench.config.settings_loader import LoadedSettings, load_settings
from agent_workbench.core.errors import ConfigError
from agent_workbench.core.model import Purpose
from agent_workbench.core.settings import Approval, Settings

BYTES_OR_TEXT = bytes | str


def load(
    root: Path,
    file: BYTES_OR_TEXT | None = None,
    environ: dict[str, str] | None = None,
    flags: dict[str, str] | None = None,
) -> LoadedSettings:
    if file is not None:
        (root / ".agent.yml").write_bytes(file if isinstance(file, bytes) else file.encode())
    return load_settings(root, environ or {}, flags or {})


WHOLE = """\
model:
  path: ~/models/coder.gguf
  server: ~/bin/llama-server
  context_tokens: 32768
  name: coder
  api_key_env: MY_KEY
  answer_seconds: 1.5
  answer_tokens: 100
python: .venv/bin/python
test_command: pytest -q
lint_command: ruff check .
tools_allowed: [read_file, finish]
approvals: {read: ask, diff: auto, check: deny, command: ask, commit: ask, merge: ask}
limits: {max_tool_calls_per_task: 1, max_reflexion_retries: 0, consecutive_failure_threshold: 2, command_seconds: 3}
memory: {dir: notes, plan: PLAN.yaml}
retrieval: {top_n: 9, exclude: ["*.min.js"], chunker: {max_tokens: 300}}
workspace: {link: [.venv], keep: false}
skills: {dirs: [skills, more], max_tokens: 5}
sandbox: {network: true, require: true}
ui: {theme: nord, keys: {approve: y, quit: ctrl+q}}
"""


def test_every_key_arrives(tmp_path: Path) -> None:
    settings = load(tmp_path, WHOLE, {"HOME": "/home/me"}).settings
    assert settings.model.path == "/home/me/models/coder.gguf"
    assert settings.model.server == "/home/me/bin/llama-server"
    assert (settings.model.context_tokens, settings.model.name, settings.model.api_key_env) == (
        32768,
        "coder",
        "MY_KEY",
    )
    assert (settings.model.answer_seconds, settings.model.answer_tokens) == (1.5, 100)
    assert (settings.python, settings.test_command) == (".venv/bin/python", "pytest -q")
    assert settings.lint_command == "ruff check ."
    assert settings.tools_allowed == ("read_file", "finish")
    assert (settings.approvals.read, settings.approvals.diff, settings.approvals.check) == (
        Approval.ASK,
        Approval.AUTO,
        Approval.DENY,
    )
    assert settings.limits.command_seconds == 3.0
    assert isinstance(settings.limits.command_seconds, float)
    assert (settings.memory.dir, settings.memory.plan) == ("notes", "PLAN.yaml")
    assert (settings.retrieval.top_n, settings.retrieval.exclude) == (9, ("*.min.js",))
    assert settings.retrieval.max_chunk_tokens == 300
    assert (settings.workspace.link, settings.workspace.keep) == ((".venv",), False)
    assert settings.skills.dirs == ("skills", "more")
    assert (settings.sandbox.network, settings.sandbox.require) == (True, True)
    assert (settings.ui.theme, settings.ui.keys) == ("nord", (("approve", "y"), ("quit", "ctrl+q")))


@pytest.mark.parametrize(
    "file", [None, "", "# nothing\n", "---\n", "model:\n  # path: x\nui:\ntest_command:\n", "\ufeff"]
)
def test_what_is_left_out_keeps_its_default(tmp_path: Path, file: str | None) -> None:
    loaded = load(tmp_path, file)
    assert loaded.settings == Settings()
    assert set(loaded.origins.values()) == {"default"}


FAULTY = [
    ("modle: {path: x}\n", ".agent.yml:1:1: unknown key 'modle'; did you mean 'model'?"),
    ("model:\n  pth: x\n", ".agent.yml:2:3: unknown key 'pth' in model; did you mean 'path'?"),
    ("url: http://x\n", ".agent.yml:1:1: unknown key 'url'; did you mean 'model.url'?"),
    ("zzz: 1\n", ".agent.yml:1:1: unknown key 'zzz'"),
    ("<<: {a: 1}\n", ".agent.yml:1:1: unknown key '<<'"),
    ("- a\n", ".agent.yml:1:1: expected a mapping, found a list"),
    ("just text\n", ".agent.yml:1:1: expected a mapping, found the text 'just text'"),
    ("model: x\n", ".agent.yml:1:8: model: expected a mapping, found the text 'x'"),
    ("model: [a]\n", ".agent.yml:1:8: model: expected a mapping, found a list"),
    ("python: [a]\n", ".agent.yml:1:9: python: expected text, found a list"),
    ("python: 3.11\n", ".agent.yml:1:9: python: expected text, found 3.11"),
    ("test_command: true\n", ".agent.yml:1:15: test_command: expected text, found true"),
    ("test_command: no\n", ".agent.yml:1:15: test_command: expected text, found no"),
    (
        "language_servers: [ruff, pylsp]\n",
        ".agent.yml:1:26: language_servers: expected language servers of basedpyright, pyright, ruff, clangd, gopls, "
        "rust-analyzer, typescript-language-server, found 'pylsp'",
    ),
    ("tools_allowed: finish\n", ".agent.yml:1:16: tools_allowed: expected a list (text each), found the text 'finish'"),
    (
        "tools_allowed:\n  - read_file\n  - serch_code\n",
        ".agent.yml:3:5: tools_allowed: unknown tool 'serch_code'; did you mean 'search_code'?",
    ),
    (
        "tools_allowed: [vector_serch]\n",
        ".agent.yml:1:17: tools_allowed: unknown tool 'vector_serch'; did you mean 'vec",
    ),
    (
        "approvals:\n  rules:\n    - {kind: read, tool: grep}\n    - {kind: read, tool: grpe}\n",
        ".agent.yml:4:7: approvals.rules: there is no tool 'grpe'; did you mean 'grep'?",
    ),
    ("tools_allowed: [a, 1]\n", ".agent.yml:1:20: tools_allowed[1]: expected text, found 1"),
    ("approvals: {diff: yes}\n", ".agent.yml:1:19: approvals.diff: expected auto, ask, once or deny, found yes"),
    ("sandbox: {network: yes}\n", ".agent.yml:1:20: sandbox.network: expected true or false, found yes"),
    ("sandbox: {network: 1}\n", ".agent.yml:1:20: sandbox.network: expected true or false, found 1"),
    ("sandbox: {network: 'true'}\n", ".agent.yml:1:20: sandbox.network: expected true or false, found the text 'true'"),
    ("ui: {keys: [a]}\n", ".agent.yml:1:12: ui.keys: expected a mapping of text to text, found a list"),
    ("ui: {keys: {a: [b]}}\n", ".agent.yml:1:16: ui.keys.a: expected text, found a list"),
    ('test_command: "a\\eb"\n', ".agent.yml:1:15: test_command: expected text without control characters, "),
    ("model: {url: ftp://x}\n", ".agent.yml:1:14: model.url: expected an address such as http://127.0.0.1:8080, "),
    ("model: {url: 'http://x:99999'}\n", ".agent.yml:1:14: model.url: expected an address such as "),
    ("model: {url: 'http://me:pw@x'}\n", ".agent.yml:1:14: model.url: expected an address without user and password"),
    (
        "model: {path: a, url: http://x}\n",
        "model.path and model.url are both set (.agent.yml:1:15 and .agent.yml:1:23)",
    ),
    ("memory: {dir: ../x}\n", ".agent.yml:1:15: memory.dir: expected a path inside the repo "),
    ("memory: {dir: .git/hooks}\n", ".agent.yml:1:15: memory.dir: expected a path inside the repo "),
    ("workspace: {link: [/etc]}\n", ".agent.yml:1:20: workspace.link: expected a path inside the repo "),
    (
        "retrieval: {embeddings: {provider: onnx, path: ~/models/minilm}}\n",
        ".agent.yml:1:36: retrieval.embeddings.provider: 'onnx' was removed",
    ),
    (
        "retrieval: {embeddings: {provider: builtin}}\n",
        ".agent.yml:1:36: retrieval.embeddings.provider: 'builtin' was removed",
    ),
    (
        "retrieval: {embeddings: {path: a.gguf, url: 'http://a'}}\n",
        "retrieval.embeddings.path and retrieval.embeddings.url are both set (.agent.yml:1:32 and .agent.yml:1:45)",
    ),
    ("retrieval: {bm25: {}}\n", ".agent.yml:1:13: 'retrieval.bm25' is no setting"),
    ("bm25_k1: 1.2\n", ".agent.yml:1:1: 'bm25_k1' is no setting"),
    ("forge: {webhook_secret_env: X}\n", ".agent.yml:1:9: 'forge.webhook_secret_env' is no setting"),
    ("hooks: {webhook: {comand: x}}\n", ".agent.yml:1:19: unknown key 'comand' in hooks.webhook"),
    ("retrieval: {chunker: {overlap: 3}}\n", ".agent.yml:1:23: unknown key 'overlap' in retrieval.chunker"),
    (
        "memory_summarise_threshold: 9\n",
        ".agent.yml:1:1: unknown key 'memory_summarise_threshold'; did you mean 'memory.summarise_threshold'?",
    ),
    (
        "memory_summarize_threshold: 9\n",
        ".agent.yml:1:1: unknown key 'memory_summarize_threshold'; did you mean 'memory.summarise_threshold'?",
    ),
    (
        "retrieval_chunker_max_tokens: 9\n",
        ".agent.yml:1:1: unknown key 'retrieval_chunker_max_tokens'; did you mean 'retrieval.chunker.max_tokens'?",
    ),
    ("a: [1, 2\n", ".agent.yml:2:1: this is not YAML: expected ',' or ']', but got '<stream end>'"),
    ("a: b: c\n", ".agent.yml:1:5: this is not YAML: mapping values are not allowed here"),
    ("a:\n\t- x\n", ".agent.yml:2:1: this is not YAML: found character '\\t' that cannot start any token"),
    ("python: a\npython: b\n", ".agent.yml:2:1: duplicate key 'python', first on line 1"),
    ("python: &a x\n", ".agent.yml:1:9: expected a value, found the anchor 'a'"),
    ("python: *a\n", ".agent.yml:1:9: expected a value, found the alias 'a'"),
    ("python: !!python/name:os.system\n", ".agent.yml:1:9: expected a value, found the tag 'tag:yaml.org,2002:python"),
    ("python: a\n---\npython: b\n", ".agent.yml:2:1: expected one document, found a second one ('---')"),
    ("? [a]\n: b\n", ".agent.yml:1:3: expected a key, found a list or mapping in its place"),
    ("[" * 100_000, ".agent.yml:1:21: expected at most 20 levels of nesting, found more"),
    ("python: a\nx: a\x01\n", ".agent.yml:2:5: expected printable text, found the character U+0001"),
    (b"python: a\ntest: \xff\n", ".agent.yml:2:7: expected UTF-8, found byte 0xff"),
    (b"#" * 1_000_001, ".agent.yml has 1000001 bytes; the limit is 1000000"),
]


def test_a_tool_may_be_called_by_its_alias(tmp_path: Path) -> None:
    file = load(tmp_path, "tools_allowed: [vector_search, grep, search_code, grep]\n").settings
    environment = load(tmp_path, environ={"AGENT_TOOLS_ALLOWED": "vector_search,finish"}).settings
    assert (file.tools_allowed, environment.tools_allowed) == (("search_code", "grep"), ("search_code", "finish"))
    with pytest.raises(ConfigError, match="AGENT_TOOLS_ALLOWED: unknown tool 'wirte_diff'; did you mean 'write_diff'"):
        load(tmp_path, environ={"AGENT_TOOLS_ALLOWED": "grep,wirte_diff"})


@pytest.mark.parametrize(("file", "message"), FAULTY)
def test_faults_are_named_with_file_line_and_column(tmp_path: Path, file: BYTES_OR_TEXT, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, file)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "number",
    ["0777", "0o17", "0x1F", "1_000", "1:30", ".nan", ".inf", "-.inf", "-1", "1e3", "1.0", "9" * 5000, "'5'", "+5"],
)
def test_whole_numbers_are_decimal_and_not_negative(tmp_path: Path, number: str) -> None:
    with pytest.raises(ConfigError, match=r"^\.agent\.yml:1:20: retrieval\.top_n: expected a whole number"):
        load(tmp_path, f"retrieval: {{top_n: {number}}}\n")


@pytest.mark.parametrize("number", [".nan", ".NaN", ".inf", "1e999", "-0.5", "1:30", "010", "1_0.5", "'5'", ".5"])
def test_numbers_are_finite_and_not_negative(tmp_path: Path, number: str) -> None:
    with pytest.raises(ConfigError, match=r"limits\.command_seconds: expected a finite number"):
        load(tmp_path, f"limits: {{command_seconds: {number}}}\n")


@pytest.mark.parametrize("key", ["limits: {command_seconds: 0}", "model: {context_tokens: 0}"])
def test_what_must_be_positive_is(tmp_path: Path, key: str) -> None:
    with pytest.raises(ConfigError, match="expected more than 0, found 0"):
        load(tmp_path, key)


@pytest.mark.parametrize(
    "file",
    [
        "api_key: sk-secret\n",
        "model: {api_key: sk-secret}\n",
        "openai_api_key: sk-secret\n",
        "model: {api-key: sk-secret}\n",
        "model: {api_key_env: sk-secret}\n",
        "model: {url: 'http://sk-secret:x@host'}\n",
    ],
)
def test_a_key_in_the_file_is_refused_and_not_repeated(tmp_path: Path, file: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, file)
    assert "sk-secret" not in f"{caught.value} {caught.value.advice}"
    assert "api_key" in f"{caught.value} {caught.value.advice}"


def test_billion_laughs_are_refused(tmp_path: Path) -> None:
    lines = ["a0: &a0 [lol]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 20)]
    with pytest.raises(ConfigError, match="found the anchor 'a0'"):
        load(tmp_path, "\n".join(lines))


def test_long_files_are_explained_too(tmp_path: Path) -> None:
    long = "#\n" * 30_000 + "python: é"
    with pytest.raises(ConfigError, match=r"^\.agent\.yml:30001:10: expected printable text, .* U\+0001$"):
        load(tmp_path, f"{long}\x01")
    with pytest.raises(ConfigError, match=r"^\.agent\.yml:30002:1: this is not YAML: "):
        load(tmp_path, f"{long}\n]")


def test_control_characters_of_a_file_reach_no_message(tmp_path: Path) -> None:
    for file in ('"\\e[31m": 1', 'ui: {keys: {"\\e[31m": [a]}}', "python: !%1b[31m x", 'approvals: {diff: "\\e"}'):
        with pytest.raises(ConfigError) as caught:
            load(tmp_path, file)
        assert str(caught.value).isprintable()


def test_flags_override_environment_overrides_file(tmp_path: Path) -> None:
    file = "test_command: file\nlint_command: file\npython: file\n"
    environ = {"AGENT_LINT_COMMAND": "environment", "Agent_Python": "environment"}
    loaded = load(tmp_path, file, environ, {"python": "flag"})
    settings = loaded.settings
    assert (settings.test_command, settings.lint_command, settings.python) == ("file", "environment", "flag")
    assert loaded.origins["test_command"] == ".agent.yml:1"
    assert loaded.origins["lint_command"] == "environment AGENT_LINT_COMMAND"
    assert loaded.origins["python"] == "flag"
    assert loaded.origins["model.url"] == "default"


def test_the_environment_spells_every_type(tmp_path: Path) -> None:
    environ = {
        "AGENT_MODEL__URL": "http://127.0.0.1:1",
        "AGENT_MODEL__CONTEXT_TOKENS": "4096",
        "agent_limits__command_seconds": "2.5",
        "AGENT_SANDBOX__NETWORK": "true",
        "AGENT_APPROVALS__MERGE": "deny",
        "AGENT_WORKSPACE__LINK": ".venv, node_modules",
        "AGENT_RETRIEVAL__EXCLUDE": '["*.{a,b}", c]',
        "AGENT_RETRIEVAL__CHUNKER__MAX_TOKENS": "77",
        "AGENT_TEST_COMMAND": "true",
        "AGENT_UI__KEYS": "{approve: a}",
        "AGENT_NAME": "somebody else's",
    }
    settings = load(tmp_path, None, environ).settings
    assert (settings.model.url, settings.model.context_tokens) == ("http://127.0.0.1:1", 4096)
    assert settings.limits.command_seconds == 2.5
    assert settings.sandbox.network is True
    assert settings.approvals.merge is Approval.DENY
    assert settings.workspace.link == (".venv", "node_modules")
    assert settings.retrieval.exclude == ("*.{a,b}", "c")
    assert settings.retrieval.max_chunk_tokens == 77
    assert settings.test_command == "true"
    assert settings.ui.keys == (("approve", "a"),)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "AGENT_MODEL__URI",
            "x",
            "environment variable AGENT_MODEL__URI: unknown setting 'model.uri'; did you mean 'model.url'?",
        ),
        (
            "AGENT_MODLE__URL",
            "x",
            "environment variable AGENT_MODLE__URL: unknown setting 'modle.url'; did you mean 'model.url'?",
        ),
        ("AGENT_MODEL", "x", "environment variable AGENT_MODEL: model is a group of settings"),
        (
            "AGENT_RETRIEVAL__BM25",
            "1",
            "environment variable AGENT_RETRIEVAL__BM25: 'retrieval.bm25' is no setting",
        ),
        ("AGENT_SANDBOX__NETWORK", "1", "environment variable AGENT_SANDBOX__NETWORK: expected true or false, found 1"),
        ("AGENT_RETRIEVAL__TOP_N", "", "environment variable AGENT_RETRIEVAL__TOP_N: expected a whole number"),
        ("AGENT_MODEL__URL", "x", "environment variable AGENT_MODEL__URL: expected an address such as"),
        ("AGENT_RETRIEVAL__EXCLUDE", "[a", "environment variable AGENT_RETRIEVAL__EXCLUDE: this is not YAML"),
        ("LLAMA_SERVER_URL", "x", "environment variable LLAMA_SERVER_URL: expected an address such as"),
    ],
)
def test_faults_of_the_environment_name_the_variable(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, None, {name: text})
    assert str(caught.value).startswith(message)


def test_variables_that_differ_in_case_must_agree(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="AGENT_PYTHON and agent_python have different values"):
        load(tmp_path, None, {"AGENT_PYTHON": "a", "agent_python": "b"})
    assert load(tmp_path, None, {"AGENT_PYTHON": "a", "agent_python": "a"}).settings.python == "a"


def test_an_endpoint_may_have_the_name_of_a_ranking(tmp_path: Path) -> None:
    ((name, endpoint),) = load(tmp_path, None, {"AGENT_ENDPOINTS__BM25__URL": "http://127.0.0.1:1"}).settings.endpoints
    assert (name, endpoint.url) == ("bm25", "http://127.0.0.1:1")


def test_faults_of_a_flag_name_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^flag model\.ur: unknown setting 'model\.ur'; did you mean 'model\.url'\?"):
        load(tmp_path, None, None, {"model.ur": "x"})


def test_a_flag_names_one_of_the_models_of_a_server_for_every_role(tmp_path: Path) -> None:
    file = "model: {url: 'http://x', name: a}\nendpoints: {far: {url: 'http://y'}}\nroles: {executor: [far]}\n"
    loaded = load(tmp_path, file, None, {"model.name": "b"}).settings
    assert (loaded.model.name, loaded.chain(Purpose.EXECUTOR)) == ("b", ("model",))
    with pytest.raises(ConfigError, match=r"--model-name 'b': model.url names no server that has it"):
        load(tmp_path, "model: {path: a.gguf}\n", None, {"model.name": "b"})


def test_llama_variables_are_heard_when_nothing_else_was_said(tmp_path: Path) -> None:
    environ = {"LLAMA_SERVER_URL": "http://127.0.0.1:9", "LLAMA_SERVER": "/opt/llama-server"}
    loaded = load(tmp_path, None, environ)
    assert (loaded.settings.model.url, loaded.settings.model.server) == ("http://127.0.0.1:9", "/opt/llama-server")
    assert loaded.origins["model.url"] == "environment LLAMA_SERVER_URL"
    with_path = load(tmp_path, "model: {path: a.gguf, server: mine}\n", environ).settings.model
    assert (with_path.path, with_path.url, with_path.server) == ("a.gguf", "", "mine")
    assert load(tmp_path, "model: {url: 'http://x'}\n", environ).settings.model.url == "http://x"


def test_a_path_unsays_a_url_of_less_weight_and_back(tmp_path: Path) -> None:
    model = load(tmp_path, "model: {url: 'http://x'}\n", {"AGENT_MODEL__PATH": "a.gguf"}).settings.model
    assert (model.path, model.url) == ("a.gguf", "")
    model = load(tmp_path, None, {"AGENT_MODEL__PATH": "a.gguf"}, {"model.url": "http://y"}).settings.model
    assert (model.path, model.url) == ("", "http://y")


def test_home_is_put_in_for_the_model_alone(tmp_path: Path) -> None:
    settings = load(tmp_path, "model: {path: ~you/x}\npython: ~/bin/python\n", {"HOME": "/h"}).settings
    assert (settings.model.path, settings.python) == ("~you/x", "~/bin/python")


def test_a_link_out_of_the_repo_is_refused(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    (tmp_path / "outside.yml").write_text("python: a\n")
    (repo / ".agent.yml").symlink_to("../outside.yml")
    with pytest.raises(ConfigError, match=r"^\.agent\.yml leads to .*outside\.yml, outside /"):
        load(repo)
    (repo / ".agent.yml").unlink()
    (repo / "inside.yml").write_text("python: a\n")
    (repo / ".agent.yml").symlink_to("inside.yml")
    assert load(repo).settings.python == "a"


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".agent.yml")
    with pytest.raises(ConfigError, match=r"^\.agent\.yml is not a regular file"):
        load(tmp_path)
    (tmp_path / ".agent.yml").unlink()
    (tmp_path / ".agent.yml").mkdir()
    with pytest.raises(ConfigError, match=r"^\.agent\.yml is not a regular file"):
        load(tmp_path)
    (tmp_path / ".agent.yml").rmdir()
    (tmp_path / ".agent.yml").symlink_to(".agent.yml")
    with pytest.raises(ConfigError, match=r"^\.agent\.yml could not be read"):
        load(tmp_path)


def test_the_settings_of_this_repository_load() -> None:
    settings = load_settings(Path(__file__).parents[2], {}, {}).settings
    assert settings.test_command
    assert settings.python == ".venv/bin/python"


@pytest.mark.parametrize("number", ["1e15", "1e308", "9" * 400])
def test_numbers_that_nobody_means_are_refused(tmp_path: Path, number: str) -> None:
    (tmp_path / ".agent.yml").write_text(f"limits:\n  command_seconds: {number}\n")
    with pytest.raises(ConfigError, match=r"limits\.command_seconds: expected a"):
        load_settings(tmp_path, {}, {})
    (tmp_path / ".agent.yml").unlink()
    (tmp_path / ".agent.yml").symlink_to("gone.yml")
    with pytest.raises(ConfigError, match=r"^\.agent\.yml is a broken link to gone\.yml"):
        load(tmp_path)


def test_a_token_of_the_forge_belongs_into_a_variable_that_a_setting_names(tmp_path: Path) -> None:
    (tmp_path / ".agent.yml").write_text("forge: {token: s3cr3t-value}\n")
    with pytest.raises(ConfigError, match="does not belong in a file") as refused:
        load_settings(tmp_path, {}, {})
    assert "forge.token_env" in refused.value.advice
    assert "s3cr3t" not in f"{refused.value}{refused.value.advice}"
    (tmp_path / ".agent.yml").write_text("")
    with pytest.raises(ConfigError, match="settings hold no keys") as refused:
        load_settings(tmp_path, {"AGENT_FORGE__TOKEN": "s3cr3t-value"}, {})
    assert "forge.token_env" in refused.value.advice
    assert "s3cr3t" not in f"{refused.value}{refused.value.advice}"
