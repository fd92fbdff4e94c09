"""The task and its keys, the claim, who acts, the settings; and what text and ids may be."""

from __future__ import annotations

from .errors import Invalid
from .record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    Status = Literal["pending", "in_progress", "completed", "cancelled"]

PENDING, IN_PROGRESS, COMPLETED, CANCELLED = "pending", "in_progress", "completed", "cancelled"
STATUSES = (PENDING, IN_PROGRESS, COMPLETED, CANCELLED)
CLOSED = (COMPLETED, CANCELLED)

ALWAYS = ("id", "subject", "description", "status", "owner", "blockedBy")
"""The keys that a file of ours always has; the others are stored only when set."""

DEFAULT_PRIORITY = 2
READ_ONLY_DIALECTS = ("arm", "nested")
PERSONS = ("user", "human")
WILD_HOLD = "state is blocked"
"""The hold of a research task whose file gives no reason; it does not hold a person's own task."""


class Task(Record):
    """A durable piece of work. Fields up to `rev` are stored (DESIGN section 2); the rest say how it was found."""

    id: str
    subject: str
    description: str = ""
    status: str = PENDING
    owner: str | None = None
    blocked_by: tuple[str, ...] = ()
    priority: int = DEFAULT_PRIORITY
    labels: tuple[str, ...] = ()
    parent: str | None = None
    products: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    hold: str | None = None
    question: str | None = None
    options: tuple[str, ...] = ()
    answer: str | None = None
    result: str | None = None
    evidence: dict[str, Any] = {}
    notes: tuple[dict[str, str], ...] = ()
    metadata: dict[str, Any] = {}
    created_at: str | None = None
    created_by: str | None = None
    updated_at: str | None = None
    started_at: str | None = None
    completed_at: str | None = None
    key: str | None = None
    attempts: int = 0
    epoch: int = 0
    rev: int = 0

    dialect: str = "taskwall"
    numeric: bool = False  # its id is a number in its file
    blocks: tuple[str, ...] = ()  # edges that some dialects store on the blocker
    extra: dict[str, Any] = {}  # keys that are not ours, for display
    flaw: str | None = None  # why its file cannot be read as a task
    notices: tuple[str, ...] = ()  # oddities of its file, none of them repaired

    @property
    def token(self) -> str:
        """The token of its current claim."""
        return f"{self.id}#{self.epoch}"

    @property
    def closed(self) -> bool:
        """Whether it is completed or cancelled."""
        return self.status in CLOSED

    @property
    def gated(self) -> bool:
        """Whether its products and checks are verified at completion; elsewhere `products` is prose."""
        return self.dialect == "taskwall"


def _camel(field: str) -> str:
    first, *rest = field.split("_")
    return first + "".join(map(str.capitalize, rest))


KEYS = {_camel(field): field for field in Task.__fields__[: Task.__fields__.index("rev") + 1]}
"""Every stored key in the order of a file that we write, and the field of `Task` that it is."""


def stored(task: Task) -> dict[str, Any]:
    """The task's keys as a file of ours has them: the first six always, the others when set."""
    found: dict[str, Any] = {}
    for key, field in KEYS.items():
        value = getattr(task, field)
        if value is Task.__defaults__.get(field) and key not in ALWAYS:  # most are, and need not be looked at
            continue
        value = list(value) if isinstance(value, tuple) else value
        unset: tuple[Any, ...] = (DEFAULT_PRIORITY,) if field == "priority" else (None, [], {}, "", 0)
        if key in ALWAYS or value not in unset:
            found[key] = value
    return found


BY_HAND, IDLE, LIVE, LAPSED = "by hand", "idle", "live", "lapsed"


def to_the_second(time: str) -> str:
    """A time of ours as people are told it."""
    return f"{time[:19]}Z" if time[19:20] == "." else time


def to_the_minute(time: str) -> str:
    """The same, where it is one of many."""
    return f"{time[:16]}Z" if time.endswith("Z") else time


class Claim(Record):
    """One task's entry in the claim ledger: its latest claim, still there when that has ended.

    `lease` is judged by the store: live, lapsed, or by hand (it never expires; idle after a day). `ttl`: its length in
    minutes. `reserved`: the owner of the pending task before the claim. `past`: superseded (actor, session, epoch).
    """

    task: str
    epoch: int
    actor: str
    session: str
    since: str
    reserved: str | None = None
    ttl: float | None = None
    open: bool = True
    past: tuple[tuple[str, str, int], ...] = ()
    process: str = ""  # those of a session that lives as long as they do, with commas between (see `process`)
    host: str = ""  # where its holder runs, as that machine calls itself; empty where that is not known
    lease: str = BY_HAND
    left: float | None = None  # minutes until the lease lapses

    def is_of(self, task: Task) -> bool:
        """Whether a task in progress is so under this claim: a merge may have kept another machine's of its epoch."""
        return self.actor == task.owner and task.started_at in (None, self.since)


