"""Entry point of `python -m docgen`: writes the generated parts of all pages."""

from docgen.pages import PAGES, filled, pages


def main() -> None:
    """Write each page whose generated parts have changed, and print its path."""
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if (new := filled(text)) != text:
            page.write_text(new, encoding="utf-8")
            print(page.relative_to(PAGES.parent))


main()
