"""The one refusal that reading a value can end in."""


class Malformed(ValueError):  # noqa: N818 - a refusal, named for what the value is
    """A value from outside is not spelled as it must be.

    The text names the place and the rule. It never repeats the value: the value may be a secret.

    Attributes:
        field: Where it stood, as a path such as ``notification.devices[1].device_id``; empty for the whole.
        problem: The rule that was broken, in words that are safe to send back.
    """

    def __init__(self, field: str, problem: str) -> None:
        self.field = field
        self.problem = problem
        super().__init__(f"{field}: {problem}" if field else problem)
