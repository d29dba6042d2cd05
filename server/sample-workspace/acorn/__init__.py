"""A toy key-value store: an append-only log and an index in memory."""

from .errors import AcornError, CorruptRecord, StoreClosed
from .store import Store

__all__ = ["AcornError", "CorruptRecord", "Store", "StoreClosed"]
