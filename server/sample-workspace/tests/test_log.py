import os
import tempfile
import unittest

from acorn.errors import CorruptRecord
from acorn.log import Log, encode


class LogTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "acorn.log")

    def test_a_torn_record_is_cut_off_at_every_length(self):
        whole = encode(b"key", b"value")
        for length in range(len(whole)):
            with open(self.path, "wb") as file:
                file.write(whole + whole[:length])
            log = Log(self.path)
            self.assertEqual(len(list(log.records())), 1)
            self.assertEqual(log.size, len(whole))
            log.close()

    def test_a_damaged_record_is_refused_with_its_offset(self):
        whole = encode(b"key", b"value")
        with open(self.path, "wb") as file:
            file.write(whole + whole[:-1] + b"X")
        log = Log(self.path)
        self.addCleanup(log.close)
        with self.assertRaises(CorruptRecord) as caught:
            list(log.records())
        self.assertEqual(caught.exception.offset, len(whole))
