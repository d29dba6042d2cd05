import tempfile
import unittest

from acorn import Store, StoreClosed


class StoreTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def test_a_value_comes_back_after_opening_again(self):
        with Store.open(self.folder.name) as store:
            store.put("flour", "2 kg")
            store.put("flour", "1 kg")
        with Store.open(self.folder.name) as store:
            self.assertEqual(store.get("flour"), "1 kg")

    def test_a_deleted_key_is_gone(self):
        with Store.open(self.folder.name) as store:
            store.put("salt", "some")
            store.delete("salt")
            store.delete("pepper")
            self.assertIsNone(store.get("salt"))
        with Store.open(self.folder.name) as store:
            self.assertEqual(store.keys(), [])

    def test_compact_drops_dead_records_and_keeps_the_order(self):
        with Store.open(self.folder.name) as store:
            for key in ("b", "a", "c"):
                store.put(key, "old")
            store.put("b", "new")
            store.delete("c")
            self.assertEqual(store.compact(), 3)
            self.assertEqual(store.keys(), ["b", "a"])
            self.assertEqual(store.get("b"), "new")
            store.put("d", "after")
        with Store.open(self.folder.name) as store:
            self.assertEqual(store.keys(), ["b", "a", "d"])

    def test_a_closed_store_says_so(self):
        store = Store.open(self.folder.name)
        store.close()
        with self.assertRaises(StoreClosed):
            store.put("a", "b")
