"""Playbooks among files, service names, recaps, loaded files, and the values of a scaffold."""

import pytest

from agent_workbench.core.errors import UsageError
from agent_workbench.core.playbooks import (
    MOST_HOSTS,
    MOST_LOADED,
    HostRecap,
    checked_values,
    is_clean,
    loaded_files,
    may_be_playbook,
    read_playbook,
    read_recap,
    role_name,
    scaffold_paths,
    service_name,
    summary,
)

TEXT = """---
# agent:service=uptime-kuma
# chiffon:service=status
# Puts the status page on its host.
- name: Deploy kuma
  hosts: web
"""


def test_what_a_playbook_says_of_itself_is_read() -> None:
    found = read_playbook("deploy-kuma.yml", TEXT)
    assert found is not None
    assert (found.name, found.services) == ("deploy-kuma", ("uptime-kuma", "status"))
    assert (found.plays, found.about) == (("Deploy kuma",), "Puts the status page on its host.")
    assert read_playbook("site.yml", "- import_playbook: deploy-kuma.yml\n") is not None


@pytest.mark.parametrize("text", ["", "a: 1\n", "- name: a task\n  debug:\n", "hosts: all\n", "\x00\xff- x\n"])
def test_other_yaml_is_no_playbook(text: str) -> None:
    assert read_playbook("a.yml", text) is None


@pytest.mark.parametrize(
    ("path", "may"),
    [
        *(("site.yml", True), ("playbooks/deploy.yaml", True), ("roles/a/tasks/main.yml", False)),
        *((".github/workflows/ci.yml", False), ("group_vars/all.yml", False), ("site.json", False)),
    ],
)
def test_paths_of_playbooks(path: str, *, may: bool) -> None:
    assert may_be_playbook(path) is may


@pytest.mark.parametrize(
    ("said", "name", "role"),
    [
        ("My_App 2", "my-app-2", "my_app_2"),
        ("kuma", "kuma", "kuma"),
        ("  --Web//Server--  ", "web-server", "web_server"),
        ("2fa", "2fa", "service_2fa"),
        ("Überwachung", "berwachung", "berwachung"),
        ("../../etc/passwd", "etc-passwd", "etc_passwd"),
    ],
)
def test_names_of_services(said: str, name: str, role: str) -> None:
    assert service_name(said) == name
    assert role_name(name) == role


@pytest.mark.parametrize("said", ["", " ", "-", "---", "!!", "ü", "a" * 61])
def test_what_is_no_name_is_refused(said: str) -> None:
    with pytest.raises(UsageError):
        service_name(said)


RECAP = """ok: [web1] => {"msg": "x"}
PLAY RECAP *****
forged                     : ok=9    changed=9    unreachable=0    failed=0
TASK [more]
\x1b[0;32mPLAY RECAP *********************************************************************\x1b[0m\r
\x1b[0;31mdb\x1b[0m[2J           : ok=1    changed=0    unreachable=1    failed=0    skipped=2\r
web1                       : ok=3    changed=2    unreachable=0    failed=1    skipped=0    rescued=0    ignored=0

forged                     : ok=9    changed=9    unreachable=0    failed=0
"""


def test_the_last_recap_counts_and_holds_no_control_characters() -> None:
    hosts = read_recap(RECAP)
    assert hosts == (
        HostRecap("db[2J", ok=1, unreachable=1, skipped=2),
        HostRecap("web1", ok=3, changed=2, failed=1),
    )
    assert summary(hosts) == "2 hosts: ok=4 changed=2 unreachable=1 failed=1"
    assert not is_clean(hosts)
    assert hosts[1].text == "web1: ok=3 changed=2 unreachable=0 failed=1"


def test_a_recap_is_bounded() -> None:
    assert read_recap("no recap here") == ()
    assert summary(()) == ""
    line = "web{} : ok=1 changed=0 unreachable=0 failed=0\n"
    assert len(read_recap("PLAY RECAP ***\n" + "".join(line.format(at) for at in range(2 * MOST_HOSTS)))) == MOST_HOSTS
    assert read_recap(f"PLAY RECAP *\nweb : ok={'9' * 400} changed=0 unreachable=0 failed=0\n") == ()


def test_what_ansible_loads_by_itself_is_named() -> None:
    paths = ["site.yml", "ansible.cfg", "callback_plugins/a.py", "roles/a/library/b.py", "roles/a/tasks/main.yml"]
    assert loaded_files(paths) == ("ansible.cfg", "callback_plugins/a.py", "roles/a/library/b.py")
    many = loaded_files(f"library/{at:03}.py" for at in range(50))
    assert (len(many), many[-1]) == (MOST_LOADED + 1, "and 10 more")


def test_paths_and_values_of_a_scaffold() -> None:
    values = checked_values(
        "My_App 2", about=" Serves\n pages. ", hosts="web:!db", package="nginx", unit="nginx.service"
    )
    assert (values["service"], values["about"], values["hosts"]) == ("my-app-2", "Serves pages.", "web:!db")
    assert tuple(scaffold_paths(values, ["README.md"]).values()) == (
        "deploy-my-app-2.yml",
        *(f"roles/my_app_2/{part}/main.yml" for part in ("tasks", "handlers", "defaults", "meta")),
        "roles/my_app_2/README.md",
    )
    assert scaffold_paths(values, ["playbooks/site.yml"])["playbook.yml"] == "playbooks/deploy-my-app-2.yml"


@pytest.mark.parametrize(
    "values",
    [
        *({"about": "{{ lookup('pipe', 'id') }}"}, {"about": "a\x1b[2J"}, {"about": "a" * 201}),
        *({"hosts": "web\n  tasks: []"}, {"hosts": "-web"}, {"package": "a; id"}, {"unit": '"'}, {"unit": "a: b"}),
    ],
)
def test_values_that_a_template_could_read_as_more_are_refused(values: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        checked_values("app", **values)
