"""The command `agent`, also as `python -m agent_workbench`."""

import os
import sys


def main() -> None:
    """Run the command line and exit with its code; Ctrl-C counts from the first moment, while all is still loaded."""
    try:
        from agent_workbench.system.programs import clean_path

        # Libraries start programs too: the current folder, which may be anybody's, is no place to find them.
        os.environ["PATH"] = clean_path(os.environ.get("PATH", ""))
        from agent_workbench.cli.main import main as run
    except KeyboardInterrupt:
        sys.exit(130)  # what `ExitCode.INTERRUPTED` says, which may not be there yet
    run()


if __name__ == "__main__":
    main()
