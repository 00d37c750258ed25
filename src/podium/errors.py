"""The exceptions that Podium raises on purpose.

    PodiumError
    ├── InputError      an object, a file or an argument cannot be used; names the place
    └── ConfigError     a policy, provider or configuration is refused

An unschedulable pod is a decision, never an exception. Each error is one sentence that says what
would work, and keeps its parts as attributes; `exit_code` is the exit code of a command.
"""

from __future__ import annotations


class PodiumError(Exception):
    """The base of all exceptions that Podium raises on purpose."""

    exit_code = 2


class InputError(PodiumError):
    """Something in the input cannot be used.

    Renders as `FILE: Kind namespace/name: field.path: what; hint`, without the unknown parts.
    """

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        object: str = "",  # noqa: A002  the word that users read
        path: str = "",
        hint: str = "",
    ) -> None:
        """Say *what* is wrong; *where* is a file, *object* is `Kind namespace/name`."""
        self.what = what
        self.where = where
        self.object = object
        self.path = path
        self.hint = hint
        super().__init__(what)

    def __str__(self) -> str:
        """The whole sentence."""
        parts = (self.where, self.object, self.path, self.what)
        sentence = ": ".join(part for part in parts if part)
        return f"{sentence}; {self.hint}" if self.hint else sentence

    def located(self, *, where: str = "", object: str = "") -> InputError:  # noqa: A002
        """The same error with the parts filled in that were not known where it was raised."""
        return InputError(
            self.what,
            where=self.where or where,
            object=self.object or object,
            path=self.path,
            hint=self.hint,
        )


class ConfigError(PodiumError):
    """A policy, provider name, profile or configuration file is refused.

    `text` is the message of kube-scheduler, to the letter; `hint` is added by Podium.
    """

    def __init__(self, text: str, *, hint: str = "") -> None:
        """Refuse with *text*; *hint* says what would work."""
        self.text = text
        self.hint = hint
        super().__init__(text)

    def __str__(self) -> str:
        """The refusal, and the hint if there is one."""
        return f"{self.text}; {self.hint}" if self.hint else self.text

    def located(self, where: str) -> ConfigError:
        """The same refusal with the file that it is about."""
        return ConfigError(f"{where}: {self.text}", hint=self.hint)
