"""Addresses of pages of the documentation: those of the installed version, which need no network."""


def page_address(name: str) -> str:
    """Return the address of a page by its name, such as `how-to/trust.md`; empty if it is not there. Blocks."""
    from agent_workbench.system.user_dirs import packaged_folder

    folder = packaged_folder("docs") if name else None
    page = folder / name if folder is not None else None
    return page.as_uri() if page is not None and page.is_file() else ""
