"""What servers send for an answer, and the program in it.

Servers that speak the same interface differ in where they put the answer, and models in how they
mark a program. Everything here reads; nothing is run, and what has no known form raises
``ValueError``.
"""

from __future__ import annotations

import ast
import dataclasses
import json
import re
import zlib
from typing import Any, Dict, Iterator, List, Optional

#: An opening fence: what stands before it, the fence, and whatever the model says of the block.
_FENCE = re.compile(r"([ \t>]*(?:(?:[-*+]|\d+[.)])[ \t]+)?)(`{3,}|~{3,})[ \t]*([^`\n]*)$")
_PYTHON = re.compile(r"\{?\.?(python|py)(\d[\d.]*)?\b|\{?\.?ipython", re.IGNORECASE)
#: Blocks that are no Python: what a program printed, commands, data.
_OTHER = re.compile(
    r"(bash|sh|shell|console|text|txt|plaintext|output|json|csv|yaml|toml|markdown|md|diff|sql)\b",
    re.IGNORECASE,
)
_THOUGHT = re.compile(
    r"^[ \t]*<(think|thinking|thought|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.MULTILINE
)
_END_OF_THOUGHT = re.compile(r".*?</(think|thinking|thought|reasoning)>", re.DOTALL)
_FINAL_CHANNEL = "<|channel|>final<|message|>"
_REFUSAL = re.compile(
    r"\s*(i['’]m sorry|sorry,|i can(?:no|['’])t (?:help|assist|do)|i(?: a|['’])m (?:unable|not able) to|"
    r"i won['’]t|as an ai\b)",
    re.IGNORECASE,
)
#: Where a call of a tool, or an answer in JSON, has its program.
_CODE_KEYS = ("code", "script", "program", "python", "source", "input", "content")
_CUT = ("length", "max_tokens", "model_length")


@dataclasses.dataclass
class Answer:
    """What the model said.

    Attributes
    ----------
    text : str
    is_refusal : bool
        The endpoint held the answer back, or the model said that it will not.
    is_cut : bool
        It ended at the endpoint's limit of tokens.
    tokens_in, tokens_out : int or None
        None where the server did not count.
    tokens_cached : int
        Those of ``tokens_in`` that the endpoint had from an earlier request.
    is_cached : bool
        It was kept here; nothing was sent.
    """

    text: str
    is_refusal: bool = False
    is_cut: bool = False
    tokens_in: Optional[int] = None
    tokens_out: Optional[int] = None
    tokens_cached: int = 0
    is_cached: bool = False


def parse_reply(raw: bytes, most: int) -> Dict[str, Any]:
    """Return the reply of a server: JSON, packed or not, or a stream that nobody asked for."""
    if raw[:2] == b"\x1f\x8b":
        unpacker = zlib.decompressobj(31)
        try:
            raw = unpacker.decompress(raw, most)
        except zlib.error as error:
            raise ValueError(f"the answer is no gzip: {error}") from None
        if unpacker.unconsumed_tail or not unpacker.eof:
            raise ValueError("the answer is cut, or unpacks to too much")
    text = raw.decode("utf-8-sig", "replace").strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    events = [line[5:].strip() for line in lines if line.startswith("data:")]
    try:
        if events:
            return _joined([json.loads(event) for event in events if event != "[DONE]"])
        if len(lines) > 1 and all(line.startswith("{") for line in lines):
            return _joined([json.loads(line) for line in lines])
        return json.loads(text)
    except ValueError:
        raise ValueError(f"the answer is no JSON: {raw[:100]!r}") from None


def _joined(chunks: List[Any]) -> Dict[str, Any]:
    """Return the reply that the chunks of a stream add up to."""
    message: Dict[str, Any] = {}
    calls: Dict[Any, str] = {}
    whole: Dict[str, Any] = {"choices": [{"message": message}]}
    for chunk in chunks:
        if not isinstance(chunk, dict):
            raise ValueError("the stream holds what is no object")
        if chunk.get("usage"):
            whole["usage"] = chunk["usage"]
        # one server has the message itself in every line
        choices = chunk.get("choices") or [chunk]
        part = choices[0].get("delta") or choices[0].get("message") or {}
        for key in ("content", "reasoning_content", "reasoning", "refusal"):
            if isinstance(part.get(key), str):
                message[key] = (message.get(key) or "") + part[key]
        for call in part.get("tool_calls") or []:
            said = (call.get("function") or {}).get("arguments") or ""
            calls[call.get("index", 0)] = calls.get(call.get("index", 0), "") + said
        reason = choices[0].get("finish_reason") or chunk.get("done_reason")
        if reason:
            whole["choices"][0]["finish_reason"] = reason
    if calls:
        message["tool_calls"] = [{"function": {"arguments": said}} for said in calls.values()]
    if not message:
        raise ValueError("the stream holds no answer")
    return whole


