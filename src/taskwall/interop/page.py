"""The board as one HTML file to mail or publish: no scripts, nothing fetched, every text escaped."""

from __future__ import annotations

import base64
import hashlib
import html as markup
from collections.abc import Callable, Iterable, Sequence

from ..core.model import DEFAULT_PRIORITY, IN_PROGRESS
from ..core.state import BLOCKED, BROKEN, HELD, READY, STALE, STATES, WAITING
from ..core.view import View
from ..onlooker import timestamp, utc_now
from ..results import Row, rows
from ..wording import safe
from .exporters import all_of

Words = Callable[[str], str]  # what is said for a key, in the language of the reader

ORDER = (IN_PROGRESS, STALE, READY, WAITING, HELD, BLOCKED, BROKEN)
"""The sections, what moves first; finished work follows, folded."""

STYLE = """
:root{color-scheme:light dark;--ink:#23282e;--soft:#5b6470;--line:#d9dce0;--paper:#f7f7f5;--card:#fff;--accent:#1f5fa8}
@media(prefers-color-scheme:dark){:root{--ink:#e4e6e9;--soft:#a2abb6;--line:#383e46;--paper:#16191d;--card:#1e2227;
--accent:#86b7f0}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:56rem;padding:2rem 1rem 4rem;background:var(--paper);color:var(--ink);
font:15px/1.55 system-ui,"PingFang SC","Noto Sans CJK SC","Microsoft YaHei",sans-serif;overflow-wrap:anywhere}
h1{font-size:1.5rem;margin:0}h2{font-size:1rem;margin:2rem 0 .5rem}h2 small,p.meta{color:var(--soft);font-weight:400}
a{color:var(--accent)}code{font:.85em ui-monospace,monospace;color:var(--soft)}
article{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:.6rem .8rem;margin:.4rem 0}
article:target{outline:2px solid var(--accent)}
h3{font-size:1rem;margin:0;font-weight:600}article p{margin:.3rem 0 0}
pre{white-space:pre-wrap;font:inherit;margin:.4rem 0 0;padding-left:.7rem;border-left:3px solid var(--line)}
.tags{color:var(--soft);font-size:.87rem}summary{cursor:pointer}bdi{unicode-bidi:isolate}
@media print{body{max-width:none;background:none}article{break-inside:avoid}}
"""


def html(view: View, name: str, t: Words) -> str:
    """A whole board as a page that works without a network, without scripts, and in print. name: its title."""
    by_state: dict[str, list[Row]] = {name: [] for name in STATES}
    for row in rows(view, all_of(view)):
        by_state[row.state].append(row)
    articles = {name: [_article(view, row, t) for row in found] for name, found in by_state.items() if found}
    sections = [_section(t(f"state.{name}"), articles[name]) for name in ORDER if name in articles]
    sections += [_folded(t(f"state.{name}"), found) for name, found in articles.items() if name not in ORDER]
    counts = ", ".join(f"{len(found)} {t(f'state.{name}')}" for name, found in articles.items())
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    title = _escaped(name)
    return f"""<!doctype html>
<html lang="{t("export.language")}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-{digest}'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}: {t("export.title")}</title>
<style>{STYLE}</style>
</head>
<body>
<h1>{title}</h1>
<p class="meta">{counts or t("board.empty")} · taskwall, {timestamp(utc_now())[:16].replace("T", " ")} UTC</p>
<main>
{"".join(sections)}</main>
</body>
</html>
"""


def _section(title: str, articles: Sequence[str]) -> str:
    return f"<h2>{title} <small>{len(articles)}</small></h2>\n{''.join(articles)}"


def _folded(title: str, articles: Sequence[str]) -> str:
    return f"<details>\n<summary>{title} ({len(articles)})</summary>\n{''.join(articles)}</details>\n"


def _article(view: View, row: Row, t: Words) -> str:
    task = row.task
    tags = [f"<code>{_text(task.id)}</code>"]
    tags += [f"P{task.priority}"] if task.priority != DEFAULT_PRIORITY else []
    tags += [f"{t('detail.owner')} {_text(task.owner)}"] if task.owner else []
    tags += [_text(label) for label in task.labels]
    parts = [f"<h3>{_text(task.subject)}</h3>", f'<p class="tags">{" · ".join(tags)}</p>']
    linked = {"task.blockers": row.waits, "task.dependents": [each.id for each in view.behind(task)]}
    parts += [f"<p>{t(key)}: {_links(view, ids)}</p>" for key, ids in linked.items() if ids]
    if row.state in (HELD, BROKEN, STALE):
        parts += [f"<p>{_text(reason.text)}</p>" for reason in row.reasons]
    told = {"": task.description}
    told |= {t(f"field.{name}"): getattr(task, name) for name in ("question", "answer", "result")}
    told |= {f"{n['at'][:16].replace('T', ' ')} {n['by']}": n["text"] for n in task.notes}
    parts += [_block(name, words) for name, words in told.items() if words]
    return f'<article id="{_escaped(task.id)}">{"".join(parts)}</article>\n'


def _links(view: View, ids: Iterable[str]) -> str:
    known = ((i, view.get(i)) for i in ids)
    links = (f'<a href="#{_escaped(i)}">{_text(t.subject)}</a>' if t else f"<code>{_text(i)}</code>" for i, t in known)
    return ", ".join(links)


def _block(name: str, words: str) -> str:
    head = f'<p class="tags">{_text(name)}</p>' if name else ""
    return f"{head}<pre>{markup.escape(safe(words, lines=True))}</pre>"


def _text(words: str) -> str:
    """One line of text, which cannot turn the words around it."""
    return f"<bdi>{_escaped(words)}</bdi>"


def _escaped(words: str) -> str:
    return markup.escape(safe(words))
