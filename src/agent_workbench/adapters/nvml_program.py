"""Program that prints the GPUs that NVML knows: a line for each with total and free bytes and its name.

It is run in a process of its own, because a call of the driver may never return. It ends with 1 without NVML.
"""

import sys

import pynvml


def main() -> None:
    """Print the GPUs."""
    try:
        pynvml.nvmlInit()
        for at in range(pynvml.nvmlDeviceGetCount()):
            device = pynvml.nvmlDeviceGetHandleByIndex(at)
            memory = pynvml.nvmlDeviceGetMemoryInfo(device)
            name = pynvml.nvmlDeviceGetName(device)
            told = name.decode() if isinstance(name, bytes) else name
            sys.stdout.write(f"{memory.total} {memory.free} {told}\n")
    except pynvml.NVMLError:
        sys.exit(1)


if __name__ == "__main__":
    main()
