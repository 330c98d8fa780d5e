"""The user's own settings file: its place between the sources, and what it refuses."""

import os
from pathlib import Path

import pytest

from agent_workbench.config.own_settings import OWN_FILE, add_model, own_layer
from agent_workbench.config.settings_loader import LoadedSettings, load_settings
from agent_workbench.config.trust_question import trust_question, without_untrusted
from agent_workbench.core.errors import ConfigError, TrustError
from agent_workbench.core.settings import ApprovalMode


class Place:
    """A repo and the user's configuration folder."""

    def __init__(self, folder: Path) -> None:
        self.root, self.own = folder / "repo", folder / "config"
        self.root.mkdir()
        self.own.mkdir(mode=0o755)
        self.file = self.own / OWN_FILE

    def load(self, own: str, repo: str = "", environ: dict[str, str] | None = None) -> LoadedSettings:
        self.file.write_text(own)
        self.file.chmod(0o644)
        (self.root / ".agent.yml").write_text(repo)
        return self.read(environ)

    def read(self, environ: dict[str, str] | None = None) -> LoadedSettings:
        return load_settings(self.root, environ or {}, {}, self.own)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_the_own_file_is_below_the_repos_file_and_the_environment(place: Place) -> None:
    own = "model: {path: ~/m.gguf, answer_tokens: 100}\nui: {theme: nord, mode: accept_edits, review_context: false}\n"
    environ = {"HOME": "/home/me", "AGENT_MODEL__ANSWER_TOKENS": "300"}
    loaded = place.load(own, "ui: {theme: gruvbox}\n", environ)
    settings = loaded.settings
    assert (settings.model.path, settings.model.answer_tokens) == ("/home/me/m.gguf", 300)
    assert (settings.ui.theme, settings.ui.mode, settings.ui.review_context) == (
        "gruvbox",
        ApprovalMode.ACCEPT_EDITS,
        False,
    )
    assert loaded.origins["model.path"] == f"{place.file}:1"
    assert loaded.unused == {"ui.theme": f"{place.file}:2", "model.answer_tokens": f"{place.file}:1"}


def test_llama_cpps_variables_count_only_without_a_model_of_ones_own(place: Place) -> None:
    environ = {"LLAMA_SERVER_URL": "http://127.0.0.1:1"}
    assert place.load("model: {url: 'http://127.0.0.1:2'}\n", "", environ).settings.model.url == "http://127.0.0.1:2"
    assert place.load("", "", environ).settings.model.url == "http://127.0.0.1:1"


def test_keys_of_both_files_count(place: Place) -> None:
    loaded = place.load("ui: {keys: {approve: f2, quit: f9}}\n", "ui: {keys: {approve: f3}}\n")
    assert dict(loaded.settings.ui.keys) == {"approve": "f3", "quit": "f9"}
    assert not loaded.unused
    assert dict(without_untrusted(loaded).settings.ui.keys) == {"approve": "f2", "quit": "f9"}


OWN_MODELS = """\
model: {url: "https://mine.example", api_key_env: MY_SECRET, name: big}
endpoints: {gpu: {url: "https://gpu.example", api_key_env: GPU_SECRET}}
roles: {executor: [gpu]}
retrieval: {embeddings: {provider: server, url: "https://vectors.example", api_key_env: VECTOR_SECRET}}
"""


@pytest.mark.parametrize(
    "repo",
    [
        "model: {url: 'https://evil.example'}\n",
        "endpoints: {gpu: {url: 'https://evil.example'}}\n",
        "endpoints: {other: {path: /m.gguf}}\n",
    ],
)
def test_a_repo_that_names_a_model_never_gets_the_users_key(place: Place, repo: str) -> None:
    loaded = place.load(OWN_MODELS, repo)
    assert loaded.settings.key_variables == ("VECTOR_SECRET",)
    assert "mine.example" not in repr((*loaded.settings.endpoints, loaded.settings.model))
    assert loaded.settings.roles.executor == ()
    # The repo is not trusted: the user's models are in force, whole.
    mine = without_untrusted(loaded).settings
    assert (mine.model.url, mine.roles.executor) == ("https://mine.example", ("gpu",))
    assert "evil" not in repr(mine)


def test_a_repo_that_names_embeddings_never_gets_the_users_key(place: Place) -> None:
    loaded = place.load(OWN_MODELS, "retrieval: {embeddings: {url: 'https://evil.example'}}\n")
    assert loaded.settings.key_variables == ("MY_SECRET", "GPU_SECRET")
    assert without_untrusted(loaded).settings.retrieval.embeddings.url == "https://vectors.example"


def test_a_repo_may_name_the_users_endpoints_in_its_roles(place: Place) -> None:
    own = "endpoints: {a: {url: 'http://a'}, b: {url: 'http://b'}}\nroles: {executor: [a]}\n"
    loaded = place.load(own, "roles: {executor: [b]}\n")
    assert loaded.settings.roles.executor == ("b",)
    assert without_untrusted(loaded).settings.roles.executor == ("a",)


def test_own_settings_need_no_trust(place: Place) -> None:
    loaded = place.load("ui: {keys: {approve: f2}, mode: accept_until_done}\nmodel: {server: /bin/llama}\n")
    assert trust_question(place.root, loaded).items == {}
    kept = without_untrusted(loaded).settings
    assert (kept.ui, kept.model) == (loaded.settings.ui, loaded.settings.model)


