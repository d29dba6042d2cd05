"""The store: a log and its index together."""

import os

from .errors import StoreClosed
from .index import Index
from .log import Log

LOG_NAME = "acorn.log"
SPARE_NAME = "acorn.log.new"


class Store:
    """Keys and values as text, kept in one folder."""

    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        self.folder = folder
        self._log = Log(os.path.join(folder, LOG_NAME))
        self._index = Index()
        for offset, key, value in self._log.records():
            if value is None:
                self._index.remove(key)
            else:
                self._index.put(key, offset)

    @classmethod
    def open(cls, folder):
        """Opens a store, and makes it when the folder is empty."""
        return cls(folder)

    def put(self, key, value):
        """Sets the value of a key."""
        raw = key.encode()
        self._index.put(raw, self._open_log().append(raw, value.encode()))

    def get(self, key, default=None):
        """The value of a key, or `default`."""
        offset = self._index.find(key.encode())
        if offset is None:
            return default
        _, value, _ = self._open_log().read(offset)
        return value.decode()

    def delete(self, key):
        """Takes a key out; nothing happens when it is not there."""
        raw = key.encode()
        if self._index.find(raw) is not None:
            self._open_log().append(raw, None)
            self._index.remove(raw)

    def keys(self):
        """All keys in the order of their first appearance."""
        return [key.decode() for key in self._index.keys()]

    def compact(self):
        """Writes a log without dead records and swaps it in. Returns how many records were dropped."""
        # TODO: compact by itself when more than half of the records are dead.
        dropped = self._index.dead
        spare_path = os.path.join(self.folder, SPARE_NAME)
        if os.path.exists(spare_path):
            os.remove(spare_path)
        spare = Log(spare_path)
        index = Index()
        for key in self._index.keys():
            _, value, _ = self._open_log().read(self._index.find(key))
            index.put(key, spare.append(key, value))
        spare.sync()
        spare.close()
        path = self._open_log().path
        self._open_log().close()
        os.replace(spare_path, path)
        self._log, self._index = Log(path), index
        return dropped

    def sync(self):
        """Returns when everything written so far is on disk."""
        self._open_log().sync()

    def close(self):
        if self._log is not None:
            self._log.close()
            self._log = None

    def _open_log(self):
        if self._log is None:
            raise StoreClosed("the store is closed")
        return self._log

    def __len__(self):
        return len(self._index)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
