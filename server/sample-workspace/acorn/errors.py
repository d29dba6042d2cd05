"""What can go wrong, as exceptions."""


class AcornError(Exception):
    """The base of all errors of this package."""


class CorruptRecord(AcornError):
    """A record in the middle of the log does not match its checksum."""

    def __init__(self, offset):
        super().__init__(f"the record at byte {offset} is damaged")
        self.offset = offset


class StoreClosed(AcornError):
    """The store was used after `close`."""
