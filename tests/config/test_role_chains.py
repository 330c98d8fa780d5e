"""Endpoints by name, the chains of roles, sampling and the daily cap, as settings say them."""

from pathlib import Path

import pytest

from agent_workbench.config.settings_loader import load_settings
from agent_workbench.config.trust_question import trust_question, without_untrusted
from agent_workbench.core.errors import ConfigError
from agent_workbench.core.model import Purpose, Sampling
from agent_workbench.core.settings import Settings
from agent_workbench.core.settings.models import EndpointSettings, RoleSampling, TokenPrice
from tests.config.test_settings_loader import load

WHOLE = """\
model: {url: http://127.0.0.1:8080}
endpoints:
  gpu: {url: http://10.0.0.2:8080, model: coder}
  laptop: {path: ~/small.gguf, server: ~/bin/llama-server, context_tokens: 4096}
  hosted:
    url: https://api.example.org/v1
    api_key_env: HOSTED_KEY
    dollars_per_million_tokens: {input: 0.5, output: 1.5}
roles:
  planner: [hosted]
  executor: [gpu, laptop, model]
  skills: {review: [hosted, gpu]}
sampling:
  top_k: 40
  min_p: 0.1
  executor: {temperature: 0.3, retry_temperature: 0.1, top_p: 0.9, min_p: 0, seed: 7}
cost_cap_daily: 1.5
"""


def test_everything_arrives(tmp_path: Path) -> None:
    settings = load(tmp_path, WHOLE, {"HOME": "/home/me"}).settings
    assert dict(settings.endpoints) == {
        "gpu": EndpointSettings(url="http://10.0.0.2:8080", model="coder"),
        "laptop": EndpointSettings(path="/home/me/small.gguf", server="/home/me/bin/llama-server", context_tokens=4096),
        "hosted": EndpointSettings(
            url="https://api.example.org/v1",
            api_key_env="HOSTED_KEY",
            dollars_per_million_tokens=TokenPrice(0.5, 1.5),
        ),
    }
    assert settings.cost_cap_daily == 1.5
    assert settings.sampling.executor == RoleSampling(0.3, 0.1, 0.9, None, 0.0, seed=7)
    assert settings.sampling.of(Purpose.EXECUTOR) == RoleSampling(0.3, 0.1, 0.9, 40, 0.0, seed=7)
    assert settings.sampling.of(Purpose.SUMMARY).sampling() == Sampling(0.3, 0.9, 40, 0.0)
    assert settings.sampling.of(Purpose.PLANNER) == RoleSampling(top_k=40, min_p=0.1)
    assert settings.key_variables == ("HOSTED_KEY",)


def test_chains_are_found_for_every_purpose(tmp_path: Path) -> None:
    settings = load(tmp_path, WHOLE).settings
    assert settings.chain(Purpose.EXECUTOR) == ("gpu", "laptop", "model")
    assert settings.chain(Purpose.SUMMARY) == ("gpu", "laptop", "model")
    assert settings.chain(Purpose.PLANNER) == ("hosted",)
    assert settings.chain(Purpose.REFLEXION) == ("model",), "the short form is the chain of who has none"
    assert settings.chain(Purpose.EXECUTOR, "review") == ("hosted", "gpu")
    assert settings.chain(Purpose.EXECUTOR, "debug") == ("gpu", "laptop", "model")


@pytest.mark.parametrize(
    ("file", "executor", "planner"),
    [
        ("", ("model",), ("model",)),
        ("endpoints: {b: {url: http://b}, a: {url: http://a}}", ("b", "a"), ("b", "a")),
        ("endpoints: {b: {url: http://b}, a: {url: http://a}}\nroles: {executor: [a]}", ("a",), ("a",)),
        ("endpoints: {a: {url: http://a}}\nmodel: {path: x}", ("model",), ("model",)),
    ],
)
def test_who_has_no_chain_follows(tmp_path: Path, file: str, executor: object, planner: object) -> None:
    settings = load(tmp_path, file).settings
    assert (settings.chain(Purpose.EXECUTOR), settings.chain(Purpose.PLANNER)) == (executor, planner)


