"""Every form in which servers send an answer and models mark a program: one table."""

import gzip
import json
from functools import partial

import pytest
from LLMCoder.answers import extract_code, is_refusal, parse_reply, read_answer

CODE = "import os\nprint(1)\n"
FENCED = f"```python\n{CODE}```"
QUOTED = json.dumps({"code": CODE})
INNER = 'def f():\n    """Use it:\n\n    ```python\n    f()\n    ```\n    """\n    return 1\n'

#: What the model wrote: the program in it.
TEXTS = {
    "plain": (FENCED, CODE),
    "no language": (f"```\n{CODE}```", CODE),
    "a thought with a longer draft": (
        f"<think>\nFirst:\n```python\n{CODE}print('a longer draft')\n```\n</think>\n{FENCED}",
        CODE,
    ),
    "a thought that the template opened": (
        f"draft\n```python\n{CODE}{CODE}```\n</think>\n\n{FENCED}",
        CODE,
    ),
    "a thought without end": (f"<think>\n{FENCED}", ""),
    "several thoughts": (
        f"<thinking>a</thinking>\n{FENCED}\n<thinking>```x```</thinking>",
        CODE,
    ),
    "channels": (
        f"<|channel|>analysis<|message|>{FENCED}{FENCED}<|end|><|channel|>final<|message|>{FENCED}",
        CODE,
    ),
    "a thought in the program": (
        "```python\ns = '<think>'\nt = '</think>'\n```",
        "s = '<think>'\nt = '</think>'\n",
    ),
    "a title": (f'```python title="a.py"\n{CODE}```', CODE),
    "braces": (f"```{{python}}\n{CODE}```", CODE),
    "braces and a dot": (f"```{{.python .numberLines}}\n{CODE}```", CODE),
    "a version": (f"```python3.11\n{CODE}```", CODE),
    "py": (f"```py\n{CODE}```", CODE),
    "capitals": (f"``` Python\n{CODE}```", CODE),
    "tildes": (f"~~~python\n{CODE}~~~", CODE),
    "four backticks": (f"````python\n{CODE}````", CODE),
    "carriage returns": (FENCED.replace("\n", "\r\n"), CODE.replace("\n", "\r\n")),
    "in a list": ("1. So:\n\n   ```python\n   import os\n   print(1)\n   ```\n", CODE),
    "behind the mark of a list": (
        "- ```python\n  import os\n  print(1)\n  ```\n",
        CODE,
    ),
    "quoted": ("> ```python\n> import os\n> print(1)\n> ```\n", CODE),
    "indented with a body": (
        "  ```python\n  if 1:\n      x = 2\n  ```",
        "if 1:\n    x = 2\n",
    ),
    "backticks in a docstring": (f"```python\n{INNER}```\nDone.", INNER),
    "backticks in a text": ("```python\ns = '''\n```\n'''\n```", "s = '''\n```\n'''\n"),
    "an output block behind": (f"{FENCED}\nIt prints\n```text\n{'1 ' * 99}\n```", CODE),
    "an unmarked output block behind": (
        f"{FENCED}\nIt prints\n```\n{'1 ' * 99}\n```",
        CODE,
    ),
    "a bad header and an output block": (
        f"```python script.py (main)\n{CODE}```\nwhich is prose and no program\n```\n1\n```",
        CODE,
    ),
    "commands before": (
        f"```bash\npip install everything-there-is-in-the-world\n```\n{FENCED}",
        CODE,
    ),
    "the longest of two": (f"```python\na\n```\n{FENCED}", CODE),
    "an error in it": ("```python\nprint(\n```\nand\n```\n1\n```", "print(\n"),
    "never closed": (f"```python\n{CODE}", ""),
    "JSON": (QUOTED, CODE),
    "JSON in a block": (f"```json\n{QUOTED}\n```", CODE),
    "JSON with a block in it": (json.dumps({"answer": {"script": FENCED}}), CODE),
    "a call of a tool in the text": (
        "<tool_call>"
        + json.dumps({"name": "python", "arguments": {"code": CODE}})
        + "</tool_call>",
        CODE,
    ),
    "arguments in a text": (json.dumps([{"name": "run", "arguments": QUOTED}]), CODE),
    "prose": ("I would look at the data first.", ""),
    "nothing": ("", ""),
}


