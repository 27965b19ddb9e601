"""How a demo tells what each party saw, and whether it is as it should be."""

from dataclasses import dataclass, field

from heliograph.cli.printing import show


@dataclass(slots=True)
class Report:
    """Checks, told as they are made."""

    failed: int = 0
    step: int = 0
    notes: list[str] = field(default_factory=list)

    def heading(self, text: str) -> None:
        """Begin a step."""
        self.step += 1
        show(f"\n{self.step}. {text}")

    def saw(self, who: str, what: str) -> None:
        """Tell what a party saw."""
        show(f"   {who:<9} {what}")

    def check(self, holds: bool, what: str) -> None:
        """Tell whether something holds."""
        show(f"   {'ok' if holds else 'WRONG':<9} {what}")
        self.failed += not holds