@pytest.mark.parametrize("mode", ["ask", "accept_until_done"])
def test_a_repo_cannot_set_the_start_mode(place: Place, mode: str) -> None:
    with pytest.raises(ConfigError, match=r"\.agent\.yml:1:12: ui\.mode does not belong .* cannot choose"):
        place.load("", f"ui: {{mode: {mode}}}\n")


def test_a_repo_that_hides_the_preview_has_to_be_trusted(place: Place) -> None:
    loaded = place.load("", "ui: {review_context: false}\n")
    assert list(trust_question(place.root, loaded).items) == ["ui.review_context"]
    assert without_untrusted(loaded).settings.ui.review_context


@pytest.mark.parametrize(
    "own", ["test_command: make\n", "approvals: {diff: auto}\n", "sandbox: {network: true}\n", "tools_allowed: []\n"]
)
def test_keys_of_a_repository_are_refused(place: Place, own: str) -> None:
    with pytest.raises(ConfigError, match=r"settings\.yml:1:\d+: .* does not belong in your own settings"):
        place.load(own)


@pytest.mark.parametrize(
    ("own", "told"),
    [
        ("ui: [", "this is not YAML"),
        ("modle: {}\n", "unknown key 'modle'; did you mean 'model'"),
        ("ui: {mode: yolo}\n", "expected ask, accept_edits or accept_until_done"),
        ("model: {api_key: sk-1234}\n", "does not belong in a file"),
        ("- a\n", "expected a mapping"),
        ("a: &a 1\n", "anchor"),
        ("ui: {theme: '" + "x" * 1_000_001 + "'}\n", "expected at most 1000000 bytes"),
        ("\x00", "settings.yml:1:1"),
    ],
)
def test_a_broken_file_is_refused_with_its_place(place: Place, own: str, told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        place.load(own)
    assert str(refused.value).startswith(f"{place.file}:1:")
    assert told in str(refused.value)


def test_a_file_that_is_no_file_is_refused_at_once(place: Place) -> None:
    os.mkfifo(place.file)
    with pytest.raises(ConfigError, match="cannot be read: not a regular file"):
        place.read()
    place.file.unlink()
    place.file.mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        place.read()


def test_a_link_is_followed_and_a_broken_one_refused(place: Place, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.yml"
    place.file.symlink_to(real)
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        place.read()
    real.write_text("ui: {theme: nord}\n")
    real.chmod(0o600)
    assert place.read().settings.ui.theme == "nord"
    real.chmod(0o666)
    with pytest.raises(TrustError, match="can be written by others"):
        place.read()
    real.unlink()
    real.symlink_to(place.file)
    with pytest.raises(ConfigError, match="cannot be read: Too many levels"):
        place.read()


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666])
def test_a_file_that_others_may_write_is_refused(place: Place, mode: int) -> None:
    place.file.write_text("ui: {theme: nord}\n")
    place.file.chmod(mode)
    with pytest.raises(TrustError, match="can be written by others") as refused:
        place.read()
    assert refused.value.advice == f"check it, then: chmod go-w {place.file}"


def test_a_file_in_a_folder_that_all_may_write_is_refused(place: Place) -> None:
    place.load("ui: {theme: nord}\n")
    place.own.chmod(0o777)
    with pytest.raises(TrustError, match=f"{place.own} can be written by others"):
        place.read()


def test_a_file_of_another_user_is_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.load("ui: {theme: nord}\n")
    if os.geteuid() == 0:
        os.chown(place.file, 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(TrustError, match=r"belongs to another user \(number \d+\)"):
        place.read()


@pytest.mark.parametrize("folder", ["missing", "file/below"])
def test_without_a_folder_there_are_no_own_settings(place: Place, folder: str) -> None:
    (place.root / "file").write_text("")
    assert load_settings(place.root, {}, {}, place.root / folder).unused == {}


ADDED = {"url": "http://127.0.0.1:11434", "name": 'coder: "7b" # x'}


@pytest.mark.parametrize("text", ["", "# mine\n", "ui:\n  theme: nord   # dark", "ui: {theme: nord}\n"])
def test_a_chosen_model_is_written_behind_what_is_there(tmp_path: Path, text: str) -> None:
    path = tmp_path / "own" / OWN_FILE
    if text:
        path.parent.mkdir()
        path.write_text(text)
    before = {key: said.value for key, said in own_layer(path.parent).items()}
    assert add_model(path.parent, ADDED) == path
    assert path.read_text().startswith(text)
    after = {key: said.value for key, said in own_layer(path.parent).items()}
    assert after == {**before, "model.url": ADDED["url"], "model.name": ADDED["name"]}
    written = path.read_text()
    assert add_model(path.parent, ADDED) is None
    assert path.read_text() == written


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model: {path: a}\n", "has settings of models already"),
        ("endpoints: {a: {url: 'http://a'}}\n", "has settings of models already"),
        ("{}\n", ""),
        ("cost_cap_daily: 1\n...\n", ""),
    ],
)
def test_what_is_there_is_not_replaced_and_the_lines_are_told(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / OWN_FILE).write_text(text)
    with pytest.raises(ConfigError, match=said or OWN_FILE) as caught:
        add_model(tmp_path, ADDED)
    assert "by hand: model: url:" in caught.value.advice
    assert (tmp_path / OWN_FILE).read_text() == text
