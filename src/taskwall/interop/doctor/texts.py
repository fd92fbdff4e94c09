"""What tasks say: waits that are written in prose and in no edge, and strings that look like secrets."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from ...core.graph import finish_order
from ...core.model import Task
from ...core.view import View
from ...stores.files.disk import NotPlain, decode
from .findings import Found, found
from .sight import Sight

_SENTENCES = re.compile(r"[。！？；!?;\n]+|\.(?=\s|$)")
_NOT = re.compile(
    r"\b(?:not|no longer|never|without|neither|n't)\b|n't\b|不(?:再)?(?:依赖|需要|用|必)|无需|无须|没有依赖",
    re.IGNORECASE,
)
_BEFORE = re.compile(
    r"\b(?:needs?|requires?|after|once|until|depends?\s+(?:up)?on|depending\s+on|blocked\s+by|waits?\s+(?:for|on)|"
    r"waiting\s+(?:for|on)|relies\s+on|relying\s+on|builds\s+on|prerequisites?)\b"
    r"|依赖于?|等待?|等到|需要|取决于|前提是?|基于|先",
    re.IGNORECASE,
)
"""What stands before the thing that is waited for."""
_AFTER = re.compile(
    r"[\s'\"`”’」』）)]*(?:(?:is|are|has\s+been|must\s+be|has\s+to\s+be|should\s+be|gets?)\s+"
    r"(?:done|finished|complete[d]?|merged|ready|there)(?:\s+first|\s+before\b)|must\s+(?:come|be\s+done)\s+first"
    r"|(?:全部|都|已|被)?(?:完成|做完|结束|做好|好)?(?:了)?(?:之后|以后|后|才能|再))",
    re.IGNORECASE,
)
"""What stands right behind it."""
REACH = 80
"""How many characters a word of waiting and what is waited for may lie apart."""


def waits_in_prose(sight: Sight) -> Iterator[Found]:
    """Descriptions of open tasks that say they need another open task, with no edge between the two at all."""
    view = sight.view
    open_tasks = [task for task in view if not task.closed and not task.flaw]
    names = _Names(open_tasks)
    told: dict[tuple[str, str], str] = {}
    for task in open_tasks:
        for sentence in _SENTENCES.split(task.description):
            if not _NOT.search(sentence):
                for other, start, end in names.mentioned(sentence):
                    if other != task.id and _is_wait(sentence, start, end):
                        told.setdefault((task.id, other), sentence.strip())
    linked = _linked(view, told) if told else set()
    for (task_id, other), sentence in told.items():
        waiter = view.get(task_id)
        if waiter and (task_id, other) not in linked:
            way = f"`taskwall block {task_id} {other}`, if it is so"
            words = f"{task_id} says that it waits for {other}: {sentence[:160]}"
            yield found("prose_wait", words, way, file=sight.file_of(waiter), task=task_id)


def _is_wait(sentence: str, start: int, end: int) -> bool:
    before = sentence[max(0, start - REACH) : start]
    return bool(_BEFORE.search(before) or _AFTER.match(sentence, end))


class _Names:
    """By what open tasks may be called in a sentence: id, whole subject, product."""

    def __init__(self, tasks: Iterable[Task]) -> None:
        self.owners: dict[str, list[str]] = {}
        self.lengths: dict[str, set[int]] = {}  # of the names that begin with these two characters
        for task in tasks:
            for name in {task.subject, *filter(_is_path, task.products)}:
                self._add(name, task.id, least=2 if _is_wide(name) else 6)
            if any(not c.isalpha() or _is_wide(c) for c in task.id):
                self._add(task.id, task.id, least=2)
            else:  # a plain word: only where it is marked as a name
                for mark in ("`{}`", "'{}'", '"{}"', "#{}", "task {}", "“{}”", "「{}」", "任务 {}", "任务{}"):
                    self._add(mark.format(task.id), task.id, least=2)

    def _add(self, name: str, task_id: str, *, least: int) -> None:
        folded = name.strip().casefold()
        if len(folded) >= least:
            self.owners.setdefault(folded, []).append(task_id)
            self.lengths.setdefault(folded[:2], set()).add(len(folded))

    def mentioned(self, sentence: str) -> Iterator[tuple[str, int, int]]:
        """Every name in a sentence: whose it is, and from where to where it goes."""
        folded = sentence.casefold()
        if len(folded) != len(sentence):  # a letter that is two when folded: the places would not be right
            folded = sentence.lower() if len(sentence.lower()) == len(sentence) else sentence
        for at in range(len(folded) - 1):
            for length in self.lengths.get(folded[at : at + 2], ()):
                found = self.owners.get(folded[at : at + length], ())
                if found and _is_whole(folded, at, at + length):
                    yield from ((task_id, at, at + length) for task_id in found)


def _is_whole(text: str, start: int, end: int) -> bool:
    """Whether a name is no part of a longer word; Chinese has no gaps between words."""

    def joins(a: str, b: str) -> bool:
        return all((c.isalnum() or c in "_-/") and not _is_wide(c) for c in (a, b))

    before = start > 0 and joins(text[start - 1], text[start])
    after = end < len(text) and joins(text[end - 1], text[end])
    dotted = text[end : end + 2]  # `schema.sql` is not `schema`
    return not before and not after and not (len(dotted) == 2 and dotted[0] == "." and dotted[1].isalnum())


def _is_path(product: str) -> bool:
    return not re.search(r"[*?\[{]", product) and bool(re.search(r"[./]", product))


def _is_wide(text: str) -> bool:
    return any(c >= "\u2e80" for c in text)


def _linked(view: View, pairs: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
    """Those of which one task waits for the other, at any distance, finished or not."""
    edges = {task.id: [*view.blockers(task), *(child.id for child in view.children(task.id))] for task in view}
    order = finish_order(edges, lambda i: edges.get(i, ()))
    names = list(dict.fromkeys(name for pair in pairs for name in pair))
    linked = set()
    for at in range(0, len(names), AT_ONCE):
        bits = {name: 1 << place for place, name in enumerate(names[at : at + AT_ONCE])}
        reach = _reach(edges, order, bits)
        linked |= {(a, b) for a, b in pairs if reach[a] & bits.get(b, 0) or reach[b] & bits.get(a, 0)}
    return linked


AT_ONCE = 1024
"""For how many tasks at once it is asked which others wait for them: that many bits a task."""


def _reach(edges: Mapping[str, list[str]], order: Iterable[str], bits: Mapping[str, int]) -> dict[str, int]:
    """By task: the bits of those that it waits for. Taken in order, only rings need more than a pass and a look."""
    found = dict.fromkeys(order, 0)
    is_settled = False
    while not is_settled:
        is_settled = True
        for name, known in found.items():
            reach = known
            for after in edges.get(name, ()):
                reach |= found[after] | bits.get(after, 0)
            if reach != known:
                found[name], is_settled = reach, False
    return found


# Secrets

SECRETS = {
    "an AWS access key": r"\bA(?:KIA|SIA)[0-9A-Z]{16}\b",
    "a GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,})\b",
    "a GitLab token": r"\bglpat-[A-Za-z0-9_-]{20,}",
    "an API key": r"\bsk-(?:ant-|proj-)?[A-Za-z0-9_-]{20,}",
    "a Slack token": r"\bxox[abeprs]-[A-Za-z0-9-]{10,}",
    "a Google API key": r"\bAIza[0-9A-Za-z_-]{35}",
    "an npm token": r"\bnpm_[A-Za-z0-9]{36}\b",
    "a Hugging Face token": r"\bhf_[A-Za-z0-9]{30,}\b",
    "a JSON web token": r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    "a private key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
}
_SECRET = re.compile("|".join(f"(?P<s{n}>{shape})" for n, shape in enumerate(SECRETS.values())))


def secrets(sight: Sight) -> Iterator[Found]:
    """Strings of the well-known shapes of tokens, anywhere in a file. Never shown whole."""
    for file in sight.files:
        try:
            text = decode(file.data or b"")
        except NotPlain as flaw:
            text = flaw.text
        for hit in {match[0]: match for match in _SECRET.finditer(text)}.values():
            kind = list(SECRETS)[int((hit.lastgroup or "s0")[1:])]
            shown, line = sight.shown(file.name), text.count("\n", 0, hit.start()) + 1
            masked = f"{hit[0][:4]}…, {len(hit[0])} characters"
            way = "revoke it where it was issued, then take it out of the task"
            yield found("secret", f"{shown}:{line}: looks like {kind} ({masked})", way, file=shown, task=file.task.id)


CHECKS = (waits_in_prose, secrets)
