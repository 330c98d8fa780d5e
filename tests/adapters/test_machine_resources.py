"""Load, cores and memory of the machine, within the limits of a container."""

import os
from pathlib import Path

from agent_workbench.adapters.local_machine import machine_resources
from agent_workbench.core.workers import Gpu

GIB = 1 << 30


def write(root: Path, files: dict[str, str]) -> Path:
    """Files below a folder that stands for `/`."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_this_machine_has_cores_and_memory() -> None:
    found = machine_resources((Gpu("card", 24.0, 20.0),))
    assert 1 <= found.cores <= (os.cpu_count() or 1)
    assert 0 <= found.cores_available <= found.cores
    assert 0 < found.memory_available_gb <= found.memory_total_gb
    assert found.largest_gpu == 24.0
    assert found.freest_gpu == 20.0


def test_limits_of_a_container_count(tmp_path: Path) -> None:
    meminfo = "MemTotal: 33554432 kB\nMemFree: 1 kB\nMemAvailable: 25165824 kB\n"
    plain = machine_resources(root=write(tmp_path, {"proc/meminfo": meminfo}))
    assert (plain.memory_total_gb, plain.memory_available_gb) == (32.0, 24.0)
    limits = {
        "proc/self/cgroup": "0::/user.slice/agent.service\n",
        "sys/fs/cgroup/user.slice/memory.max": "max\n",
        "sys/fs/cgroup/user.slice/agent.service/memory.max": f"{4 * GIB}\n",
        "sys/fs/cgroup/user.slice/agent.service/memory.current": f"{GIB}\n",
        "sys/fs/cgroup/user.slice/agent.service/cpu.max": "50000 100000\n",
    }
    limited = machine_resources(root=write(tmp_path, limits))
    assert (limited.memory_total_gb, limited.memory_available_gb) == (4.0, 3.0)
    assert limited.cores == 1
    assert limited.cores_available <= 0.5


def test_limits_of_the_older_control_groups_count(tmp_path: Path) -> None:
    found = machine_resources(
        root=write(
            tmp_path,
            {
                "proc/meminfo": "MemTotal: 33554432 kB\nMemAvailable: 25165824 kB\n",
                "proc/self/cgroup": "5:cpu,cpuacct:/docker/1\n4:memory:/docker/1\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{8 * GIB}\n",
                "sys/fs/cgroup/memory/memory.usage_in_bytes": f"{6 * GIB}\n",
                "sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes": "9223372036854771712\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
        )
    )
    assert (found.memory_total_gb, found.memory_available_gb) == (8.0, 2.0)


def test_unreadable_values_are_no_error(tmp_path: Path) -> None:
    root = write(
        tmp_path,
        {"proc/meminfo": "MemTotal: many\n", "sys/fs/cgroup/cpu.max": "x y z", "sys/fs/cgroup/memory.max": "-3"},
    )
    assert machine_resources(root=root).memory_available_gb == 0.0


def test_files_in_memory_are_not_in_use(tmp_path: Path) -> None:
    group = {
        "sys/fs/cgroup/memory.max": f"{4 * GIB}",
        "sys/fs/cgroup/memory.current": f"{3 * GIB}",
        "sys/fs/cgroup/memory.stat": f"anon {GIB}\nfile {2 * GIB}\nactive_file {GIB}\ninactive_file {GIB}\nodd\n",
    }
    root = write(tmp_path, {"proc/meminfo": f"MemTotal: {16 << 20} kB\nMemAvailable: {8 << 20} kB\n", **group})
    assert machine_resources((), root).memory_available_gb == 3.0


def test_threads_of_one_core_are_one_physical_core(tmp_path: Path) -> None:
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    place = "sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
    root = write(tmp_path, {place.format(each): "0-63\n" for each in usable})
    assert machine_resources((), root).physical_cores == 1
    assert machine_resources((), tmp_path / "nothing").physical_cores == len(list(usable))
