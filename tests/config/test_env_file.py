"""The `.env` of a repository: five names count, after trust, below the environment."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from agent_workbench.config.env_file import SETTING_OF, EnvFile, EnvValue, read_env_file
from agent_workbench.config.settings_loader import LoadedSettings, load_settings
from agent_workbench.config.trust_question import trust_question, with_trust, without_untrusted
from agent_workbench.core.errors import ConfigError

ALL = """\
# for the tests of the app
DATABASE_URL=postgres://secret
LLM_API_KEY=sk-planted-0123456789
export LLM_API_BASE_URL="http://127.0.0.1:9000/v1"  # the proxy
LLM_MODEL_NAME = 'coder 7b'
SKILLS_FOLDER_PATH=tools/skills
SCRIPT_TIMEOUT_SECONDS=12 # seconds
AGENT_TEST_COMMAND=touch canary
"""


def loaded(root: Path, text: str, environ: Mapping[str, str] | None = None, settings: str = "") -> LoadedSettings:
    (root / ".env").write_text(text)
    if settings:
        (root / ".agent.yml").write_text(settings)
    return load_settings(root, environ or {}, {})


def test_the_five_names_are_read_and_nothing_else(tmp_path: Path) -> None:
    trusted = with_trust(tmp_path, loaded(tmp_path, ALL))
    settings = trusted.settings
    assert settings.model.url == "http://127.0.0.1:9000/v1"
    assert settings.model.name == "coder 7b"
    assert settings.model.api_key_env == "LLM_API_KEY"
    assert settings.skills.dirs == ("tools/skills",)
    assert settings.skills.script_seconds == 12
    assert settings.test_command == ""
    assert trusted.env_file.key == "sk-planted-0123456789"
    assert set(trusted.env_file.values) == set(SETTING_OF)
    assert trusted.origins["model.url"] == ".env:4"
    assert "planted" not in repr(settings)


def test_without_trust_it_changes_nothing(tmp_path: Path) -> None:
    bare = load_settings(tmp_path, {}, {})
    found = loaded(tmp_path, ALL)
    assert found.settings == bare.settings
    assert without_untrusted(found).settings == without_untrusted(bare).settings


@pytest.mark.parametrize(
    "text", ["LLM_API_BASE_URL=nowhere\n", "SCRIPT_TIMEOUT_SECONDS=soon\n", "\x00\xff=\n", "x" * 300_000]
)
def test_without_trust_a_faulty_one_stops_nothing(tmp_path: Path, text: str) -> None:
    found = loaded(tmp_path, text)
    trust_question(tmp_path, found)
    assert without_untrusted(found).settings.model.url == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\nLLM_API_BASE_URL=nowhere\n", r"\.env:2: LLM_API_BASE_URL: expected an address"),
        ("SCRIPT_TIMEOUT_SECONDS=soon\n", r"\.env:1: SCRIPT_TIMEOUT_SECONDS: .*found the text 'soon'"),
        ("SKILLS_FOLDER_PATH=../skills\n", r"\.env:1: SKILLS_FOLDER_PATH: expected a path inside the repo"),
    ],
)
def test_with_trust_a_faulty_line_is_told(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        with_trust(tmp_path, loaded(tmp_path, text))


def test_a_link_out_of_the_repo_and_a_pipe_are_not_read(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    (tmp_path / "outside").write_text(ALL)
    (repo / ".env").symlink_to(tmp_path / "outside")
    assert read_env_file(repo, {}) == EnvFile()


def test_variables_of_the_environment_count_more(tmp_path: Path) -> None:
    environ = {"LLM_API_KEY": "sk-real-0123456789", "LLM_MODEL_NAME": "real"}
    trusted = with_trust(tmp_path, loaded(tmp_path, ALL, environ))
    assert trusted.env_file.key == "sk-real-0123456789"
    assert trusted.env_file.values["LLM_MODEL_NAME"] == EnvValue("real", "environment LLM_MODEL_NAME", "coder 7b")
    assert trusted.settings.model.name == "real"
    assert trust_question(tmp_path, trusted).digest == trust_question(tmp_path, loaded(tmp_path, ALL)).digest
    for name in ("AGENT_MODEL__URL", "LLAMA_SERVER_URL"):
        environ = {name: "http://127.0.0.1:1"}
        assert with_trust(tmp_path, loaded(tmp_path, ALL, environ)).settings.model.url == "http://127.0.0.1:1"
    alone = load_settings(tmp_path / "none", {"LLM_MODEL_NAME": "heard nowhere"}, {})
    assert alone.settings.model.name == ""


def test_it_counts_more_than_the_settings_file_and_keeps_your_key_from_its_address(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "settings.yml").write_text("model: {url: 'http://127.0.0.1:2', api_key_env: MINE}\n")
    (tmp_path / ".agent.yml").write_text("model: {path: a.gguf}\n")
    (tmp_path / ".env").write_text("LLM_API_BASE_URL=http://127.0.0.1:9000\n")
    settings = with_trust(tmp_path, load_settings(tmp_path, {}, {}, own)).settings
    assert (settings.model.url, settings.model.path, settings.model.api_key_env) == ("http://127.0.0.1:9000", "", "")


def test_trust_is_asked_for_by_name_again_after_a_change_and_never_shows_the_key(tmp_path: Path) -> None:
    (tmp_path / "tools/skills/one").mkdir(parents=True)
    (tmp_path / "tools/skills/one/SKILL.md").write_text("---\nname: one\ndescription: d\n---\n")
    question = trust_question(tmp_path, loaded(tmp_path, ALL))
    told = "\n".join(question.lines)
    assert "LLM_API_BASE_URL in .env: http://127.0.0.1:9000/v1 (is sent your code)" in told
    assert "LLM_API_KEY in .env: a key, sha256 " in told
    assert "skill files in tools/skills: 1 file" in told
    assert "planted" not in told
    assert "DATABASE_URL" not in told
    changed = trust_question(tmp_path, loaded(tmp_path, ALL.replace("planted", "another")))
    assert changed.digest != question.digest
    unrelated = trust_question(tmp_path, loaded(tmp_path, ALL.replace("postgres", "mysql")))
    assert unrelated.digest == question.digest
