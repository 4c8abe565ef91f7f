"""What several test files need; the first line of each file says what it holds.

Fixtures that every test may ask for are in `conftest.py`. Others are imported by name.
"""
