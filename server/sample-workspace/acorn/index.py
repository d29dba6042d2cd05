"""The index: where the newest record of each key begins."""


class Index:
    """A mapping from key to offset that counts what it no longer needs."""

    def __init__(self):
        self._offsets = {}
        self.dead = 0

    def put(self, key, offset):
        if key in self._offsets:
            self.dead += 1
        self._offsets[key] = offset

    def remove(self, key):
        if self._offsets.pop(key, None) is not None:
            # The old record and the tombstone itself.
            self.dead += 2

    def find(self, key):
        """The offset of a key, or `None`."""
        return self._offsets.get(key)

    def keys(self):
        """All keys in the order of their first appearance."""
        return list(self._offsets)

    def __len__(self):
        return len(self._offsets)
