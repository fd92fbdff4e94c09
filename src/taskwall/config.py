"""Finds the board, who acts, and the board's settings. The only module that names concrete stores."""

from __future__ import annotations

import os

from .core.errors import Invalid, Unwritable
from .core.model import PERSONS, Actor, Settings, checked_line
from .core.record import Record
from .onlooker import Onlooker
from .stores.files.disk import read_text
from .stores.files.store import FileStore
from .stores.files.strict import parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .board import Board
    from .stores.base import Store
    from .stores.postgres.store import PostgresStore

FOLDER = ".tasks"


class Location(Record):
    """Where the board lies, and why there. `root`: the folder under which products must exist.

    path: for people, without secrets. url: of a board in a database, of which `exists` says nothing yet. own: the
    folder that holds what belongs to this machine alone, in `.local`.
    """

    path: str
    why: str
    root: str
    exists: bool
    warnings: tuple[str, ...] = ()
    url: str = ""
    own: str = ""

    @property
    def address(self) -> str:
        """What `--board` takes; it may hold a password."""
        return self.url or self.path

    @property
    def local(self) -> str:
        """The folder of what belongs to this machine alone: runs, logs."""
        return os.path.join(self.folder, ".local")

    @property
    def folder(self) -> str:
        """The folder on this machine that stands for the board: where its files lie, or what is its own here."""
        return self.own or self.path


class Repository(Record):
    """The git repository around a folder. `main`: its main worktree, None when it is bare."""

    top: str
    main: str | None
    common: str

    @property
    def linked(self) -> bool:
        """Whether `top` is a linked worktree."""
        return self.top != self.main


# The repository, read from its files: no git process runs


def find_repository(start: str) -> Repository | None:
    """The repository around a folder, with its main worktree found through the common directory."""
    for folder in _upward(start):
        dot_git = os.path.join(folder, ".git")
        if os.path.isdir(dot_git):
            return Repository(folder, folder, dot_git)
        if os.path.isfile(dot_git):
            return _from_pointer(folder, dot_git)
        if all(os.path.exists(os.path.join(folder, name)) for name in ("HEAD", "objects", "refs")):
            return Repository(folder, _work_tree(folder), folder)
    return None


def _from_pointer(folder: str, dot_git: str) -> Repository:
    """A `.git` file points to a linked worktree's directory, or to that of a submodule, which stands alone."""
    git_dir = os.path.join(folder, _first_line(dot_git).removeprefix("gitdir:").strip())
    pointer = os.path.join(git_dir, "commondir")
    if not os.path.isfile(pointer):
        return Repository(folder, folder, os.path.realpath(git_dir))
    common = os.path.realpath(os.path.join(git_dir, _first_line(pointer)))
    main = os.path.dirname(common) if os.path.basename(common) == ".git" else _work_tree(common)
    return Repository(folder, main, common)


def _work_tree(common: str) -> str | None:
    """The main worktree that a directory's config names (that of a submodule), or None for a bare repository."""
    try:
        with open(os.path.join(common, "config"), encoding="utf-8", errors="replace") as file:
            for line in file:
                key, _, value = line.partition("=")
                if key.strip() == "worktree":
                    return os.path.realpath(os.path.join(common, value.strip().strip('"')))
    except OSError:
        pass
    return os.path.dirname(common) if os.path.basename(common) == ".git" else None


def _first_line(path: str) -> str:
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.readline().strip()


def _upward(start: str) -> list[str]:
    folders = [os.path.realpath(start)]
    while (parent := os.path.dirname(folders[-1])) != folders[-1]:
        folders.append(parent)
    return folders


# The board


def find_board(given: str | None, env: Mapping[str, str], cwd: str) -> Location:
    """Where the board lies or would be made (DESIGN section 3). `given`: the --board of a command line."""
    repository = find_repository(cwd)
    for asked, why in ((given, "--board"), (env.get("TASKWALL_BOARD"), "$TASKWALL_BOARD")):
        if asked:
            return _asked(asked, why, repository, cwd)
    if repository is None:
        here = os.path.realpath(cwd)
        return _nearest(cwd) or _location(here, "this folder, which is in no git repository", here)
    if repository.main is None:
        return _beside_bare(repository)
    board = os.path.join(repository.main, FOLDER)
    if not os.path.isdir(board) and not repository.linked and (nearest := _nearest(cwd)):
        return nearest
    why = "the main worktree of this repository" if repository.linked else "the root of this repository"
    return _location(repository.main, why, repository.top, _copies(repository))


def _nearest(cwd: str) -> Location | None:
    holder = next((folder for folder in _upward(cwd) if os.path.isdir(os.path.join(folder, FOLDER))), None)
    return _location(holder, "the nearest .tasks upward", holder) if holder else None


