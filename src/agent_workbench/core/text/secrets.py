"""Detection of secrets: by a variable's name, by the shape of a service's token, or by position in a text.

The shapes are those of gitleaks' default rules. Lengths are lower bounds, because services lengthen their tokens.
Patterns with a required suffix are bounded, so that a search takes linear time.
"""

import re
from collections.abc import Iterator
from functools import cache

_WORDS = {
    *("KEY", "KEYS", "APIKEY", "PASS", "PWD", "PAT", "AUTH", "CREDENTIAL", "CREDENTIALS", "CRED", "CREDS", "PSK"),
    *("PASSPHRASE", "PASSCODE", "JWT", "BEARER", "COOKIE"),
}
_ENDINGS = (
    *("TOKEN", "TOKENS", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASSWORDS", "PASSPHRASE", "PASS", "PWD"),
    *("APIKEY", "ACCESSKEY", "PRIVATEKEY", "SECRETKEY", "MASTERKEY", "SIGNINGKEY", "DEPLOYKEY", "AUTHKEY", "SSHKEY"),
)
_ORDINARY_NAMES = {"COMPASS", "BYPASS", "ENCOMPASS", "OVERPASS", "SURPASS", "TRESPASS", "UNDERPASS"}
# The shell's own variables, which hold folders.
_NEVER_SECRET = {"PWD", "OLDPWD"}
# The last word of a name that holds a path or a number.
_NO_VALUES = {"DIR", "FILE", "HOME", "PATH", "SOCK", "SOCKET", "LIMIT", "SIZE", "TTL", "COUNT", "TIMEOUT", "TYPE"}
# Values too common in code and prose to be redacted; they are no secrets.
_ORDINARY_VALUES = {
    *("password", "postgres", "postgresql", "changeme", "changeit", "username", "anonymous", "disabled", "required"),
    *("optional", "localhost", "undefined", "development", "production", "external", "internal", "keyboard"),
    *("interactive", "publickey", "basic-auth", "access_token", "refresh_token", "x-access-token"),
}
# Schemes whose URL names a user and not a token: `ssh://deployer@host`.
_NAMES_USERS = re.compile(
    r"(?:.*\+)?(?:ssh|scp|sftp|ftp|ftps|rsync|git|svn|smb|imaps?|smtps?|ldaps?|vnc|rdp)|.*sql.*", re.IGNORECASE
)
_USERINFO = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,30})://([^/\s\"'<>?#]*)@")
_USER_OPTION = re.compile(r"(?:^|\s)(?:-u|--user)[= ]{0,3}[\"']?[^\s\"':]{1,200}:([^\s\"']+)")
_ASSIGNED = re.compile(
    r"(?:passw(?:or)?d|passphrase|pwd|secret|token|auth|(?:api|access|account|private|shared|secret)[\w-]{0,12}key)"
    r"[\"']?\s{0,3}[=:]\s{0,3}[\"']?([^\s\"';&,}]+)",
    re.IGNORECASE,
)
_BEARER = re.compile(
    r"(?:\bbearer|\bauthorization[\"']?\s{0,3}[=:]\s{0,3}[\"']?\w{0,20})\s{1,3}([\w.~+/=-]+)", re.IGNORECASE
)
# Parts that make a URL a secret: the end of a Discord webhook, a signature, a bot's token.
_IN_ADDRESS = (
    re.compile(r"discord(?:app)?\.com/api/(?:v[0-9]{1,3}/)?webhooks/[0-9]{1,30}/([\w-]+)", re.IGNORECASE),
    re.compile(r"(?<![\w-])(?:sig|x-(?:amz|goog)-signature)=([\w%+/=.~-]{16,})", re.IGNORECASE),
    re.compile(r"/bot([0-9]{5,16}:[\w-]{30,})"),
)
_COOKIES = re.compile(r"(?<![^;:\s\"'])(?!(?:domain|expires|path)=)[^=;:\s\"']{1,200}+=([^;\s\"']+)", re.IGNORECASE)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN[ A-Z0-9_-]{0,100}PRIVATE KEY.*?(?:-----END[ A-Z0-9_-]{0,100}-----|\Z)", re.DOTALL
)
_REFERENCES = ("$", "<", "{", "%", "*", "-----")
_ONE_TOKEN = re.compile(r"(?!\.{0,2}/)[\w.=+/:~-]{14,}")
_MIXED = re.compile(r"(?<![A-Za-z0-9])(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{12,}")
_CHANGE = re.compile(r"(?<=[0-9])[A-Za-z]|(?<=[A-Za-z])[0-9]")
_MIN_CHANGES = 5
_NAMES_CONTENT = re.compile(r"COMMIT|SHA|HASH|DIGEST|REVISION|CHECKSUM|VERSION|AUTHOR(?!I[SZ])")

