"""Signatures with real keys and the real ssh-keygen."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent_workbench.adapters.ssh_keygen import SigningKey, SshKeygen
from agent_workbench.adapters.ssh_signatures import KEPT_SECONDS, MOST_BYTES, SshSignatures, principal_of
from agent_workbench.core.errors import SigningError
from agent_workbench.core.signed import PERSON_PURPOSES, WORKER_PURPOSES, SignedPurpose

ENVIRON = dict(os.environ)
DECISION, JOURNAL = SignedPurpose.DECISION, SignedPurpose.JOURNAL
LINE = "-----BEGIN SSH SIGNATURE-----"


class CountedKeygen(SshKeygen):
    """The program, and how often it ran."""

    runs = 0

    def run(self, arguments: Sequence[str], stdin: bytes = b"", *, agent: bool = False) -> tuple[bytes, str]:
        self.runs += 1
        return super().run(arguments, stdin, agent=agent)


class Machine:
    """A machine with a key of its own, a list of allowed signers, and a clock."""

    def __init__(self, folder: Path, name: str, key: Path | None = None) -> None:
        self.folder, self.name, self.seconds = folder / name, f"{name}@test", 0.0
        self.folder.mkdir(exist_ok=True)
        self.allowed, self.revoked = self.folder / "allowed_signers", self.folder / "revoked_keys"
        self.generated = self.folder / "keys" / "signing_key"
        self.keygen = CountedKeygen(ENVIRON)
        self.key = SigningKey(self.keygen, key, self.generated)
        self.signatures = SshSignatures(self.keygen, self.key, self.allowed, self.name, lambda: self.seconds)

    async def allows(self, other: "Machine", purposes: Sequence[SignedPurpose], more: str = "") -> None:
        line = await other.signatures.public_line(purposes)
        self.writes(line.replace('" ssh-', f'"{more} ssh-'))

    def writes(self, *lines: str) -> None:
        with self.allowed.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)


@pytest.fixture
def here(tmp_path: Path) -> Machine:
    return Machine(tmp_path, "here")


@pytest.fixture
def ada(tmp_path: Path) -> Machine:
    return Machine(tmp_path, "ada")


class TestSigner:
    """Who signed, or why it does not count."""

    async def test_a_person_of_the_list_counts_for_what_the_list_says(self, here: Machine, ada: Machine) -> None:
        await here.allows(ada, WORKER_PURPOSES)
        head, decision = [await ada.signatures.sign(each, b"text") for each in (JOURNAL, DECISION)]
        assert await here.signatures.signer(JOURNAL, b"text", head) == "ada@test"
        assert await here.signatures.problem(JOURNAL, b"text", head) == ""
        assert await here.signatures.signer(DECISION, b"text", decision) == ""
        assert "may not sign for agent-decision" in await here.signatures.problem(DECISION, b"text", decision)
        strange = [await here.signatures.key_is_unknown(DECISION, each) for each in (decision, "", "no signature")]
        assert (strange, await here.signatures.key_is_unknown(JOURNAL, head)) == ([True, False, False], False)

    async def test_no_other_message_and_no_other_purpose(self, here: Machine, ada: Machine) -> None:
        await here.allows(ada, PERSON_PURPOSES)
        signature = await ada.signatures.sign(DECISION, b"text")
        assert await here.signatures.signer(DECISION, b"text", signature) == "ada@test"
        assert await here.signatures.signer(DECISION, b"text.", signature) == ""
        assert await here.signatures.signer(JOURNAL, b"text", signature) == ""
        assert "not valid" in await here.signatures.problem(JOURNAL, b"text", signature)

    async def test_an_unknown_key_is_named_and_costs_no_process(self, here: Machine, ada: Machine) -> None:
        signature = await ada.signatures.sign(DECISION, b"text")
        assert await here.signatures.signer(DECISION, b"text", signature) == ""
        assert "its key SHA256:" in await here.signatures.problem(DECISION, b"text", signature)
        assert here.keygen.runs == 0

    @pytest.mark.parametrize(
        "text", ["", "x", LINE, f"{LINE}\nAAAA\n-----END SSH SIGNATURE-----", "\0", "\u2003é", "\udc80"]
    )
    async def test_what_is_no_signature_is_refused(self, here: Machine, text: str) -> None:
        here.writes("# nobody")
        assert await here.signatures.signer(DECISION, b"text", text) == ""
        assert await here.signatures.problem(DECISION, b"text", text) in {
            "it is not signed",
            "its signature is malformed",
        }
        assert here.keygen.runs == 0

    async def test_bytes_changed_anywhere_in_a_signature_make_it_invalid(self, here: Machine, ada: Machine) -> None:
        await here.allows(ada, PERSON_PURPOSES)
        signature = await ada.signatures.sign(DECISION, b"text")
        lines = signature.splitlines()
        for place in (1, 2, 3, 4):
            changed = "B" if lines[place][5] != "B" else "C"
            forged = "\n".join([*lines[:place], lines[place][:5] + changed + lines[place][6:], *lines[place + 1 :]])
            assert await here.signatures.signer(DECISION, b"text", forged) == "", place

    async def test_the_own_key_counts_unless_the_list_says_otherwise(self, here: Machine) -> None:
        signature = await here.signatures.sign(DECISION, b"text")
        assert await here.signatures.signer(DECISION, b"text", signature) == "here@test"
        listed = await here.signatures.public_line(WORKER_PURPOSES)
        here.writes(listed.replace("here@test", "worker-7"))
        assert await here.signatures.signer(DECISION, b"text", signature) == ""
        assert await here.signatures.principal() == "worker-7"

    async def test_a_key_that_cannot_be_used_keeps_nobody_else_from_counting(self, here: Machine, ada: Machine) -> None:
        await here.allows(ada, PERSON_PURPOSES)
        await here.signatures.principal()
        here.generated.chmod(0o644)
        other = Machine(here.folder.parent, "here")
        with pytest.raises(SigningError, match=r"can be read by others \(mode 644\)"):
            await other.signatures.sign(DECISION, b"text")
        assert await other.signatures.signer(DECISION, b"t", await ada.signatures.sign(DECISION, b"t")) == "ada@test"

    async def test_dates_and_revoked_keys_count_as_ssh_keygen_has_them(self, here: Machine, ada: Machine) -> None:
        await here.allows(ada, PERSON_PURPOSES, ',valid-before="20200101"')
        signature = await ada.signatures.sign(DECISION, b"text")
        assert "expired" in await here.signatures.problem(DECISION, b"text", signature)
        here.allowed.unlink()
        await here.allows(ada, PERSON_PURPOSES, ',valid-after="20200101"')
        assert await here.signatures.signer(DECISION, b"text", signature) == "ada@test"
        here.revoked.write_text((await ada.signatures.public_line(PERSON_PURPOSES)).partition('" ')[2])
        assert await here.signatures.signer(DECISION, b"text", signature) == ""

    async def test_two_lines_of_one_key_count_each_for_its_purposes(self, here: Machine, ada: Machine) -> None:
        await here.allows(ada, [JOURNAL])
        here.writes((await ada.signatures.public_line([DECISION])).replace("ada@test", "ada.lovelace"))
        for purpose, name in ((JOURNAL, "ada@test"), (DECISION, "ada.lovelace")):
            assert await here.signatures.signer(purpose, b"x", await ada.signatures.sign(purpose, b"x")) == name


class TestAllowedSigners:
    """A line that allows more than it shows allows nothing."""

    @pytest.mark.parametrize(
        ("line", "problem"),
        [
            ("ada {key}", "does not list what the key may sign"),
            ('ada namespaces="*" {key}', "does not list"),
            ('ada namespaces="agent-*" {key}', "does not list"),
            ('ada namespaces="!git,agent-decision" {key}', "does not list"),
            ('* namespaces="agent-decision" {key}', "is not one principal"),
            ('ada,eve namespaces="agent-decision" {key}', "is not one principal"),
            ('"a da" namespaces="agent-decision" {key}', "is not one principal"),
            ('-x namespaces="agent-decision" {key}', "is not one principal"),
            ('ada cert-authority,namespaces="agent-decision" {key}', "does not list"),
            ('ada namespaces="agent-decision",cert-authority {key}', "options cannot be read"),
            ('ada namespaces="agent-decision",verify-required="1" {key}', "'verify-required' is not supported"),
            ('ada namespaces="agent-journal",namespaces="agent-decision" {key}', "is there twice"),
            ('ada namespaces="agent-decision",valid-before="tomorrow" {key}', "is not a date"),
            ('ada namespaces="agent-decision" ssh-rsa AAAA', "no public key"),
            ('ada namespaces="agent-decision"', "options cannot be read"),
            ('ada\x1b[31m namespaces="agent-decision" {key}', "control characters"),
            ('ada\r namespaces="agent-decision" {key}', "control characters"),
            ('ád\u0430 namespaces="agent-decision" {key}', "not ASCII"),
            ("x" * 30_000, "more than 20,000 characters"),
        ],
    )
    async def test_such_a_line_is_told_and_the_others_count(
        self, here: Machine, ada: Machine, line: str, problem: str
    ) -> None:
        key = (await ada.signatures.public_line(PERSON_PURPOSES)).partition('" ')[2]
        here.writes("# of the team", "", line.format(key=key), 'eve namespaces="agent-result" ' + key)
        signature = await ada.signatures.sign(DECISION, b"text")
        assert await here.signatures.signer(DECISION, b"text", signature) == ""
        (told,) = await here.signatures.problems()
        assert f"{here.allowed}: line 3: " in told
        assert problem in told
        assert (
            await here.signatures.signer(
                SignedPurpose.RESULT, b"x", await ada.signatures.sign(SignedPurpose.RESULT, b"x")
            )
            == "eve"
        )

    async def test_comments_after_the_key_are_no_part_of_it(self, here: Machine, ada: Machine) -> None:
        here.writes(await ada.signatures.public_line(PERSON_PURPOSES) + ' ada" namespaces="x" * \\')
        assert await here.signatures.signer(DECISION, b"x", await ada.signatures.sign(DECISION, b"x")) == "ada@test"

    @pytest.mark.parametrize("name", ["allowed", "revoked"])
    async def test_a_file_that_others_can_change_is_no_authority(self, here: Machine, name: str) -> None:
        path: Path = getattr(here, name)
        path.write_text("")
        path.chmod(0o666)
        with pytest.raises(SigningError, match="others may change"):
            await here.signatures.signer(DECISION, b"text", f"{LINE}x")

    async def test_a_huge_file_a_pipe_and_a_folder_are_refused(self, here: Machine) -> None:
        with here.allowed.open("wb") as file:
            file.truncate(MOST_BYTES + 1)
        with pytest.raises(SigningError, match="more than 1,000,000 bytes"):
            await here.signatures.problems()
        here.allowed.unlink()
        os.mkfifo(here.allowed, 0o600)
        with pytest.raises(SigningError, match="not a regular file"):
            await here.signatures.problems()
        here.allowed.unlink()
        here.allowed.mkdir()
        with pytest.raises(SigningError, match="cannot be read"):
            await here.signatures.problems()

    def test_any_name_makes_a_principal(self) -> None:
        assert principal_of("Ada Lovelace@lap top\n") == "Ada-Lovelace@lap-top-"
        assert principal_of("-x") == "x-x"
        assert principal_of("") == "x"


class TestSigningKey:
    """One key of a machine, made once and read by nobody else."""

    async def test_a_key_is_made_once_and_private(self, here: Machine) -> None:
        first = await here.signatures.public_line(WORKER_PURPOSES)
        assert here.generated.stat().st_mode & 0o777 == 0o600
        assert here.generated.parent.stat().st_mode & 0o777 == 0o700
        assert [each.name for each in here.generated.parent.iterdir()] == ["signing_key"]
        again = Machine(here.folder.parent, "here")
        assert await again.signatures.public_line(WORKER_PURPOSES) == first
        assert first.startswith('here@test namespaces="agent-journal,agent-result" ssh-ed25519 AAAA')

    def test_of_two_that_make_it_at_once_one_stays(self, here: Machine) -> None:
        other = Machine(here.folder.parent, "here")
        run = here.keygen.run

        def late(arguments: Sequence[str], stdin: bytes = b"", *, agent: bool = False) -> tuple[bytes, str]:
            if "-t" in arguments:
                other.key.public()
            return run(arguments, stdin, agent=agent)

        here.keygen.run = late  # type: ignore[method-assign]
        assert here.key.public() == other.key.public()

    async def test_judging_makes_no_key(self, here: Machine, ada: Machine) -> None:
        await here.signatures.signer(DECISION, b"x", await ada.signatures.sign(DECISION, b"x"))
        assert not here.generated.exists()

    async def test_a_missing_or_protected_key_is_named_with_what_to_do(self, tmp_path: Path) -> None:
        machine = Machine(tmp_path, "m", tmp_path / "id")
        with pytest.raises(SigningError, match="id cannot be read"):
            await machine.signatures.sign(DECISION, b"x")
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", tmp_path / "id"], check=True)
        with pytest.raises(SigningError, match="passphrase") as error:
            await machine.signatures.sign(DECISION, b"x")
        assert "ssh-agent" in error.value.advice
        (tmp_path / "id").write_text("nonsense")
        with pytest.raises(SigningError, match="cannot be used"):
            await machine.signatures.principal()

    def test_a_public_key_signs_by_the_agent_and_a_private_one_never_asks_it(self, tmp_path: Path) -> None:
        private, socket = tmp_path / "id", tmp_path / "agent.sock"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", private], check=True)
        agent = subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.PIPE)
        try:
            assert agent.stdout is not None
            assert agent.stdout.readline()
            environ = {**ENVIRON, "SSH_AUTH_SOCK": str(socket)}
            subprocess.run(["ssh-add", "-q", private], env=environ, check=True)
            (tmp_path / "only").mkdir()
            public = shutil.copy(tmp_path / "id.pub", tmp_path / "only")
            private.unlink()
            for path, signs in ((Path(public), True), (private, False)):
                keygen = SshKeygen(environ)
                key = SigningKey(keygen, path, tmp_path / "none")
                if signs:
                    assert key.sign(DECISION, b"x").startswith(LINE)
                else:
                    private.write_text("no key")
                    private.chmod(0o600)
                    with pytest.raises(SigningError):
                        key.sign(DECISION, b"x")
        finally:
            agent.kill()
            agent.communicate()


class TestSshKeygen:
    """The program is found by absolute path, bounded, and its absence is told."""

    async def test_a_missing_program_is_told(self, tmp_path: Path) -> None:
        key = SigningKey(SshKeygen({"PATH": str(tmp_path)}), None, tmp_path / "key")
        signatures = SshSignatures(SshKeygen({"PATH": str(tmp_path)}), key, tmp_path / "allowed", "x")
        with pytest.raises(SigningError, match="ssh-keygen was not found") as error:
            await signatures.sign(DECISION, b"x")
        assert "openssh-client" in error.value.advice

    def test_one_inside_the_repository_is_not_started(self, tmp_path: Path) -> None:
        planted = tmp_path / "ssh-keygen"
        planted.write_text(f"#!/bin/sh\ntouch {tmp_path}/canary\n")
        planted.chmod(0o755)
        SshKeygen({"PATH": f"{tmp_path}:{ENVIRON['PATH']}"}, str(tmp_path)).run(["-l", "-f", "/dev/null"])
        assert not (tmp_path / "canary").exists()

    def test_one_that_hangs_is_ended(self, tmp_path: Path) -> None:
        hanging = tmp_path / "ssh-keygen"
        hanging.write_text("#!/bin/sh\nexec sleep 60\n")
        hanging.chmod(0o755)
        with pytest.raises(SigningError, match=r"did not end within 0\.2 s"):
            SshKeygen({"PATH": str(tmp_path)}, seconds=0.2).run(["-h"])


class TestJudgements:
    """The same signature is judged once, as long as nothing changed."""

    async def test_a_judgement_is_kept_for_a_while(self, here: Machine, ada: Machine) -> None:
        await here.allows(ada, PERSON_PURPOSES)
        signature = await ada.signatures.sign(DECISION, b"text")
        runs = []
        for here.seconds in (0, 1, KEPT_SECONDS - 1, KEPT_SECONDS + 1):
            assert await here.signatures.signer(DECISION, b"text", signature) == "ada@test"
            runs.append(here.keygen.runs)
        assert runs == [1, 1, 1, 2]

    async def test_it_ends_with_a_change_of_the_list(self, here: Machine, ada: Machine) -> None:
        await here.allows(ada, PERSON_PURPOSES)
        signature = await ada.signatures.sign(DECISION, b"text")
        assert await here.signatures.signer(DECISION, b"text", signature) == "ada@test"
        here.allowed.write_text("")
        assert await here.signatures.signer(DECISION, b"text", signature) == ""


def test_a_limit_that_passed_while_this_process_was_frozen_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    communicate = subprocess.Popen.communicate
    calls: list[float | None] = []

    def frozen(
        process: "subprocess.Popen[bytes]", given: bytes | None = None, timeout: float | None = None
    ) -> tuple[bytes, bytes]:
        calls.append(timeout)
        if len(calls) == 1:  # the program has ended long ago when this process may look again
            process.wait()
            raise subprocess.TimeoutExpired("ssh-keygen", 10)
        return communicate(process, given, timeout)

    monkeypatch.setattr(subprocess.Popen, "communicate", frozen)
    out, problem = SshKeygen(ENVIRON).run(["-l", "-f", str(tmp_path / "none")])
    assert (out, len(calls)) == (b"", 2)
    assert "No such file" in problem
