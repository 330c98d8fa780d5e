from pathlib import Path

from agent_workbench.adapters.llama_cpp.embedded_server import ServerCommand, server_command
from agent_workbench.core.local_models import ServerOptions
from agent_workbench.core.settings.models import CacheType

COMPUTED = ServerOptions(8192, 6, 20, CacheType.Q8_0, 512 << 20)


def command(options: ServerOptions, server: str = "") -> ServerCommand:
    environ = {"PATH": "/bin:/usr/bin"}
    return server_command(Path("/m.gguf"), options=options, server=server, api_key="k", environ=environ)


def test_the_built_in_server_gets_what_was_computed() -> None:
    line = " ".join(command(COMPUTED).argv)
    assert "--context-tokens 8192 --threads 6 --alias m.gguf" in line
    assert "--cache-type q8_0 --cache-megabytes 512 --gpu-layers 20" in line


def test_ones_own_server_gets_what_was_computed_and_no_key_in_its_arguments() -> None:
    made = command(COMPUTED, "sh")
    computed = ("-t", "6", "-ngl", "20", "-ctk", "q8_0", "-ctv", "q8_0")
    assert made.argv[-12:] == ("--alias", "m.gguf", *computed, "-b", "512")
    assert made.environment["LLAMA_API_KEY"] == "k"
    assert "k" not in made.argv


def test_threads_that_wait_spin_shortly_and_sleep_then_unless_the_user_says_otherwise() -> None:
    def waiting(**environ: str) -> tuple[str | None, str | None]:
        made = server_command(Path("/m.gguf"), options=COMPUTED, server="", api_key="k", environ=environ)
        return made.environment.get("OMP_WAIT_POLICY"), made.environment.get("GOMP_SPINCOUNT")

    assert waiting() == ("passive", "1000")
    assert waiting(OMP_WAIT_POLICY="active") == ("active", None)
    assert waiting(GOMP_SPINCOUNT="5") == (None, "5")


def test_what_is_left_to_llama_cpp_is_not_said() -> None:
    assert not {"-t", "-ngl", "-ctk"} & set(command(ServerOptions(), "sh").argv)
    assert "--gpu-layers" not in command(ServerOptions()).argv
