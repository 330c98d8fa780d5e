import base64
import re
from pathlib import Path

import pytest

from agent_workbench.adapters.journal.redaction import Redactor, environment_redactor
from agent_workbench.core.text.secrets import TOKENS


@pytest.mark.parametrize(
    "name",
    [
        *("GITHUB_TOKEN", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "PGPASSWORD", "MYSQL_PWD", "DB_PASS", "GH_PAT"),
        *("SSHPASS", "LDAPPASS", "DBPWD", "SIGNINGKEY", "REGISTRY_CREDS", "WIFI_PSK", "SESSION_COOKIE"),
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
        *("PASSWORD_STORE_DIR", "SSH_AUTH_SOCK", "API_KEY_FILE", "MY_BYPASS", "MAX_TOKENS_LIMIT", "AUTH_TYPE"),
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


@pytest.mark.parametrize("value", ["password", "Postgres", "changeme", "********", "true", "1234567"])
def test_ordinary_values_hide_nothing(value: str) -> None:
    assert environment_redactor({"DB_PASSWORD": value}).redact(f"<{value}>") == f"<{value}>"


@pytest.mark.parametrize("name", ["A", "SOME_COMMAND"])
@pytest.mark.parametrize(
    "secret",
    [
        *(
            "ghp_0123456789abcdefABCDEF0123456789abcd",
            "github_pat_11ABCDEFG0123456789_abcdefghijklmnop",
            "gho_" + "a1" * 18,
        ),
        *("glpat-0123456789abcdefghij", "xoxb-123456789012-123456789012-abcDEF", "AKIAIOSFODNN7EXAMPLE"),
        *("ASIAIOSFODNN7EXAMPLE", "AIza" + "Sy0-" * 9, "sk-proj-abcdef0123456789", "sk-ant-api03-abcdef0123456789-_AA"),
        *(
            "sk_live_0123456789abcdef",
            "rk_test_0123456789abcdef",
            "npm_" + "a1" * 18,
            "pypi-AgEIcHlwaS5vcmcCJDAwMDAwMDAw",
        ),
        *("hf_" + "aB" * 17, "dop_v1_" + "0a" * 32, "SG." + "a1" * 11 + "." + "b2" * 21, "key-" + "0a" * 16),
        *("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl", "AGE-SECRET-KEY-1" + "QPZRY9X8" * 7 + "GF"),
        *(
            "hvs." + "a1" * 45,
            "dapi" + "0a" * 16,
            "123456789:AA" + "b1" * 16 + "c",
            "https://hooks.slack.com/services/T0/B0/" + "x" * 24,
        ),
    ],
)
def test_tokens_of_services_are_known_wherever_they_stand(name: str, secret: str) -> None:
    redactor = environment_redactor({name: f"run --header 'X: {secret}' --fast"})
    bare = secret.removeprefix("https://")
    assert redactor.redact(f"before {bare} after") == f"before «redacted:{name}» after"
    assert redactor.redact("run --header --fast") == "run --header --fast"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("CODECOV", "0123456789abcdef0123456789abcdef"), ("TWITCH_CLIENT", "a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5")),
        *(("HEROKU_LOGIN", "01234567-89ab-cdef-0123-456789abcdef"), ("MY_APIS", "Zm9vYmFyMTIzNDU2")),
    ],
)
def test_random_values_count_under_names_of_services_and_hints(name: str, value: str) -> None:
    assert environment_redactor({name: value}).redact(value) == f"«redacted:{name}»"
    assert environment_redactor({"BUILD_ID": value}).redact(value) == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("TRAVIS_COMMIT", "0a" * 20), ("GITHUB_SHA", "0a" * 20), ("API_VERSION", "2024-02-15-preview")),
        *(("API_HOST", "api-eu-west-1.example.com"), ("OPENAI_API_BASE", "http://localhost:8080/v1")),
        *(("REMOTE", "ssh://deployer@git.example.com/x"), ("DATABASE", "postgresql://application@localhost:5432/app")),
        *(("GIT_AUTHOR_EMAIL", "jane.doe.1984@example.com"), ("MODEL", "Qwen2.5-Coder-7B-Instruct-Q4_K_M.gguf")),
        *(("NOTE", "token = $TOKEN_OF_MINE"), ("SCRIPT", "secret=${SECRET_VALUE}"), ("PACKAGE", "sk-learn-extensions")),
    ],
)
def test_ordinary_variables_hide_nothing(name: str, value: str) -> None:
    assert environment_redactor({name: value}).redact(value) == value