TOKENS = (
    # code hosts and package registries
    r"gh[pousr]_[A-Za-z0-9]{16,}",
    r"github_pat_\w{16,}",
    r"gl(?:pat|cbt|dt|ffct|ft|imt|agent|oas|ptt|rt|soat)-[\w.-]{16,}",
    r"GR1348941[\w-]{16,}",
    r"_gitlab_session=[0-9a-z]{32}",
    r"npm_[A-Za-z0-9]{16,}",
    r"pypi-AgE[\w-]{16,}",
    r"rubygems_[a-f0-9]{48}",
    r"CLOJARS_[A-Za-z0-9]{60}",
    r"sgp_(?:[a-fA-F0-9]{16}_|local_)?[a-fA-F0-9]{40}",
    r"AKCp[A-Za-z0-9]{60,}",
    r"cmVmd[A-Za-z0-9]{50,}",
    # models
    r"sk-(?=[\w-]{0,40}[0-9])[A-Za-z0-9][\w-]{15,}",
    r"hf_[A-Za-z0-9]{16,}",
    r"api_org_[A-Za-z0-9]{16,}",
    r"pplx-[A-Za-z0-9]{32,}",
    # clouds
    r"(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}",
    r"ABSK[A-Za-z0-9+/]{40,}={0,2}",
    r"bedrock-api-key-[\w+/=-]{16,}",
    r"AIza[\w-]{30,}",
    r"GOCSPX-[\w-]{20,}",
    r"LTAI[A-Za-z0-9]{16,}",
    r"[\w.~]{3}[0-9]Q~[\w.~-]{31,}",
    r"do[opr]_v1_[A-Fa-f0-9]{16,}",
    r"HRKU-[\w-]{36,}",
    r"sha256~[\w-]{43}",
    r"fo1_[\w-]{43}",
    r"fm[12][ar]?_[A-Za-z0-9+/]{100,}={0,3}",
    r"tk-us-[\w-]{48}",
    r"v1\.0-[a-f0-9]{24}-[a-f0-9]{146}",
    r"AQVN[\w-]{35,}",
    r"YC[\w-]{38}",
    r"t1\.[\w-]{1,400}={0,2}\.[\w-]{86}={0,2}",
    r"A{22}[A-Za-z0-9%]{80,}",
    # infrastructure
    r"sq[upa]_[\w=-]{30,}",
    r"hv[bsr]\.[\w-]{20,}",
    r"s\.[A-Za-z0-9]{24}",
    r"[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,}",
    r"ATATT3[\w=-]{40,}",
    r"dapi[a-f0-9]{32}(?:-[0-9])?",
    r"dp\.[a-z]{2}\.[A-Za-z0-9]{40,}",
    r"dt0c01\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}",
    r"dnkey-[\w=-]{26,}",
    r"glc_[A-Za-z0-9+/]{32,}={0,3}",
    r"glsa_\w{32,}",
    r"(?:pat|sat)\.[\w-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}",
    r"ico-[A-Za-z0-9]{32}",
    r"pnu_[A-Za-z0-9]{36}",
    r"pul-[a-f0-9]{40}",
    r"pscale_(?:tkn|oauth|pw)_[\w=.-]{32,}",
    r"sntrys_[\w+/=]{40,}",
    r"sntryu_[a-f0-9]{64}",
    r"NR(?:AK|II|JS)-[A-Za-z0-9-]{19,}",
    r"4b1d[A-Za-z0-9]{38}",
    r"API-[A-Z0-9]{26}",
    r"(?:sc|ext|scauth|authress)_[a-z0-9]{5,30}\.[a-z0-9]{4,6}\.acc[_-][a-z0-9-]{10,32}\.[\w+/=-]{30,}",
    # chat, mail, project management
    r"xox[a-z](?:\.xox[bp])?-[\w-]{8,}",
    r"xapp-[0-9]-[\w-]{16,}",
    r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{20,}",
    r"[a-z0-9]{1,60}\.webhook\.office\.com/webhookb2/[\w@/-]{40,}",
    r"[0-9]{5,16}:A[\w-]{34,}",
    r"SG\.[\w=.-]{20,}",
    r"(?:pub)?key-[a-f0-9]{32}",
    r"[a-h0-9]{32}-[a-h0-9]{8}-[a-h0-9]{8}",
    r"[a-f0-9]{32}-us[0-9]{1,2}",
    r"xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}",
    r"lin_api_[A-Za-z0-9]{40}",
    r"ntn_[A-Za-z0-9]{40,}",
    r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}",
    r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}",
    r"rdme_[a-z0-9]{70}",
    r"tfp_[\w.=-]{59}",
    r"fio-u-[\w=-]{64}",
    r"sl\.[\w=-]{130,}",
    r"b_[\w=-]{44}",
    r"[0-9]{15,25}-[A-Za-z0-9]{20,40}",
    r"[0-9]{15,16}[|%][\w-]{27,40}",
    r"EAA[MC][A-Za-z0-9]{100,}",
    r"pk\.[A-Za-z0-9]{60}\.[A-Za-z0-9]{22}",
    r"s-s4t2(?:ud|af)-[a-f0-9]{64}",
    # payment and commerce
    r"(?:sk|rk)_(?:test|live|prod)_[A-Za-z0-9]{10,}",
    r"(?:live|test)_(?:pub_)?[\w=-]{31,}",
    r"access-(?:sandbox|development|production)-[0-9a-f]{8}-[0-9a-f-]{27}",
    r"EAAA[\w-]{22,}",
    r"sq0(?:atp|csp)-[\w-]{22,}",
    r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}",
    r"shippo_(?:live|test)_[a-fA-F0-9]{40}",
    r"duffel_(?:test|live)_[\w=-]{40,}",
    r"EZ[AT]K[A-Za-z0-9]{54}",
    r"FLW(?:SECK|PUBK)_TEST-[A-Za-z0-9-]{12,}",
    r"SK[0-9a-fA-F]{32}",
    r"sm_[aps]at_[A-Za-z0-9]{16}",
    r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk",
    r"p8e-[A-Za-z0-9]{32}",
    # signed tokens and keys, plain and in base64
    r"(?:(?<![\w-])eyJ[\w-]{8,4000}+|eyJ[\w-]{8,400}+)(?:\.[\w/-]{0,8000}+={0,2}){2,4}",
    r"ey[A-Za-z0-9]{17,4000}\.ey[\w/-]{17,8000}\.[\w/-]{0,8000}={0,2}",
    r"(?:ops_)?eyJ[\w+/-]{40,}={0,3}",
    r"ZXlK[A-Za-z0-9+/_-]{40,}={0,3}",
    r"LS0tLS1CRUdJTi(?!BDRVJU)[A-Za-z0-9+/_-]{40,}={0,3}",
    r"AGE-SECRET-KEY-1[A-Z0-9]{50,}",
    r"A3-[A-Z0-9]{6}-[A-Z0-9-]{20,}",
)
"""Patterns of tokens that are recognizable without context; none starts inside a word."""

