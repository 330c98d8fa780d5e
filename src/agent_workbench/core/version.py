"""Version of the product: packages are built with it, and journals name it."""

__version__ = "1.0.0"
