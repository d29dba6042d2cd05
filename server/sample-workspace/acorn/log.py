"""The log: records on disk, one after another.

A record is a header of 12 bytes (checksum, length of the key, length of the value) and then key and value. A value
length of `TOMBSTONE` marks a deletion. `docs/file-format.md` has the details.
"""

import os
import struct
import zlib

from .errors import CorruptRecord

HEADER = struct.Struct(">III")
TOMBSTONE = 0xFFFFFFFF
MAX_VALUE = 16 * 1024 * 1024


def encode(key, value):
    """The bytes of one record; `None` as value makes a tombstone."""
    body = key + (value or b"")
    length = TOMBSTONE if value is None else len(value)
    lengths = struct.pack(">II", len(key), length)
    return struct.pack(">I", zlib.crc32(lengths + body)) + lengths + body


class Log:
    """An open log file. Appends go to its end; reads go anywhere."""

    def __init__(self, path):
        self.path = path
        self._file = open(path, "a+b")
        self.size = self._file.seek(0, os.SEEK_END)

    def append(self, key, value):
        """Writes one record and returns the offset at which it begins."""
        if value is not None and len(value) > MAX_VALUE:
            raise ValueError(f"the value has {len(value)} bytes, at most {MAX_VALUE} are possible")
        offset = self.size
        record = encode(key, value)
        self._file.write(record)
        self._file.flush()
        self.size += len(record)
        return offset

    def read(self, offset):
        """The key and value of the record at an offset, and the offset of the next one."""
        self._file.seek(offset)
        header = self._file.read(HEADER.size)
        if len(header) < HEADER.size:
            raise EOFError(offset)
        checksum, key_length, value_length = HEADER.unpack(header)
        body_length = key_length + (0 if value_length == TOMBSTONE else value_length)
        body = self._file.read(body_length)
        if len(body) < body_length:
            raise EOFError(offset)
        if zlib.crc32(header[4:] + body) != checksum:
            raise CorruptRecord(offset)
        value = None if value_length == TOMBSTONE else body[key_length:]
        return body[:key_length], value, offset + HEADER.size + body_length

    def records(self):
        """All records from the beginning; a torn one at the end is cut off."""
        offset = 0
        while offset < self.size:
            try:
                key, value, following = self.read(offset)
            except EOFError:
                # TODO: keep the torn bytes in a side file, so that nothing is thrown away unseen.
                self._file.truncate(offset)
                self.size = offset
                return
            yield offset, key, value
            offset = following

    def sync(self):
        """Returns when everything appended so far is on disk."""
        os.fsync(self._file.fileno())

    def close(self):
        self._file.close()
