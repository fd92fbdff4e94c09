"""What persons read, in their language: the page's catalogue, and what a terminal or an export alone has to say."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from functools import cache

Words = Callable[..., str]

LANGUAGES = ("en", "zh")
PAGE = os.path.join(os.path.dirname(__file__), "web", "static", "words")

OWN = {
    "en": {
        "export.language": "en",
        "export.title": "task board",
        "help.fold": "graph: unfold, fold, unfold all",
        "help.all": "agents: give all of a session back",
        "help.send": "send a form",
        "help.quit": "leave",
        "form.send": "Ctrl+S sends, Esc closes",
        "graph.above": "see above",
        "graph.folded": "{n} folded",
        "hint.board": ". actions   c claim   d complete   n new   / search   ? keys   q quit",
        "hint.graph": ". actions   - fold   + unfold   Enter open   / search   ? keys   q quit",
        "hint.agents": ". actions   R give all back   Enter open   / search   ? keys   q quit",
        "hint.inbox": ". actions   a answer   Enter open   n new   / search   ? keys   q quit",
        "hint.task": ". actions   ↑↓ move   Enter opens a task named here   Esc back   ? keys",
    },
    "zh": {
        "export.language": "zh-CN",
        "export.title": "任务看板",
        "help.fold": "依赖图：展开、折叠、全部展开",
        "help.all": "执行者：放回一个会话的全部任务",
        "help.send": "提交表单",
        "help.quit": "退出",
        "form.send": "Ctrl+S 提交，Esc 关闭",
        "graph.above": "见上",
        "graph.folded": "折叠 {n} 个",
        "hint.board": ". 操作   c 认领   d 完成   n 新建   / 搜索   ? 按键   q 退出",
        "hint.graph": ". 操作   - 折叠   + 展开   Enter 打开   / 搜索   ? 按键   q 退出",
        "hint.agents": ". 操作   R 全部放回   Enter 打开   / 搜索   ? 按键   q 退出",
        "hint.inbox": ". 操作   a 答复   Enter 打开   n 新建   / 搜索   ? 按键   q 退出",
        "hint.task": ". 操作   ↑↓ 移动   Enter 打开所列任务   Esc 返回   ? 按键",
    },
}


def language_of(env: Mapping[str, str]) -> str:
    """The language of a terminal's user; English where it is none of ours."""
    told = next((env[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if env.get(name)), "")
    return "zh" if told.startswith("zh") else "en"


@cache
def words_of(language: str) -> Words:
    """`t(key, **values)`: the words for a key, with {names} filled in; the key itself where there are none."""
    with open(os.path.join(PAGE, f"{language}.js"), encoding="utf-8") as file:
        page = file.read()
    # One flat object of strings, as JSON but for the comma behind the last.
    body = page[page.index("{") : page.rindex("}")].rstrip().rstrip(",")
    catalogue = json.loads(body + "}") | OWN[language]

    def t(key: str, **values: object) -> str:
        return re.sub(r"\{(\w+)\}", lambda found: str(values.get(found[1], "")), catalogue.get(key, key))

    return t


UNITS = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))


def span(t: Words, seconds: float) -> str:
    """A time in its largest unit."""
    whole = max(0, int(seconds))
    unit, size = next(((unit, size) for unit, size in UNITS if whole >= size), UNITS[-1])
    return t(f"time.{unit}", n=whole // size)
