"""The command `agent`, also as `python -m agent_workbench`."""

import sys


def main() -> None:
    """Run the command line and exit with its code; Ctrl-C counts from the first moment, while all is still loaded."""
    try:
        from agent_workbench.cli.main import main as run
    except KeyboardInterrupt:
        sys.exit(130)  # what `ExitCode.INTERRUPTED` says, which may not be there yet
    run()


if __name__ == "__main__":
    main()
