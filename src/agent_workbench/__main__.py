"""`python -m agent_workbench` is `agent`."""

from agent_workbench.cli.main import main

if __name__ == "__main__":
    main()