class Actor(Record):
    """Who acts: a name and one run of it. `named` is False for `user` taken for want of anything better.

    process: of a session that lives as long as one (see `process`); empty for one-shot commands. host: where it runs.
    """

    name: str
    session: str
    named: bool = True
    process: str = ""
    host: str = ""

    def holds(self, claim: Claim | None) -> bool:
        """Whether this claim was granted to this actor in this session."""
        return claim is not None and self.covers(claim.actor, claim.session)

    def covers(self, name: str, session: str) -> bool:
        """Whether that is this actor in this session, or a sub-agent of it, whose session is `SESSION/AGENT`."""
        return name == self.name and (session == self.session or session.startswith(f"{self.session}/"))


class Settings(Record):
    """What `.tasks/board.toml` may say. It never names a command to run."""

    people: tuple[str, ...] = ()
    lease_minutes: float = 15
    max_attempts: int = 3
    durability: str = "full"
    claims_per_session: int = 0
    archive_days: float = 0
    check_minutes: float = 30
    moved: str = ""  # where the board lies now; nothing is written here any more

    def is_person(self, name: str | None) -> bool:
        """Whether this actor is a person; every other actor is an agent."""
        return name is not None and (name in PERSONS or name in self.people)


MAX_SUBJECT, MAX_TEXT, MAX_ID, MAX_ID_BYTES = 200, 64 * 1024, 64, 240
_DEVICES = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))}


def composed(text: str) -> str:
    """Text in Unicode's composed form (NFC), in which ids are compared."""
    if text.isascii():
        return text
    import unicodedata  # imported late: most ids are plain

    return unicodedata.normalize("NFC", text)


def _breaks(character: str) -> bool:
    import unicodedata

    return unicodedata.category(character) in ("Cc", "Zl", "Zp")


def id_flaw(text: str) -> str | None:
    """Why this cannot be the id of a task, or None when it can."""
    if text.startswith("task_") and text[5:].isalnum() and text.isascii() and len(text) <= MAX_ID:
        return None  # as nearly all are
    if not text or len(text) > MAX_ID or len(text.encode("utf-8", "surrogatepass")) > MAX_ID_BYTES:
        return f"an id has 1 to {MAX_ID} characters"
    letters = text.replace("_", "").replace("-", "").replace(".", "")
    if letters and not letters.isalnum():
        return "an id has letters, digits, '.', '_' and '-' only"
    if text in (".", "..") or text.partition(".")[0].lower() in _DEVICES:
        return f"{text!r} is a name that file systems keep for themselves"
    if composed(text) != text:
        return "an id is written in Unicode's composed form (NFC)"
    return None


def checked_id(text: str) -> str:
    """Return a caller's own id in composed form. Raises Invalid."""
    text = composed(text)
    # Files of others may hold one; ours need not be such that every command takes them for options.
    if flaw := id_flaw(text) or ("it begins like an option" if text.startswith("-") else None):
        raise Invalid(f"{text[:MAX_ID]!r} cannot be an id: {flaw}")
    return text


def checked_line(text: str, what: str) -> str:
    """Return one line of text without surrounding space. Raises Invalid when empty, too long or with controls."""
    text = checked_text(text, what).strip()
    if not text:
        raise Invalid(f"{what} is empty")
    if len(text) > MAX_SUBJECT:
        told = f"{what} has {len(text)} characters, at most {MAX_SUBJECT}"
        raise Invalid(told, next="put the rest in the description")
    if not text.isprintable() and any(_breaks(c) for c in text):
        raise Invalid(f"{what} must be one line without control characters", next="put the rest in the description")
    return text


def checked_text(text: str, what: str) -> str:
    """Return text that can be stored. Raises Invalid when it is too long or no valid Unicode."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise Invalid(f"{what} is not valid UTF-8 text") from None
    if size > MAX_TEXT:
        raise Invalid(f"{what} has {size} bytes, at most {MAX_TEXT}", next="keep it in a file and name the file")
    return text


def checked_priority(priority: int) -> int:
    """Return a priority from 0 (most urgent) to 4. Raises Invalid."""
    if not 0 <= priority <= 4:
        raise Invalid(f"priority is {priority}, must be 0 (most urgent) to 4")
    return priority


MAX_TTL = 24 * 60
"""The longest lease in minutes: who beats less often than once a day is not alive."""


def checked_ttl(ttl: float | None) -> float | None:
    """Return the length of a lease in minutes. Raises Invalid."""
    if ttl is not None and not 0 < ttl <= MAX_TTL:
        raise Invalid(f"a lease of {ttl:g} minutes is not possible", next=f"give more than 0 and at most {MAX_TTL}")
    return ttl


def checked_glob(glob: str) -> str:
    """Return a product's glob. Raises Invalid when it could lead outside the worktree."""
    glob = checked_line(glob, "a product")
    if glob.startswith(("/", "~", "\\")) or ":" in glob[:2] or ".." in glob.replace("\\", "/").split("/"):
        raise Invalid(f"product {glob!r} must be a path inside the worktree")
    return glob