@pytest.mark.parametrize(
    ("value", "secret"),
    [
        *(("https://S3cretS3cret@host/x.git", "S3cretS3cret"), ("https://secretsecret@host", "secretsecret")),
        *(("https://:only-a-password@host", "only-a-password"), ("redis://:hunter2hunter2@h", "hunter2hunter2")),
        *(("https://oauth2:hunter2hunter2@host", "hunter2hunter2"), ("ssh://a1b2c3d4e5f6g7@host", "a1b2c3d4e5f6g7")),
        *(
            ("https://u:hun%40ter%2fhunter@host", "hun%40ter%2fhunter"),
            ("https://u:hun%40ter%2fhunter@host", "hun@ter/hunter"),
        ),
        *(
            ("curl -u jane:hunter2hunter2 x", "hunter2hunter2"),
            ("Authorization: Basic amFuZTpodW50ZXIy", "amFuZTpodW50ZXIy"),
        ),
        *(
            ("authorization: bearer abcdefghijkl", "abcdefghijkl"),
            ("Server=x;Password=hunter2hunter2;y=1", "hunter2hunter2"),
        ),
        *(
            ("AccountName=a;AccountKey=aGVsbG8gd29ybGQ=;z", "aGVsbG8gd29ybGQ="),
            ("https://h/?access_token=abcdefgh1", "abcdefgh1"),
        ),
        *(
            ("https://discord.com/api/webhooks/112233445566778899/AbCd-efGhij_klMnop0123", "AbCd-efGhij_klMnop0123"),
            ("https://x.blob.core.windows.net/c?sv=1&sig=aGVsbG8gd29ybGQxMjM0%3D", "aGVsbG8gd29ybGQxMjM0%3D"),
            ("https://x.blob.core.windows.net/c?sv=1&sig=aGVsbG8gd29ybGQxMjM0%3D", "aGVsbG8gd29ybGQxMjM0="),
            ("https://b.s3.amazonaws.com/k?X-Amz-Signature=0a0b0c0d0e0f0a0b0c0d&x=1", "0a0b0c0d0e0f0a0b0c0d"),
            ("https://api.telegram.org/bot123456789:" + "Ab" * 18, "123456789:" + "Ab" * 18),
            ("Cookie: theme=dark; session=deadbeefcafe", "deadbeefcafe"),
        ),
        ('{"auths": {"r": {"auth": "amFuZTpodW50ZXIy"}}}', "amFuZTpodW50ZXIy"),
    ],
)
def test_secrets_inside_of_values_are_hidden(value: str, secret: str) -> None:
    assert secret not in environment_redactor({"A": value}).redact(f"<{secret}>")


def test_a_secret_is_found_as_addresses_and_base64_spell_it() -> None:
    redactor = environment_redactor({"REGISTRY_PASSWORD": "hunter2 +/hunter2"})
    for text in (
        "hunter2%20%2B%2Fhunter2",
        "hunter2%20%2b%2fhunter2",
        "hunter2+%2B%2Fhunter2",
        "hunter2%20%2B/hunter2",
    ):
        assert redactor.redact(text) == "«redacted:REGISTRY_PASSWORD»"
    for user in ("", "a:", "ab:", "jane:"):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            found = redactor.redact(encode(f"{user}hunter2 +/hunter2".encode()).decode())
            assert "«redacted:REGISTRY_PASSWORD»" in found
            assert len(found.replace("«redacted:REGISTRY_PASSWORD»", "")) <= 12


