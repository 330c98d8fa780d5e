"""Settings of the database that machines share."""

from msgspec import Struct


class DatabaseSettings(Struct, frozen=True):
    """The database that machines share, and the keys that sign what is shared."""

    url_env: str = ""
    """The environment variable that holds the address of the PostgreSQL database that machines share; empty: nothing is
    shared.
    """
    remote: str = "origin"
    """The git remote through which checkpoints and branches travel."""
    signing_key: str = ""
    """The private SSH key that signs what this machine shares; empty: one is made in the state folder. Yours alone."""
    allowed_signers: str = ""
    """The file of those whose signatures count, as `ssh-keygen -Y verify` reads it; empty: `allowed_signers` beside
    your settings. Yours alone.
    """

    @property
    def active(self) -> bool:
        """True if a database is set."""
        return bool(self.url_env)