def _asked(asked: str, why: str, repository: Repository | None, cwd: str) -> Location:
    if "://" in asked or "password=" in asked or asked.startswith(("postgresql:", "postgres:")):
        return _in_database(asked, why, repository.top if repository else os.path.realpath(cwd))
    path = os.path.abspath(os.path.join(cwd, os.path.expanduser(asked)))
    inner = os.path.join(path, FOLDER)
    is_board = os.path.basename(path) == FOLDER or (not os.path.isdir(inner) and _holds_tasks(path))
    board = path if is_board else inner
    holder = os.path.realpath(os.path.dirname(board))
    if not os.path.isdir(holder):
        raise Invalid(f"{why}: {holder} is no folder", next="name an existing folder")
    board = os.path.join(holder, os.path.basename(board))  # a link, too, is found again by where it lies
    return Location(board, why, _beside(holder, repository), os.path.isdir(board))


def _beside(holder: str, repository: Repository | None) -> str:
    """The folder of a board as the linked worktree has it in which one is; itself where one is in none of its."""
    home = find_repository(holder)
    while repository:
        if repository.linked and home and home.common == repository.common:
            inner = os.path.normpath(os.path.join(repository.top, os.path.relpath(holder, home.top)))
            return inner if os.path.isdir(inner) else repository.top
        if repository.main is None and os.path.dirname(repository.common) == holder:
            return repository.top
        above = os.path.dirname(repository.top)  # of a submodule, or of what somebody has cloned into a worktree
        repository = find_repository(above) if above != repository.top else None
    return holder


def _in_database(url: str, why: str, root: str) -> Location:
    from hashlib import sha256  # imported late: most boards are files

    from .stores.postgres.address import HOW, SCHEMES, Address
    from .trust import state_folder

    scheme, mark, _ = url.partition("://")
    if not mark:  # whatever it is, it may hold a password
        raise Invalid(f"{why}: that is no address of a database", next=HOW)
    if scheme not in SCHEMES:
        raise Invalid(f"{why}: {scheme[:20]}:// boards are not supported", next=f"name a folder, or a database: {HOW}")
    shown = Address(url).shown
    own = os.path.join(state_folder(os.environ), "boards", sha256(shown.encode()).hexdigest()[:16])
    return Location(shown, why, root, exists=True, url=url, own=own)


def require_files(location: Location) -> str:
    """The folder of a board of files. Raises Invalid when the board lies in a database."""
    if location.url:
        way = "name one: --board PATH; for this one see `taskwall db check`"
        raise Invalid(f"{location.path} is no board of files", next=way)
    return location.path


def _holds_tasks(path: str) -> bool:
    """Whether a folder of another name is a board: a task lies in it, and not just any JSON."""
    try:
        names = sorted(name for name in os.listdir(path) if name.endswith(".json"))
    except OSError:
        return False
    return any(is_task(os.path.join(path, name)) for name in names[:MAX_LOOKED_AT])


MAX_LOOKED_AT = 50
"""How many files of a folder are read to see whether it is a board."""


def is_task(path: str) -> bool:
    """Whether a file holds a task."""
    from .stores.files.dialects import read  # imported late: nearly all boards are called `.tasks`

    try:
        return bool(read(parse(read_text(path)[0])).id)
    except (OSError, ValueError):  # NotPlain, NotStrict and NotATask are such
        return False


def _beside_bare(repository: Repository) -> Location:
    holder = os.path.dirname(repository.common)
    if not os.path.isdir(os.path.join(holder, FOLDER)):
        told = f"{repository.common} is a bare repository and no {FOLDER} lies beside it"
        raise Invalid(told, next="name the board: --board PATH")
    return _location(holder, "beside the bare repository", repository.top, _copies(repository))


def _copies(repository: Repository) -> tuple[str, ...]:
    copy = os.path.join(repository.top, FOLDER)
    if repository.linked and os.path.isdir(copy):
        return (f"{copy} is a copy in a linked worktree and is ignored; the board is that of the main worktree",)
    return ()


def _location(holder: str, why: str, root: str, warnings: tuple[str, ...] = ()) -> Location:
    path = os.path.join(holder, FOLDER)
    return Location(path, why, root, os.path.isdir(path), warnings)


def make_board(location: Location) -> bool:
    """Make a board, a folder or one in a database; False when it was there. Raises Unwritable."""
    if location.url:
        return open_database(location).make()
    try:
        os.mkdir(location.path)
    except FileExistsError:
        if not os.path.isdir(location.path):
            raise Invalid(f"{location.path} is not a folder", next="name another board: --board PATH") from None
        return False
    except OSError as error:
        told = f"{location.path} cannot be made: {error.strerror}"
        raise Unwritable(told, next="name another: --board PATH") from None
    return True


def is_there(location: Location) -> bool:
    """Whether there is a board. Raises Unreadable when a database cannot be asked."""
    return open_database(location).exists() if location.url else os.path.isdir(location.path)


# Who acts

CLIENTS = (
    # the variable that tells a client's shell, the actor's name, the variable with its session
    ("CLAUDECODE", "claude", "CLAUDE_CODE_SESSION_ID"),
    ("CODEX_THREAD_ID", "codex", "CODEX_THREAD_ID"),
    ("CODEX_SANDBOX", "codex", ""),
    ("GEMINI_CLI", "gemini", ""),
)