@pytest.mark.parametrize(("text", "code"), TEXTS.values(), ids=TEXTS)
def test_the_program_of_a_text(text, code):
    assert extract_code(text) == code


def ended(reason, **parts):
    return {
        "choices": [
            {"message": {"role": "assistant", **parts}, "finish_reason": reason}
        ]
    }


message = partial(ended, "stop")


def call(arguments):
    return {"type": "function", "function": {"name": "python", "arguments": arguments}}


#: What the server sent: the program, whether it was held back, whether it was cut.
REPLIES = {
    "text": (message(content=FENCED), CODE, False, False),
    "parts": (message(content=[{"type": "text", "text": FENCED}]), CODE, False, False),
    "parts without a text": (
        message(
            content=[
                {"text": None},
                {"type": "text", "text": FENCED},
                {"type": "image"},
            ]
        ),
        CODE,
        False,
        False,
    ),
    "parts that are texts": (message(content=["a\n", FENCED]), CODE, False, False),
    "an object": (message(content={"code": CODE}), CODE, False, False),
    "no text but a thought": (
        message(content=None, reasoning_content=FENCED),
        CODE,
        False,
        False,
    ),
    "a thought under another name": (
        message(content="", reasoning=FENCED),
        CODE,
        False,
        False,
    ),
    "text beside a thought": (
        message(content=FENCED, reasoning_content=f"```python\n{CODE}{CODE}```"),
        CODE,
        False,
        False,
    ),
    "a call of a tool": (
        message(content=None, tool_calls=[call(QUOTED)]),
        CODE,
        False,
        False,
    ),
    "arguments that are no text": (
        message(content=None, tool_calls=[call({"code": CODE})]),
        CODE,
        False,
        False,
    ),
    "a call of a function": (
        message(content=None, function_call={"arguments": QUOTED}),
        CODE,
        False,
        False,
    ),
    "an old completion": (
        {"choices": [{"text": FENCED, "finish_reason": "stop"}]},
        CODE,
        False,
        False,
    ),
    "a refusal": (message(content=None, refusal="No."), "", True, False),
    "a filter": (
        ended("content_filter", content=""),
        "",
        True,
        False,
    ),
    "cut off": (
        {
            "choices": [
                {"message": {"content": "```python\nimport"}, "finish_reason": "length"}
            ]
        },
        "",
        False,
        True,
    ),
    "cut off while it thought": (
        {
            "choices": [
                {
                    "message": {"content": None, "reasoning_content": FENCED},
                    "finish_reason": "length",
                }
            ]
        },
        "",
        False,
        True,
    ),
    "nothing": (message(content=None), "", False, False),
}


@pytest.mark.parametrize(
    ("reply", "code", "is_refused", "is_cut"), REPLIES.values(), ids=REPLIES
)
def test_the_answer_of_a_reply(reply, code, is_refused, is_cut):
    raw = json.dumps(reply).encode()
    for sent in (raw, gzip.compress(raw), b"\xef\xbb\xbf" + raw, b"\n\n" + raw):
        answer = read_answer(parse_reply(sent, 1 << 20))
        assert extract_code(answer.text) == code
        assert (answer.is_refusal, answer.is_cut) == (is_refused, is_cut)


@pytest.mark.parametrize(
    "raw",
    [b"", b"<html>", b"[]", b"{}", b'{"choices": []}', b'{"choices": [{"message": 3}]}', b"null",
     b'{"error": {"message": "busy"}}', b"data: [DONE]", b"data: {]", b"data: 3",
     gzip.compress(b"{}", mtime=0)[:-9], gzip.compress(b" " * (2 << 20), mtime=0)],
)  # fmt: skip
def test_what_is_no_answer_is_said_in_one_way(raw):
    with pytest.raises(ValueError, match=r"answer|stream"):
        read_answer(parse_reply(raw, 1 << 20))


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("I'm sorry, but I can't help with that.", True),
        ("I cannot assist with this request.", True),
        ("Sorry, no.", True),
        ("As an AI I do not.", True),
        ("I would look first.", False),
        ("", False),
    ],
)
def test_a_refusal_in_words(text, refused):
    assert is_refusal(text) == refused