def test_a_key_in_json_is_found_line_by_line() -> None:
    key = (
        r"-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB\n-----END PRIVATE KEY-----\n"
    )
    redactor = environment_redactor({"ACCOUNT": f'{{"type": "service_account", "private_key": "{key}"}}'})
    assert (
        redactor.redact("x MIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB")
        == "x «redacted:ACCOUNT»\n«redacted:ACCOUNT»"
    )
    assert redactor.redact('"type": "service_account"') == '"type": "service_account"'


@pytest.mark.parametrize(
    "piece",
    [
        "eyJ-",
        "-eyJaaaaaaaaa.",
        "://",
        "a://b",
        "-----BEGIN PRIVATE KEY",
        "password",
        "token=",
        "bearer ",
        "t1.",
        "a1",
        "eyJ",
        "sig=",
    ],
)
@pytest.mark.slow(quick=2)
def test_no_value_takes_more_than_linear_time(piece: str) -> None:
    # Whatever is quadratic takes minutes here, and the test's time runs out.
    assert environment_redactor({"A_NOTE": piece * (500_000 // len(piece))}).redact("nothing") == "nothing"


@pytest.mark.parametrize("token", ["123456789:AA" + "b1" * 18, "sha256~" + "aB" * 23, "pul-" + "0a" * 20 + "0a0"])
def test_a_token_that_is_longer_than_usual_is_hidden_to_its_end(token: str) -> None:
    assert environment_redactor({"NOTE": f"use {token} here"}).redact(f"<{token}>") == "<«redacted:NOTE»>"
    assert environment_redactor({"NOTE": f"use {token}, here"}).redact(f"<{token}>") == "<«redacted:NOTE»>"


def test_the_value_of_a_cookie_is_hidden_without_its_name() -> None:
    redactor = environment_redactor({"COOKIE": "session=deadbeefcafe1234; id=0011223344; Domain=www.example.com"})
    assert redactor.redact("deadbeefcafe1234 0011223344") == "«redacted:COOKIE» «redacted:COOKIE»"
    assert redactor.redact("www.example.com") == "www.example.com"


def test_a_signed_text_is_searched_for_within_bounds() -> None:
    signed = next(each for each in TOKENS if re.match(each, "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl"))
    # Where such texts may begin at every third character, each one may look at a few hundred only.
    assert re.search(signed, "-eyJ" + "a" * 400 + ".e30.c2ln")
    assert not re.search(signed, "-eyJ" + "a" * 401 + ".e30.c2ln")
    assert re.search(signed, "eyJ" + "a" * 4000 + ".e30.c2ln")
    assert not re.search(signed, "eyJ" + "a" * 4001 + ".e30.c2ln")


def test_a_password_in_an_address_is_hidden_alone() -> None:
    redactor = environment_redactor({"DATABASE_URL": "postgres://shop:hunter2hunter2@db:5432/shop"})
    assert redactor.redact("postgres://shop:hunter2hunter2@db") == "postgres://shop:«redacted:DATABASE_URL»@db"


def test_a_secret_inside_another_leaves_no_rest() -> None:
    redactor = Redactor([("SHORT", "abcdefgh"), ("LONG", "abcdefgh-ijkl")])
    assert redactor.redact("abcdefgh-ijkl abcdefgh") == "«redacted:LONG» «redacted:SHORT»"


def test_a_secret_is_found_as_json_spells_it() -> None:
    redactor = Redactor([("A", 'quo"te\\and ü')])
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
    assert Redactor([("A", "a.c*e(g[i")]).redact("a.c*e(g[i abcdefghi") == "«redacted:A» abcdefghi"


def test_without_secrets_the_text_is_the_same() -> None:
    text = "nothing to hide"
    assert Redactor({}).redact(text) is text
