"""Tests of the store; run with `python -m unittest`."""
