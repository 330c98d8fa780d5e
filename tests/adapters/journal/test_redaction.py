from pathlib import Path

import pytest

from agent_workbench.adapters.journal.redaction import Redactor, environment_redactor


@pytest.mark.parametrize(
    "name",
    [
        *("GITHUB_TOKEN", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "PGPASSWORD", "MYSQL_PWD", "DB_PASS", "GH_PAT"),
        *("githubtoken", "MY.SECRET", "SIGNING_KEY", "TOKEN", "APIKEY", "SOME_CREDENTIALS", "ssh_passphrase"),
    ],
)
def test_names_that_look_secret_hide_their_values(name: str) -> None:
    redactor = environment_redactor({name: "s3cr3t-value"})
    assert redactor.redact("before s3cr3t-value after") == f"before «redacted:{name}» after"


@pytest.mark.parametrize(
    "name",
    [
        *("PATH", "PWD", "OLDPWD", "KEYBOARD_LAYOUT", "MONKEY", "TOKENIZERS_PARALLELISM", "COMPASS", "EDITOR"),
        *("PASSWORD_STORE_DIR", "SSH_AUTH_SOCK", "API_KEY_FILE"),
    ],
)
def test_other_names_hide_nothing(name: str) -> None:
    assert environment_redactor({name: "some-value"}).redact("some-value") == "some-value"


def test_short_values_hide_nothing() -> None:
    redactor = environment_redactor({"A_TOKEN": "1234567", "B_TOKEN": "", "C_TOKEN": "12345678\n"})
    assert redactor.redact("1234567 12345678") == "1234567 «redacted:C_TOKEN»"


def test_what_exists_as_a_path_is_no_secret(tmp_path: Path) -> None:
    redactor = environment_redactor({"HOME_KEY": str(tmp_path), "REAL_KEY": "/abc/def+ghi"})
    assert redactor.redact(f"{tmp_path} /abc/def+ghi") == f"{tmp_path} «redacted:REAL_KEY»"


@pytest.mark.parametrize("value", ["/" + "x" * 5000, "~nobody-at-all/abc", "/\ud800abcdefg"])
def test_strange_values_are_secrets(value: str) -> None:
    assert value not in environment_redactor({"A_KEY": value}).redact(f"<{value}>")


def test_a_password_in_an_address_is_hidden_alone() -> None:
    redactor = environment_redactor({"DATABASE_URL": "postgres://shop:hunter2hunter2@db:5432/shop"})
    assert redactor.redact("postgres://shop:hunter2hunter2@db") == "postgres://shop:«redacted:DATABASE_URL»@db"


def test_a_secret_inside_another_leaves_no_rest() -> None:
    redactor = Redactor({"SHORT": "abcdefgh", "LONG": "abcdefgh-ijkl"})
    assert redactor.redact("abcdefgh-ijkl abcdefgh") == "«redacted:LONG» «redacted:SHORT»"


def test_a_secret_is_found_as_json_spells_it() -> None:
    redactor = Redactor({"A": 'quo"te\\and ü'})
    for text in ('quo"te\\and ü', '"quo\\"te\\\\and ü"', '"quo\\"te\\\\and \\u00fc"'):
        assert "quo" not in redactor.redact(text)


def test_a_key_of_several_lines_is_found_line_by_line() -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB\n-----END PRIVATE KEY-----"
    redactor = environment_redactor({"DEPLOY_KEY": key})
    assert redactor.redact(key) == "«redacted:DEPLOY_KEY»"
    diff = "\n".join("+" + line for line in key.splitlines())
    assert redactor.redact(diff) == (
        "+-----BEGIN PRIVATE KEY-----\n+«redacted:DEPLOY_KEY»\n+«redacted:DEPLOY_KEY»\n+-----END PRIVATE KEY-----"
    )


def test_characters_of_patterns_are_plain() -> None:
    assert Redactor({"A": "a.c*e(g[i"}).redact("a.c*e(g[i abcdefghi") == "«redacted:A» abcdefghi"


def test_without_secrets_the_text_is_the_same() -> None:
    text = "nothing to hide"
    assert Redactor({}).redact(text) is text
