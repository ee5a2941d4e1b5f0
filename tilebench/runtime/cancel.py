"""The error that ends work nobody wants any more, and how running code asks whether it is wanted."""

from __future__ import annotations

from ..errors import LaunchError


class Cancelled(LaunchError):
    """Work was stopped because the user asked for it, or because a newer request replaced it."""

    title = "cancelled"
