"""The device as CANN's C interface shows it. One code path, whichever toolkit answers."""

from __future__ import annotations