SERVICES = (
    *("ADAFRUIT", "ADOBE", "AIRTABLE", "ALGOLIA", "ALIBABA", "ARTIFACTORY", "ASANA", "ATLASSIAN", "BINTRAY"),
    *("BITBUCKET", "BITTREX", "CLOUDFLARE", "CODECOV", "COHERE", "COINBASE", "CONFLUENCE", "CONFLUENT", "CONTENTFUL"),
    *("DATADOG", "DISCORD", "DRONECI", "DROPBOX", "ETSY", "FACEBOOK", "FASTLY", "FINICITY", "FINNHUB", "FLICKR"),
    *("FRESHBOOKS", "GITTER", "GOCARDLESS", "HEROKU", "HUBSPOT", "INTERCOM", "JFROG", "JIRA", "KRAKEN", "KUCOIN"),
    *("LAUNCHDARKLY", "LINEAR", "LINKEDIN", "LOOKER", "MAILCHIMP", "MAILGUN", "MAPBOX", "MATTERMOST", "MERAKI"),
    *("MESSAGEBIRD", "NETLIFY", "NEWRELIC", "NYTIMES", "OKTA", "PLAID", "PRIVATEAI", "RAPIDAPI", "SENDBIRD"),
    *(
        "SENTRY",
        "SNYK",
        "SONAR",
        "SOURCEGRAPH",
        "SQUARESPACE",
        "SUMO",
        "TELEGRAM",
        "TRAVIS",
        "TWITCH",
        "TWITTER",
        "TYPEFORM",
    ),
    *("YANDEX", "ZENDESK", "CONTRIBSYS"),
)


