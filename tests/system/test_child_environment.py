"""What a child process is told of the environment."""

from agent_workbench.system.programs import child_environment

ENVIRON = {"PATH": "/bin", "LC_ALL": "C", "CUDA_VISIBLE_DEVICES": "0", "HOSTED_API_KEY": "secret", "PATHS": "no"}


def test_a_child_is_told_where_things_are_and_no_secret() -> None:
    assert child_environment(ENVIRON) == {"PATH": "/bin", "LC_ALL": "C"}
    assert child_environment({"NVIDIA_API_KEY": "nvapi-x", "NVIDIA_VISIBLE_DEVICES": "0"}, "NVIDIA_") == {
        "NVIDIA_VISIBLE_DEVICES": "0"
    }
    assert child_environment(ENVIRON, "CUDA_", "HIP_") == {"PATH": "/bin", "LC_ALL": "C", "CUDA_VISIBLE_DEVICES": "0"}
