"""What was found in `board.toml` is kept beside it, and never stands for another file than that."""

import json
import os
import subprocess
import sys
import time

import pytest

from taskwall.config import read_settings
from taskwall.core.model import Settings
from taskwall.stores.files.folder import RACY_NS
from taskwall.stores.files.store import FileStore

pytestmark = pytest.mark.slow
FAST = Settings(durability="fast", people=("ann",))
TEXT = 'durability = "fast"\npeople = ["ann"]\n'


@pytest.fixture
def board(tmp_path):
    """A board that a verb has written to, with settings that are old enough to vouch for themselves."""
    path = tmp_path / ".tasks"
    path.mkdir()
    with FileStore(str(path)).write():
        pass
    settings = path / "board.toml"
    settings.write_text(TEXT)
    while time.time_ns() < settings.stat().st_ctime_ns + 1.1 * RACY_NS:
        time.sleep(0.01)
    return path


def test_a_copy_is_kept_and_read_without_a_parser(board):
    assert read_settings(str(board)) == FAST
    assert [path.name for path in (board / ".local").glob("settings*")] == ["settings.json"]
    code = f"import sys; from taskwall.config import read_settings as r; print(r({str(board)!r}), 'tomllib' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told == f"{FAST!r} False\n"


def test_a_change_is_seen_at_once(board):
    for text, durability in (('durability = "full"', "full"), ('durability = "fast"', "fast"), ("", "full")):
        (board / "board.toml").write_text(text)
        for _ in range(2):
            assert read_settings(str(board)).durability == durability
    (board / "board.toml").unlink()
    assert read_settings(str(board)) == Settings()


def test_a_file_that_may_change_again_without_a_new_signature_is_not_kept(board):
    (board / "board.toml").write_text(TEXT)
    assert read_settings(str(board)) == FAST
    assert not (board / ".local/settings.json").exists()


def test_a_copy_of_another_file_or_of_nothing_holds_for_none(board):
    read_settings(str(board))
    copy = board / ".local/settings.json"
    told = json.loads(copy.read_text())
    assert told["found"] == {"durability": "fast", "people": ["ann"]}
    for wrong in (
        told | {"file": [*told["file"][:3], 0], "found": {}},
        told | {"names": told["names"][1:], "found": {}},
        told | {"found": {"durability": "never"}},
        told | {"found": {"colour": "red"}},
        told | {"found": [["durability", "full"]]},
        {}, [], None, 7,
    ):  # fmt: skip
        copy.write_text(json.dumps(wrong))
        assert read_settings(str(board)) == FAST, wrong
    for text in ("", "{", "\0" * 100, '{"file": ' + "[" * 100_000, copy.read_text() + "}"):
        copy.write_text(text)
        assert read_settings(str(board)) == FAST, text[:20]
    assert json.loads(copy.read_text()) == told, "it is made anew"


def test_nothing_is_kept_where_git_would_take_it_or_a_link_leads_out(board, tmp_path):
    local = board / ".local"
    (local / ".gitignore").write_text("")
    assert read_settings(str(board)) == FAST and not (local / "settings.json").exists()
    (local / ".gitignore").write_text("*\n")
    local.rename(tmp_path / "elsewhere")
    local.symlink_to(tmp_path / "elsewhere")
    assert read_settings(str(board)) == FAST and not (local / "settings.json").exists()


def test_a_board_that_cannot_be_written_is_read(board):
    os.mkdir(board / ".local/settings.json")
    assert read_settings(str(board)) == FAST
    assert [path.name for path in (board / ".local").glob("settings*")] == ["settings.json"]