FAULTY = [
    ("endpoints: {a: {}}", "1:13: endpoints.a: expected a value, found nothing"),
    ("endpoints:\n  a:\n", "2:3: endpoints.a: expected a value, found nothing"),
    ("endpoints: [a]", "1:12: endpoints: expected a mapping, found a list"),
    ("endpoints: {a: http://x}", "1:16: endpoints.a: expected a mapping, found the text 'http://x'"),
    ("endpoints: {A: {url: http://x}}", "1:13: expected a name of small letters and digits, joined by single '-'"),
    ("endpoints: {a__b: {url: http://x}}", "1:13: expected a name of small letters"),
    ("endpoints: {'*': {url: http://x}}", "1:13: expected a name of small letters"),
    ("endpoints: {a.b: {url: http://x}}", "1:13: expected a name of small letters"),
    ("endpoints: {a: {urll: http://x}}", "1:17: unknown key 'urll' in endpoints.a; did you mean 'url'?"),
    ("endpoints: {a: {url: ftp://x}}", "1:22: endpoints.a.url: expected an address such as"),
    ("endpoints: {a: {url: 'http://me:pw@x'}}", "1:22: endpoints.a.url: expected an address without user and password"),
    ("endpoints: {a: {url: 'http://x/?key=pw'}}", "1:22: endpoints.a.url: expected an address without '?' and '#'"),
    ("endpoints: {a: {model: x}}", "1:24: endpoints.a is nowhere: expected its url or its path, found neither"),
    ("endpoints: {a: {url: http://x, path: y}}", "endpoints.a.path and endpoints.a.url are both set (.agent.yml:1:38"),
    ("endpoints: {model: {url: http://x}}", "1:26: the endpoint name 'model' is reserved"),
    ("endpoints: {a: {url: http://x, context_tokens: 0}}", "1:48: endpoints.a.context_tokens: expected more than 0"),
    ("endpoints: {a: {url: http://x, api_key_env: sk-1}}", "1:45: endpoints.a.api_key_env: expected the name of an"),
    (
        "endpoints: {a: {url: http://x, dollars_per_million_tokens: {input: -1}}}",
        "1:68: endpoints.a.dollars_per_million_tokens.input: expected a finite number (not negative), found -1",
    ),
    ("cost_cap_daily: -0.5", "1:17: cost_cap_daily: expected a finite number (not negative), found -0.5"),
    ("roles: {executor: []}", "1:19: roles.executor: expected the names of endpoints, found an empty list"),
    ("roles: {executor: model}", "1:19: roles.executor: expected a list (text each), found the text 'model'"),
    ("roles: {executor: [model, model]}", "1:19: roles.executor: 'model' stands twice in the chain"),
    ("roles: {executer: [model]}", "1:9: unknown key 'executer' in roles; did you mean 'executor'?"),
    ("roles: {skills: {review: []}}", "1:26: roles.skills.review: expected the names of endpoints"),
    (
        "endpoints: {local: {url: http://x}}\nroles:\n  executor:\n    - model\n    - locl",
        "5:7: roles.executor: there is no endpoint 'locl'; did you mean 'local'?",
    ),
    ("roles: {skills: {review: [gpu]}}", "1:27: roles.skills.review: there is no endpoint 'gpu'"),
    ("sampling: {top_p: 1.5}", "1:19: sampling.top_p: expected a number from 0 to 1, found 1.5"),
    ("sampling: {thinking_tokens: 0}", "1:29: sampling.thinking_tokens: expected more than 0"),
    ("sampling: {executor: {top_p: 1.5}}", "1:30: sampling.executor.top_p: expected a number from 0 to 1, found 1.5"),
    ("sampling: {executor: {seed: 2147483648}}", "1:29: sampling.executor.seed: expected a seed below 2147483648"),
    ("sampling: {exekutor: {seed: 1}}", "1:12: unknown key 'exekutor' in sampling; did you mean 'executor'?"),
]


