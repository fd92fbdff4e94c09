"""A board where two agents build a house, the same at every run: for the pictures of the wall in a terminal."""

from conftest import Clock

from taskwall.board import Board, fresh_id
from taskwall.core.model import Actor, Settings
from taskwall.core.rules import Draft, Edit
from taskwall.stores.files.store import FileStore

TASKS = (
    # id, English, Chinese, what it waits for, more
    ("survey", "Survey the site", "现场勘测", [], {}),
    ("strip", "Strip the old walls", "拆除旧墙", ["survey"], {"labels": ("structure",)}),
    ("wires", "Run the wires", "走水电", ["strip"], {"priority": 0, "labels": ("electric",)}),
    ("pipes", "Lay the pipes", "布水管", ["strip"], {"priority": 1, "labels": ("water",)}),
    ("wall", "Close the walls", "封墙", ["wires", "pipes"], {"priority": 1, "labels": ("structure",)}),
    ("paint", "Paint", "刷漆", ["wall"], {"labels": ("finish",)}),
    ("lamps", "Hang the lamps", "装灯", ["wall"], {"labels": ("electric",)}),
    ("floor", "Lay the floor in all the rooms, and oil it", "铺所有房间的地板，并上油", ["paint"], {}),
    ("windows", "Replace the windows: measure, order, fit", "换窗户：测量、下单、安装", ["survey"], {"priority": 1}),
    ("permit", "Get the building permit", "申请施工许可", [], {"owner": "user", "priority": 1}),
    ("roof", "Mend the roof", "补屋顶", ["permit"], {"priority": 1}),
    ("tiles", "Order the tiles", "订瓷砖", [], {"labels": ("purchase",)}),
    ("heating", "Lay the floor heating", "装地暖", [], {"priority": 1}),
    ("doors", "Order the inner doors", "订内门", ["survey"], {}),
    ("garden", "Tidy the garden", "整理花园", [], {"priority": 4}),
    ("clean", "Clear the site", "清场", ["floor", "lamps", "roof", "doors"], {}),
    ("check", "Final inspection", "验收", ["clean"], {"owner": "user"}),
)
WALL = {
    "en": "Close the walls once wires and pipes are in.\n\n- photograph everything, then close\n- tape the joints\n\n"
    "The pressure test comes before any board goes up.",
    "zh": "水电和水管做好之后把墙封起来。\n\n- 先拍照存档，再封板\n- 接缝处贴网格带\n\n封墙之前必须完成水压测试。",
}
SAID = {
    "en": (
        "Which colour for the main bedroom?",
        ["warm white", "light grey"],
        "three circuits: kitchen, lights, sockets",
    ),
    "zh": ("主卧用什么颜色？", ["暖白", "浅灰"], "电路分成厨房、照明、插座三路"),
}


class Site:
    """The board in `folder/.tasks`, after four hours of work on it; its time stands still."""

    def __init__(self, folder, language="en"):
        self.path, self.language, self.clock = folder / ".tasks", language, Clock()
        self.path.mkdir(parents=True)
        self.new_id = lambda: "colour"
        self._build()
        self.new_id = fresh_id
        self.now = self.clock.now / 1e9

    def seconds(self):
        return self.now

    def by(self, name="user", session=None):
        """The board as this actor sees it, with a store of its own."""
        store = FileStore(str(self.path), Settings(durability="fast"), monotonic=self.clock.monotonic)
        actor = Actor(name, session or name)
        return Board(store, actor, root=str(self.path.parent), clock=self.clock, new_id=self.new_id)

    def _build(self):
        question, options, note = SAID[self.language]
        user, claude, codex = self.by(), self.by("claude", "5f2c1e"), self.by("codex", "a81d07")
        user.create([self._draft(*task) for task in TASKS])
        for board, task, minutes in ((claude, "survey", 18), (claude, "strip", 41), (codex, "pipes", 87)):
            board.claim(task, ttl=240)
            self.clock.sleep(minutes=minutes)
            board.complete(task)
        self.by("gemini", "c3").claim("garden", ttl=5)
        claude.claim("wires", ttl=60)
        self.clock.sleep(minutes=12)
        claude.update("wires", Edit(note=note))
        codex.claim("tiles", ttl=15)
        claude.ask("paint", question, options)
        user.hold("heating", "waiting for the supplier" if self.language == "en" else "等供应商报价")
        self.clock.sleep(minutes=4)

    def _draft(self, id, english, chinese, blocked_by, more):
        description = WALL[self.language] if id == "wall" else ""
        subject = english if self.language == "en" else chinese
        return Draft(subject=subject, id=id, blocked_by=tuple(blocked_by), description=description, **more)