def looks_secret(name: str) -> bool:
    """Return True if a variable of this name holds a secret, whatever its value."""
    words = re.split(r"[^A-Z0-9]+", name.upper())
    if name in _NEVER_SECRET or words[-1] in _NO_VALUES:
        return False
    return any(word in _WORDS or (word.endswith(_ENDINGS) and word not in _ORDINARY_NAMES) for word in words)


def is_ordinary(value: str) -> bool:
    """Return True if a value is no secret even under a secret's name: a common word, or one repeated character."""
    return value.lower() in _ORDINARY_VALUES or len(set(value)) < 2


def secrets_within(name: str, value: str) -> Iterator[str]:
    """Yield the parts of a variable's value that are secrets by shape or position, whatever its name.

    These are private keys, tokens of known services, user information and signatures in URLs, cookies, and values that
    the text itself calls a password, key or token. A random-looking value counts if `name` hints at a secret or a
    service.
    """
    has_cookies = "COOKIE" in name.upper() or "cookie:" in value.lower()
    for found in (*_candidates(value), *(_COOKIES.findall(value) if has_cookies else ())):
        if not found.startswith(_REFERENCES) and not is_ordinary(found):
            yield found
    yield from (match[0] for match in _PRIVATE_KEY.finditer(value))
    if _hints(name) and _is_random(value):
        yield value


def _candidates(value: str) -> Iterator[str]:
    for match in _tokens().finditer(value):
        yield from match.group("token", 0)
    for scheme, userinfo in _USERINFO.findall(value):
        yield from _of_userinfo(scheme, userinfo)
    for pattern in (_USER_OPTION, _ASSIGNED, _BEARER, *_IN_ADDRESS):
        yield from pattern.findall(value)


def _of_userinfo(scheme: str, userinfo: str) -> Iterator[str]:
    user, colon, password = userinfo.partition(":")
    if colon and password:
        yield password
    elif not _NAMES_USERS.fullmatch(scheme) or _MIXED.search(user):
        yield user


@cache
def _tokens() -> re.Pattern[str]:
    # Services lengthen their tokens, so the rest of the word is part of the token.
    return re.compile(rf"(?<![A-Za-z0-9])(?P<token>{'|'.join(TOKENS)})[\w-]*+")


@cache
def _hinting() -> re.Pattern[str]:
    return re.compile("|".join(("ACCESS", "AUTH", "API", "CRED", "KEY", "PASS", "SECRET", "TOKEN", *SERVICES)))


def _hints(name: str) -> bool:
    bare = name.upper()
    return bool(_hinting().search(bare.replace("_", ""))) and not _NAMES_CONTENT.search(bare)


def _is_random(value: str) -> bool:
    if not _ONE_TOKEN.fullmatch(value) or "://" in value:
        return False
    letters_and_digits = re.sub(r"[^A-Za-z0-9]", "", value)
    return bool(_MIXED.search(value)) or len(_CHANGE.findall(letters_and_digits)) >= _MIN_CHANGES