@pytest.mark.parametrize(("file", "message"), FAULTY)
def test_faults_are_named_with_file_line_and_column(tmp_path: Path, file: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, file)
    assert str(caught.value).startswith(message if message.startswith("endpoints") else f".agent.yml:{message}")


@pytest.mark.parametrize("key", ["api_key", "apikey", "token", "secret", "key", "password", "Authorization", "api-key"])
@pytest.mark.parametrize("group", ["endpoints: {{a: {{url: http://x, {}}}}}", "model: {{{}}}", "roles: {{{}}}", "{}"])
def test_a_key_in_the_file_is_refused_and_not_repeated(tmp_path: Path, key: str, group: str) -> None:
    with pytest.raises(ConfigError, match="does not belong in a file") as caught:
        load(tmp_path, group.format(f"{key}: sk-secret"))
    assert "api_key_env" in caught.value.advice
    assert "sk-secret" not in f"{caught.value} {caught.value.advice}"


def test_a_slip_of_the_pen_is_no_secret(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'context_tokens'"):
        load(tmp_path, "endpoints: {a: {url: http://x, context_token: 5}}")


def test_the_environment_spells_endpoints_and_chains(tmp_path: Path) -> None:
    environ = {
        "AGENT_ENDPOINTS__LOCAL__URL": "http://127.0.0.1:1",
        "AGENT_ENDPOINTS__GPU__DOLLARS_PER_MILLION_TOKENS__INPUT": "0.25",
        "AGENT_ROLES__EXECUTOR": "local,gpu",
        "AGENT_ROLES__SKILLS__REVIEW": "[gpu]",
        "AGENT_SAMPLING__EXECUTOR__TEMPERATURE": "0.5",
        "AGENT_SAMPLING__EXECUTOR__TOP_K": "3",
        "AGENT_COST_CAP_DAILY": "2",
    }
    settings = load(tmp_path, "endpoints: {gpu: {path: a.gguf}}", environ).settings
    assert settings.chain(Purpose.EXECUTOR) == ("local", "gpu")
    assert dict(settings.roles.skills) == {"review": ("gpu",)}
    assert dict(settings.endpoints)["gpu"].dollars_per_million_tokens == TokenPrice(0.25, 0.0)
    assert settings.sampling.executor == RoleSampling(temperature=0.5, top_k=3)
    assert settings.cost_cap_daily == 2.0


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("AGENT_ENDPOINTS__A__URI", "http://x", "unknown setting 'endpoints.a.uri'; did you mean 'endpoints.a.url'?"),
        ("AGENT_ENDPOINTS__A__API_KEY", "x", "'endpoints.a.api_key' is no setting: settings hold no keys"),
        ("AGENT_SAMPLING__EXECUTOR__SEED", "9" * 20, f"expected a whole number of at most 18 digits, found {'9' * 20}"),
        ("AGENT_ENDPOINTS__A", "http://x", "endpoints.a is a group of settings"),
        ("AGENT_ENDPOINTS", "http://x", "endpoints is a group of settings"),
        ("AGENT_ENDPOINTS__A__URL", "x", "expected an address such as"),
        ("AGENT_ENDPOINTS__-A__URL", "http://x", "contains an invalid endpoint name"),
        ("AGENT_ROLES__EXECUTOR", "", "expected the names of endpoints, found an empty list"),
        ("AGENT_ROLES__EXECUTOR", "gpu", "there is no endpoint 'gpu'"),
    ],
)
def test_faults_of_the_environment_name_the_variable(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, None, {name: text})
    assert name in str(caught.value)
    assert message in str(caught.value)


def test_a_key_in_the_environment_is_not_repeated_but_told_where_it_belongs(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, None, {"AGENT_ENDPOINTS__GPU__API_KEY": "s3cret"})
    assert "in endpoints.gpu.api_key_env (or AGENT_ENDPOINTS__GPU__API_KEY_ENV)" in caught.value.advice
    assert "s3cret" not in f"{caught.value} {caught.value.advice}"


