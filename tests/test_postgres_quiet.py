"""A server that is away: one refusal that names it without the password, and nothing else on any stream."""

import subprocess
import sys

import pytest

pytest.importorskip("psycopg", reason="the extra `postgres` is not installed")

SCRIPT = """
from taskwall.core.errors import Refused
from taskwall.stores.postgres.database import READ, Address, Database
try:
    Database(Address("postgresql://me:geheim@/db?host=/nowhere"), patience=0.6).begin(READ)
except Refused as refusal:
    print(refusal.message)
"""


def test_a_server_that_is_away_is_told_of_once_and_without_the_password():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=30)
    assert done.stderr == ""
    assert "cannot be reached" in done.stdout
    assert "geheim" not in done.stdout
