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

#: What the model wrote, with the program in it.
TEXTS = {
    "plain": FENCED,
    "no language": f"```\n{CODE}```",
    "a thought with a longer draft": (
        f"<think>\nFirst:\n```python\n{CODE}print('a longer draft')\n```\n</think>\n{FENCED}"
    ),
    "a thought that the template opened": (
        f"draft\n```python\n{CODE}{CODE}```\n</think>\n\n{FENCED}"
    ),
    "several thoughts": f"<thinking>a</thinking>\n{FENCED}\n<thinking>```x```</thinking>",
    "channels": (
        f"<|channel|>analysis<|message|>{FENCED}{FENCED}<|end|><|channel|>final<|message|>{FENCED}"
    ),
    "a title": f'```python title="a.py"\n{CODE}```',
    "braces": f"```{{python}}\n{CODE}```",
    "braces and a dot": f"```{{.python .numberLines}}\n{CODE}```",
    "a version": f"```python3.11\n{CODE}```",
    "py": f"```py\n{CODE}```",
    "capitals": f"``` Python\n{CODE}```",
    "tildes": f"~~~python\n{CODE}~~~",
    "four backticks": f"````python\n{CODE}````",
    "in a list": "1. So:\n\n   ```python\n   import os\n   print(1)\n   ```\n",
    "behind the mark of a list": "- ```python\n  import os\n  print(1)\n  ```\n",
    "quoted": "> ```python\n> import os\n> print(1)\n> ```\n",
    "an output block behind": f"{FENCED}\nIt prints\n```text\n{'1 ' * 99}\n```",
    "an unmarked output block behind": f"{FENCED}\nIt prints\n```\n{'1 ' * 99}\n```",
    "a bad header and an output block": (
        f"```python script.py (main)\n{CODE}```\nwhich is prose and no program\n```\n1\n```"
    ),
    "commands before": f"```bash\npip install everything-there-is-in-the-world\n```\n{FENCED}",
    "the longest of two": f"```python\na\n```\n{FENCED}",
    "JSON": QUOTED,
    "JSON in a block": f"```json\n{QUOTED}\n```",
    "JSON with a block in it": json.dumps({"answer": {"script": FENCED}}),
    "a call of a tool in the text": "<tool_call>"
    + json.dumps({"name": "python", "arguments": {"code": CODE}})
    + "</tool_call>",
    "arguments in a text": json.dumps([{"name": "run", "arguments": QUOTED}]),
}
#: What holds another program, or none.
OTHER_TEXTS = {
    "a thought without end": (f"<think>\n{FENCED}", ""),
    "a thought in the program": (
        "```python\ns = '<think>'\nt = '</think>'\n```",
        "s = '<think>'\nt = '</think>'\n",
    ),
    "carriage returns": (FENCED.replace("\n", "\r\n"), CODE.replace("\n", "\r\n")),
    "indented with a body": (
        "  ```python\n  if 1:\n      x = 2\n  ```",
        "if 1:\n    x = 2\n",
    ),
    "backticks in a docstring": (f"```python\n{INNER}```\nDone.", INNER),
    "backticks in a text": ("```python\ns = '''\n```\n'''\n```", "s = '''\n```\n'''\n"),
    "an error in it": ("```python\nprint(\n```\nand\n```\n1\n```", "print(\n"),
    "never closed": (f"```python\n{CODE}", ""),
    "prose": ("I would look at the data first.", ""),
    "nothing": ("", ""),
}


@pytest.mark.parametrize("name", [*TEXTS, *OTHER_TEXTS])
def test_the_program_of_a_text(name):
    text, code = OTHER_TEXTS.get(name) or (TEXTS[name], CODE)
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


#: Replies that hold the program.
ANSWERED = {
    "text": message(content=FENCED),
    "parts": message(content=[{"type": "text", "text": FENCED}]),
    "parts without a text": message(
        content=[{"text": None}, {"type": "text", "text": FENCED}, {"type": "image"}]
    ),
    "parts that are texts": message(content=["a\n", FENCED]),
    "an object": message(content={"code": CODE}),
    "no text but a thought": message(content=None, reasoning_content=FENCED),
    "a thought under another name": message(content="", reasoning=FENCED),
    "text beside a thought": message(
        content=FENCED, reasoning_content=f"```python\n{CODE}{CODE}```"
    ),
    "a call of a tool": message(content=None, tool_calls=[call(QUOTED)]),
    "arguments that are no text": message(
        content=None, tool_calls=[call({"code": CODE})]
    ),
    "a call of a function": message(content=None, function_call={"arguments": QUOTED}),
    "an old completion": {"choices": [{"text": FENCED, "finish_reason": "stop"}]},
}
REFUSED = {
    "a refusal": message(content=None, refusal="No."),
    "a filter": ended("content_filter", content=""),
}
CUT = {
    "cut off": ended("length", content="```python\nimport"),
    "cut off while it thought": ended("length", content=None, reasoning_content=FENCED),
}
REPLIES = {**ANSWERED, **REFUSED, **CUT, "nothing": message(content=None)}


@pytest.mark.parametrize("name", REPLIES)
def test_the_answer_of_a_reply(name):
    raw = json.dumps(REPLIES[name]).encode()
    for sent in (raw, gzip.compress(raw), b"\xef\xbb\xbf" + raw, b"\n\n" + raw):
        answer = read_answer(parse_reply(sent, 1 << 20))
        assert extract_code(answer.text) == (CODE if name in ANSWERED else "")
        assert answer.is_refusal == (name in REFUSED)
        assert answer.is_cut == (name in CUT)


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