def test_an_endpoint_that_a_flag_names_is_said_with_the_flag(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^flag --endpoint: there is no endpoint 'nope'$"):
        load(tmp_path, None, flags={"roles.planner": "nope"})


def test_who_names_a_path_unsays_the_url_of_that_endpoint_alone(tmp_path: Path) -> None:
    file = "endpoints: {a: {url: http://a}, b: {url: http://b}}"
    endpoints = dict(load(tmp_path, file, {"AGENT_ENDPOINTS__A__PATH": "a.gguf"}).settings.endpoints)
    assert (endpoints["a"].path, endpoints["a"].url, endpoints["b"].url) == ("a.gguf", "", "http://b")


def test_a_flag_that_names_a_model_means_it_for_every_role(tmp_path: Path) -> None:
    settings = load(tmp_path, WHOLE, None, {"model.url": "http://127.0.0.1:5"}).settings
    assert {settings.chain(purpose) for purpose in Purpose} == {("model",)}
    chained = load(tmp_path, WHOLE, None, {"model.url": "http://127.0.0.1:5", "roles.executor": "gpu"}).settings
    assert chained.chain(Purpose.EXECUTOR) == ("gpu",)
    kept = load(tmp_path, WHOLE, {"AGENT_MODEL__URL": "http://127.0.0.1:5"}).settings
    assert kept.chain(Purpose.EXECUTOR) == ("gpu", "laptop", "model")


def test_endpoints_of_an_untrusted_repo_count_for_nothing(tmp_path: Path) -> None:
    loaded = load(tmp_path, WHOLE)
    kept = without_untrusted(loaded).settings
    assert (kept.endpoints, kept.roles, kept.cost_cap_daily) == ((), Settings().roles, 0.0)
    lines = trust_question(tmp_path, loaded).lines
    for line in (
        "endpoints.hosted.url: https://api.example.org/v1 (may be sent your code)",
        "endpoints.hosted.api_key_env: HOSTED_KEY (is the variable whose value is sent to that endpoint)",
        "endpoints.laptop.server: ~/bin/llama-server (may be started as a model's server)",
        "roles.executor: [gpu, laptop, model] (are asked for steps)",
        "cost_cap_daily: 1.5 (is how many dollars may be spent in a day)",
    ):
        assert line in lines


def test_what_the_user_chains_survives_without_the_repos_endpoints(tmp_path: Path) -> None:
    environ = {"AGENT_ENDPOINTS__MINE__URL": "http://127.0.0.1:1", "AGENT_ROLES__EXECUTOR": "mine"}
    kept = without_untrusted(load(tmp_path, WHOLE, environ)).settings
    assert kept.chain(Purpose.EXECUTOR) == ("mine",)
    mixed = without_untrusted(load(tmp_path, WHOLE, {**environ, "AGENT_ROLES__EXECUTOR": "mine,gpu"})).settings
    assert mixed.chain(Purpose.EXECUTOR) == ("mine",), "the chain is gone, the endpoint is not"


def test_origins_tell_who_named_an_endpoint(tmp_path: Path) -> None:
    origins = load_settings(tmp_path, {"AGENT_ENDPOINTS__A__URL": "http://x"}, {}).origins
    assert origins["endpoints.a.url"] == "environment AGENT_ENDPOINTS__A__URL"
    assert not [key for key in origins if "*" in key]


@pytest.mark.parametrize(
    ("file", "url", "executor"),
    [
        ("endpoints: {gpu: {url: http://gpu}}", "", ("gpu",)),
        ("endpoints: {gpu: {url: http://gpu}}\nroles: {executor: [gpu, model]}", "http://heard", ("gpu", "model")),
        ("python: a", "http://heard", ("model",)),
    ],
)
def test_llamas_own_variable_takes_no_place_of_named_endpoints(
    tmp_path: Path, file: str, url: str, executor: tuple[str, ...]
) -> None:
    settings = load(tmp_path, file, {"LLAMA_SERVER_URL": "http://heard"}).settings
    assert (settings.model.url, settings.chain(Purpose.EXECUTOR)) == (url, executor)
