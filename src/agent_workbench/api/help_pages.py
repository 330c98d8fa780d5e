"""Addresses of the pages that help with an error: those of the installed version, which need no network."""

from agent_workbench.core.errors import WorkbenchError


def page_address(error: WorkbenchError) -> str:
    """Return the address of the page that helps with an error, empty if there is none. Blocks."""
    from agent_workbench.system.package_files import packaged_folder

    folder = packaged_folder("docs") if error.page else None
    page = folder / error.page if folder is not None else None
    return page.as_uri() if page is not None and page.is_file() else ""
