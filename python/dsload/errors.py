"""The package's exceptions. All are DsloadError; messages say what was attempted, why it failed, and what to do
next."""

from __future__ import annotations

from typing import Optional


class DsloadError(Exception):
    """Any error of dsload itself."""


class BuildError(DsloadError):
    """`dsload build` ended with an error. exit_code is the command's: 1 failed, 2 wrong usage, 3 corrupt, 4 a limit, 5
    interrupted, 6 unreachable."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.exit_code)


class FeedError(DsloadError):
    """The server refused a request. status is HTTP's, hint what the server suggests."""

    def __init__(self, message: str, status: int = 0, hint: str = "") -> None:
        super().__init__(f"{message} ({hint})" if hint else message)
        self._parts = (message, status, hint)
        self.status, self.hint = status, hint

    def __reduce__(self) -> tuple[object, ...]:
        # Errors of DataLoader's workers travel to the trainer by pickle.
        return type(self), self._parts


class ParameterError(FeedError, ValueError):
    """A FeedError for a parameter that the server, or the reader without one, refused (status 400)."""


class StreamEnded(DsloadError, ConnectionError):
    """A stream ended before its last batch, and the server did not come back. This is not the end of the data."""


class DatasetChanged(DsloadError):
    """The server serves another dataset than the one this loader began with. Rows of the two are never mixed.

    Open a new Loader to read the other dataset; it refuses a state of the first one.
    """


class LoaderClosed(DsloadError, ValueError):
    """A batch was requested from a closed Loader."""


class WrongWrapping(DsloadError):
    """A wrapper would distribute the loader's batches a second time and lose or repeat rows, or count them wrongly. The
    message says what to do instead."""


class ServerFailed(DsloadError):
    """The server that this process started did not come up, or has ended. returncode is its exit code if it has
    ended."""

    def __init__(self, message: str, returncode: Optional[int] = None) -> None:
        super().__init__(message)
        self.returncode = returncode

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.returncode)


class Corrupt(DsloadError):
    """A dataset's files contradict themselves. `dsload verify DIR` names all of them."""
