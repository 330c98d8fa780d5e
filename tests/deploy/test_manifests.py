"""Compose files, Kubernetes manifests, pipelines and units: valid by their published schemas, and consistent."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.architecture.source_tree import ROOT
from tests.deploy.kubernetes_types import read_object

DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
PIPELINES = [DEPLOY / side / "workflows/cd.yml" for side in ("gitea", "github")]
SECRET_NAME = re.compile(r"TOKEN|KEY|PASSWORD|SECRET")
HEARD = re.compile(r"\$\{([A-Z_]+)[:}]")


def documents(path: Path) -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all(path.read_text()) if each]


def manifests() -> list[dict[str, Any]]:
    kustomization = documents(KUBERNETES / "kustomization.yaml")[0]
    return [each for name in kustomization["resources"] for each in documents(KUBERNETES / name)]


def pod() -> dict[str, Any]:
    (deployment,) = [each for each in manifests() if each["kind"] == "Deployment"]
    return dict(deployment["spec"]["template"]["spec"])


def validate(schema: str, *paths: Path) -> None:
    command = [sys.executable, "-P", "-m", "check_jsonschema", "--builtin-schema", schema, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_compose_files_and_pipelines_have_their_published_schemas() -> None:
    validate("vendor.compose-spec", DEPLOY / "compose.yaml", DEPLOY / "compose.sandbox.yaml")
    validate("vendor.github-workflows", *PIPELINES)


def test_an_override_has_the_services_of_the_compose_file() -> None:
    base, sandbox = (documents(DEPLOY / name)[0]["services"] for name in ("compose.yaml", "compose.sandbox.yaml"))
    assert base.keys() == sandbox.keys() == {"worker", "mcp"}
    installer = (ROOT / "scripts/install-worker.sh").read_text()
    assert "services:\n  worker:\n" in installer


def test_the_compose_file_holds_no_secret_and_gives_what_the_entry_point_hears() -> None:
    worker = documents(DEPLOY / "compose.yaml")[0]["services"]["worker"]
    heard = set(HEARD.findall((DEPLOY / "entrypoint.sh").read_text())) - {"HOME", "REPO_PATH", "AGENT_FORGE__URL"}
    assert heard <= worker["environment"].keys(), "each variable of the entry point can be set"
    assert not [name for name in worker["environment"] if SECRET_NAME.search(name)]
    assert worker["restart"] == "unless-stopped"
    assert worker["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in worker["security_opt"]
    assert "{WORKER_UID:-10001}" in worker["user"]


@pytest.mark.parametrize("manifest", manifests(), ids=lambda each: f"{each['kind']}-{each['metadata']['name']}")
def test_a_manifest_is_of_its_type(manifest: dict[str, Any]) -> None:
    read_object(manifest)


@pytest.mark.parametrize(
    "port", [{"port": "3200"}, {"port": True}, {"name": "mcp"}, {"port": 3200, "targetport": 1}, "3200"], ids=str
)
def test_the_reader_of_types_finds_faults(port: object) -> None:
    (good,) = documents(KUBERNETES / "service.yaml")
    with pytest.raises((ValueError, TypeError)):
        read_object({**good, "spec": {**good["spec"], "ports": [port]}})


def test_a_pod_runs_as_no_root_and_refers_to_what_is_there() -> None:
    spec = pod()
    assert spec["securityContext"]["runAsNonRoot"]
    assert not spec["automountServiceAccountToken"], "it would lie in a file that commands might read"
    volumes = {each["name"] for each in spec["volumes"]}
    claims = {each["metadata"]["name"] for each in manifests() if each["kind"] == "PersistentVolumeClaim"}
    assert {each["persistentVolumeClaim"]["claimName"] for each in spec["volumes"] if "emptyDir" not in each} == claims
    kustomization = documents(KUBERNETES / "kustomization.yaml")[0]
    maps = {
        each["name"]: dict(line.split("=", 1) for line in each["literals"])
        for each in kustomization["configMapGenerator"]
    }
    (image,) = kustomization["images"]
    for container in (*spec["initContainers"], *spec["containers"]):
        assert container["image"] == image["name"], "one line names the version of all of them"
        assert {each["name"] for each in container["volumeMounts"]} == volumes
        assert {each["configMapRef"]["name"] for each in container["envFrom"]} == maps.keys()
        assert not container["securityContext"]["allowPrivilegeEscalation"]
        secrets = container.get("env", [])
        assert all("secretKeyRef" in each["valueFrom"] for each in secrets)
    assert not [name for name in maps["agent-worker"] if SECRET_NAME.search(name)]


def test_the_service_finds_the_server_under_the_name_that_it_answers_to() -> None:
    (service,) = [each for each in manifests() if each["kind"] == "Service"]
    (deployment,) = [each for each in manifests() if each["kind"] == "Deployment"]
    assert service["spec"]["selector"].items() <= deployment["spec"]["template"]["metadata"]["labels"].items()
    (mcp,) = [each for each in pod()["containers"] if each["name"] == "mcp"]
    namespace = documents(KUBERNETES / "kustomization.yaml")[0]["namespace"]
    assert mcp["args"][-1] == f"{service['metadata']['name']}.{namespace}.svc"
    assert mcp["ports"][0]["containerPort"] == service["spec"]["ports"][0]["port"] == int(mcp["args"][4])


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="machine lacks: kubectl")
def test_kustomize_puts_the_one_tag_everywhere(tmp_path: Path) -> None:
    copied = shutil.copytree(KUBERNETES, tmp_path / "kubernetes")
    roll_out = [str(ROOT / "scripts/roll-out.sh"), str(copied / "kustomization.yaml"), "agent-workbench", "abc123"]
    subprocess.run(roll_out, check=True)
    done = subprocess.run(["kubectl", "kustomize", str(copied)], capture_output=True, text=True, check=True)
    images = re.findall(r"image: (.*)", done.stdout)
    assert images == ["registry.example/org/agent-workbench:abc123"] * 3


def jobs(path: Path) -> dict[str, Any]:
    return dict(documents(path)[0]["jobs"])


def runs(path: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for job in jobs(path).values():
        for step in job["steps"]:
            if "run" in step:
                yield job, step


@pytest.mark.parametrize("path", PIPELINES, ids=lambda path: path.parts[-3])
def test_a_pipeline_waits_for_jobs_of_its_own_file_and_is_no_here_document(path: Path) -> None:
    assert "<<" not in path.read_text(), "one line of it that is not indented ends the YAML without a word"
    known = jobs(path)
    assert {job["needs"] for job in known.values() if "needs" in job} <= known.keys()
    order = [known[name].get("needs") for name in ("check", "image", "roll-out", "release")]
    assert order == [None, "check", "image", "check"], "nothing is pushed that was not checked and built"


@pytest.mark.parametrize("path", PIPELINES, ids=lambda path: path.parts[-3])
def test_the_scripts_of_a_pipeline_are_sound_and_get_secrets_by_name(path: Path, tmp_path: Path) -> None:
    for index, (job, step) in enumerate(runs(path)):
        assert "${{" not in step["run"], "an expression in a script is text that becomes code"
        given = {**job.get("env", {}), **step.get("env", {})}
        script = tmp_path / f"{index}.sh"
        script.write_text("\n".join(["#!/bin/bash", *(f"{name}=x; export {name}" for name in given), step["run"]]))
        check_shell(script)
        for word in re.findall(r"(?:scripts|\.ci)/[a-z.-]+", step["run"]):
            assert (ROOT / word).stat().st_mode & 0o100, word


def check_shell(*scripts: Path) -> None:
    shellcheck = Path(sys.executable).with_name("shellcheck")
    done = subprocess.run([str(shellcheck), *map(str, scripts)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_shellcheck_finds_nothing_in_our_scripts() -> None:
    scripts = [*DEPLOY.glob("*.sh"), *(ROOT / "scripts").glob("*.sh"), *(ROOT / ".ci").iterdir()]
    assert len(scripts) >= 5
    check_shell(*scripts)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="machine lacks: systemd-analyze")
def test_the_units_are_valid(tmp_path: Path) -> None:
    for path in (DEPLOY / "systemd").iterdir():
        (tmp_path / path.name.replace("@", "@shop")).write_text(path.read_text())
    units = sorted(map(str, tmp_path.iterdir()))
    environ = {"PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", *units], env=environ, capture_output=True, text=True, check=False
    )
    found = [line for line in (done.stdout + done.stderr).splitlines() if "agent-worker@shop" in line]
    assert found == []
    service = (DEPLOY / "systemd/agent-worker@.service").read_text()
    (codes,) = re.findall(r"SuccessExitStatus=(.*)", service)
    assert codes.split() == ["3", "5", "7", "130"]


def test_a_release_is_what_its_tag_says() -> None:
    done = subprocess.run([str(ROOT / ".ci/release"), "v0.0.0"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "the tag is v0.0.0, but the package is" in done.stderr
    shown = subprocess.run(["make", "--dry-run", "build"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "--outdir dist" in shown
    assert "> SHA256SUMS" in shown
