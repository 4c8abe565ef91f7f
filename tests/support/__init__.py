"""What several test files need. Tests stand in `tests/test_*.py`, fixtures in `conftest.py`."""