def announced_name(client: str) -> str:
    """The name under which a client's agent acts: what it calls itself, short where its shell is known by that."""
    name = "-".join("".join(c if c.isalnum() or c in "._" else " " for c in client.lower()).split())[:MAX_NAME]
    known = (short for _, short, _ in CLIENTS if name == short or name.startswith(f"{short}-"))
    # A program that calls itself `user` is no person.
    return next(known, "agent" if not name or name in PERSONS else name)


MAX_NAME = 40


def find_actor(given: str | None, env: Mapping[str, str], default: str = "user", session: str = "") -> Actor:
    """Who acts: `--as`, `$TASKWALL_ACTOR`, a known agent's environment, else `default`.

    In which session: `$TASKWALL_SESSION`, the agent's own, else `session`, else one that is called like the actor.
    """
    if given == "":  # a variable without a value would act as the person
        raise Invalid("--as names nobody", next="name who acts, or leave --as out")
    client = next(((name, env.get(session, "")) for mark, name, session in CLIENTS if env.get(mark)), None)
    chosen = given or env.get("TASKWALL_ACTOR") or (client[0] if client and default == "user" else "")
    name = checked_line(chosen or default, "the actor's name")
    session = env.get("TASKWALL_SESSION") or (client[1] if client else "") or session or name
    return Actor(name, checked_line(session, "the session"), named=bool(chosen) or default != "user")


def agent_around(env: Mapping[str, str]) -> str:
    """The agent in whose environment this runs, under whatever name; empty where none is known."""
    ours = "an agent" if env.get("TASKWALL_SESSION") or env.get("TASKWALL_TASK") else ""
    return next((name for mark, name, _ in CLIENTS if env.get(mark)), ours)


# Settings


def read_settings(board: str) -> Settings:
    """What `board.toml` says; the defaults where there is none. Raises Invalid, naming the key."""
    path = os.path.join(board, "board.toml")
    if not os.path.exists(path):
        return Settings()
    from .settings import settings_in  # imported late: most boards have none

    return settings_in(path)


def open_for_trial(location: Location, actor: Actor) -> Board:
    """The board at a location, to ask what would happen; an empty one in memory where there is none."""
    from .board import Board
    from .stores.memory import MemoryStore  # imported late: no other command needs it

    return open_board(location, actor) if location.exists else Board(MemoryStore(), actor, root=location.root)


def open_board(location: Location, actor: Actor, *, make: bool = False, beats: bool = False) -> Board:
    """The board at a location, for one actor. Raises Invalid when there is none and it is not to be made.

    beats: the session lives as long as this process and renews its claims, which therefore get a lease.
    """
    from .board import Board  # imported late: who only looks needs neither
    from .process import this_host, this_process

    store = _store(location, make=make)
    lease = store.settings.lease_minutes if beats else None
    actor = actor.replace(host=this_host(), process=this_process() if beats else actor.process)
    return Board(store, actor, root=location.root, lease=lease, trusts=_trusts(location.folder))


def open_to_look(location: Location, actor: Actor) -> Onlooker:
    """The same for one who changes nothing."""
    return Onlooker(_store(location), actor)


def _store(location: Location, *, make: bool = False) -> Store:
    if location.url:
        return _store_in_database(location, make=make)
    if not location.exists:
        if os.path.lexists(location.path) and not os.path.isdir(location.path):
            raise Invalid(f"{location.path} is not a folder", next="name another board: --board PATH")
        if not make and not os.path.isdir(location.path):
            told = f"there is no board: {location.path} does not exist ({location.why})"
            way = "make one with `taskwall init`, or by adding a task (create_task), or name one: --board PATH"
            raise Invalid(told, next=way)
        make_board(location)
    settings = read_settings(location.path)
    store = FileStore(location.path, settings)
    if settings.moved:
        store.notices.append(f"the board lies at {settings.moved}; this is what it was when it was last written here")
    return store


def open_database(location: Location) -> PostgresStore:
    """The store of a board in a database, of which nothing was asked yet. Raises Invalid without the driver."""
    try:
        from .stores.postgres.address import Address
        from .stores.postgres.database import shared
        from .stores.postgres.store import PostgresStore
    except ImportError as error:
        raise Invalid(f"PostgreSQL needs {error.name}", next="pip install 'taskwall[postgres]'") from None
    address = Address(location.url)
    return PostgresStore(shared(address.conninfo), name=address.board)


def _store_in_database(location: Location, *, make: bool) -> Store:
    store = open_database(location)
    if make and store.make():
        store.notices.append(f"made the board {location.path}")
    from .settings import parse_settings  # imported late: most boards are files

    text = store.settings_text()
    store.settings = parse_settings(text, f"the settings of {location.path}") if text else Settings()
    os.makedirs(location.local, mode=0o700, exist_ok=True)
    return store


def _trusts(board: str) -> Callable[[str], bool]:
    def trusts(command: str) -> bool:
        from .trust import Trust  # imported late: few tasks have checks

        return Trust(board, os.environ).allows(command)

    return trusts
