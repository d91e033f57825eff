"""The bill while it grows: nothing is drawn that could pass the declared bound."""

from __future__ import annotations

from dataclasses import dataclass, field

from verdiv.errors import Fault, VerdivError

__all__ = ["BoundReached", "Ledger"]

SLACK = 1e-9
"""Rounding of sums of prices."""


class BoundReached(VerdivError):
    """The next draw could pass the declared upper bound, so it is not made."""


@dataclass
class Ledger:
    """Units spent, reserved for draws in flight, and lost to kills.

    Examples
    --------
    >>> ledger = Ledger(bound=2.0)
    >>> ledger.reserve(1.0); ledger.settle(1.0, billed=True)
    >>> ledger.spent, ledger.committed
    (1.0, 1.0)
    """

    bound: float | None = None
    """Declared upper bound in units of one small draw; None without one."""
    spent: float = 0.0
    """Units of draws that were served and logged."""
    reserved: float = 0.0
    """Units of draws in flight."""
    lost: float = 0.0
    """Units of draws that a kill took: they may have been served, so they count against the bound."""
    as_registered: dict[str, float] = field(default_factory=dict)
    """Arm to the units that it would bill alone, shared draws in each arm that lists them."""

    @property
    def committed(self) -> float:
        """Units that are or may be on the bill."""
        return self.spent + self.reserved + self.lost

    def reserve(self, price: float) -> None:
        """Set the price of a draw aside before it is made.

        Parameters
        ----------
        price
            Units of one small draw.

        Raises
        ------
        BoundReached
            When the draw could pass the bound; nothing is set aside.
        """
        if self.bound is not None and self.committed + price > self.bound + SLACK:
            raise BoundReached(
                "the declared bound stops the run",
                [
                    Fault(
                        "ledger",
                        f"at most {self.bound:g} units",
                        f"{self.committed:g} committed and a draw of {price:g}",
                        "the log holds what was drawn; a higher bound needs an amended registration",
                    )
                ],
            )
        self.reserved += price

    def settle(self, price: float, *, billed: bool) -> None:
        """Turn a reservation into spending, or give it back.

        Parameters
        ----------
        price
            What was reserved.
        billed
            Whether the draw was served.
        """
        self.reserved -= price
        if billed:
            self.spent += price

    def list_in(self, arm: str, price: float) -> None:
        """Add a draw to the bill of an arm as registered; shared draws are listed in each.

        Parameters
        ----------
        arm
            Name of the arm.
        price
            Units of one small draw.
        """
        self.as_registered[arm] = self.as_registered.get(arm, 0.0) + price