def read_answer(content: Any) -> Answer:
    """Return the answer in a reply; ``ValueError`` where it has another form."""
    try:
        choice = content["choices"][0]
        message = choice.get("message") or {"content": choice["text"]}
        reason = choice.get("finish_reason")
        is_cut = reason in _CUT
        text = _text_of(message.get("content"))
        calls = [call["function"] for call in message.get("tool_calls") or []]
        calls += [message["function_call"]] if message.get("function_call") else []
        if calls and not text.strip():
            text = "".join(_as_block(_code_in(call.get("arguments"))) for call in calls)
        refusal = message.get("refusal")
        is_refusal = bool(refusal) or reason == "content_filter"
        if not text.strip() and not is_cut and not is_refusal:
            # a server that takes the whole answer for a thought
            text = _text_of(message.get("reasoning_content") or message.get("reasoning"))
        usage = content.get("usage") or {}
        counts = [usage.get("prompt_tokens"), usage.get("completion_tokens")]
        tokens = [c if _is_count(c) else None for c in counts]
        details = usage.get("prompt_tokens_details") or {}
        cached = details.get("cached_tokens", usage.get("prompt_cache_hit_tokens"))
        cached = min(cached, tokens[0] or 0) if _is_count(cached) else 0
    except (KeyError, IndexError, TypeError, AttributeError):
        shown = json.dumps(content)[:100]
        raise ValueError(f"the answer has no choices[0].message: {shown}") from None
    return Answer(text, is_refusal, is_cut, tokens[0], tokens[1], cached)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _text_of(content: Any) -> str:
    """Return the text of a message, which may be a list of parts or an object."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        return json.dumps(content)
    parts = [part if isinstance(part, str) else part.get("text") for part in content]
    return "".join(part for part in parts if part)


def extract_code(answer: str) -> str:
    """Return the program of an answer; nothing where there is none.

    It is the longest block between backticks or tildes that is marked as Python, or else the
    longest that is marked as nothing. Drafts in a thought do not count. A call of a tool in JSON, or
    an answer in JSON, holds it under a name such as ``code``.

    Examples
    --------
    >>> extract_code("So:\\n```python\\nprint(1)\\n```")
    'print(1)\\n'
    >>> extract_code("<think>\\n```\\ndraft = 1\\n```\\n</think>\\n~~~{python}\\nprint(1)\\n~~~")
    'print(1)\\n'
    """
    text = answer.rpartition(_FINAL_CHANNEL)[2]
    ended = _END_OF_THOUGHT.match(text)
    if ended and f"<{ended[1]}>" not in ended[0]:
        # the template of the model had opened the thought
        text = text[ended.end() :]
    text = _THOUGHT.sub("", text)
    blocks = list(_blocks(text))
    for wanted in (_PYTHON.match, lambda info: not _OTHER.match(info)):
        found = [code for info, code in blocks if wanted(info)]
        if found:
            return max(found, key=len)
    inner = [code for info, code in blocks if info.lower().startswith("json")]
    said = inner[0] if inner else re.sub(r"</?tool_call>", "", text).strip()
    return _code_in(said) if said[:1] in ("{", "[") else ""


def is_refusal(answer: str) -> bool:
    """Whether a model says that it will not.

    Examples
    --------
    >>> is_refusal("I'm sorry, but I can't help with that."), is_refusal("Sorry! ```x```")
    (True, False)
    """
    return _REFUSAL.match(answer) is not None


def _blocks(text: str) -> Iterator[Any]:
    """Yield what stands behind each opening fence, and the lines of its block."""
    lines = text.splitlines(keepends=True)
    at = 0
    while at < len(lines):
        opening = _FENCE.match(lines[at].rstrip("\r\n"))
        at += 1
        if opening is None:
            continue
        before, fence, info = opening.groups()
        ends = [end for end in range(at, len(lines)) if _closes(lines[end], fence)]
        if not ends:
            return
        # a text of the program may hold a fence itself: the first end that leaves a program
        end = next((e for e in ends if _is_program(_block(lines[at:e], before))), ends[0])
        yield info.strip(), _block(lines[at:end], before)
        at = end + 1


def _closes(line: str, fence: str) -> bool:
    mark = line.strip().lstrip(">").strip()
    return len(mark) >= len(fence) and not mark.strip(fence[0])


def _block(lines: List[str], before: str) -> str:
    """Return the lines of a block without the indentation of its fence."""
    width = len(before)
    if before.strip(" \t>"):
        # behind the mark of a list, or below it
        return "".join(line[min(width, len(line) - len(line.lstrip(" \t"))) :] for line in lines)
    is_quoted = ">" in before
    kept = []
    for line in lines:
        rest = line[width:] if line[:width] == before else line
        if not is_quoted and line[:width] != before:
            rest = line.lstrip(" \t")
        kept.append(rest)
    return "".join(kept)


def _is_program(code: str) -> bool:
    try:
        ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return bool(code.strip())


def _as_block(code: str) -> str:
    return f"```python\n{code}```\n" if code else ""


def _code_in(said: Any) -> str:
    """Return the program in JSON, however deep: under a name for it, else nothing."""
    if isinstance(said, str):
        try:
            said, _ = json.JSONDecoder().raw_decode(said.strip())
        except (ValueError, RecursionError):
            return ""
    if isinstance(said, list):
        return next((code for code in map(_code_in, said) if code), "")
    if not isinstance(said, dict):
        return ""
    for key in _CODE_KEYS:
        if isinstance(said.get(key), str) and said[key].strip():
            code = said[key]
            return extract_code(code) or (code if code.endswith("\n") else code + "\n")
    nested = (value for value in said.values() if isinstance(value, (dict, list)))
    found = next((code for code in map(_code_in, nested) if code), "")
    # the arguments of a call are often JSON in a text
    return found or _code_in(said.get("arguments") or "")
