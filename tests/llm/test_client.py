"""The client against a server that misbehaves."""

import json

import pytest
from LLMCoder import client as client_module
from LLMCoder.client import BudgetError, Client, LLMError

MESSAGES = [
    {"role": "system", "content": "rules"},
    {"role": "user", "content": "task"},
]


@pytest.fixture(autouse=True)
def nothing_spent(monkeypatch):
    monkeypatch.setitem(client_module._SPENT, "process", 0.0)


def make(tmp_path, environ, **settings):
    folder = str(tmp_path / "cache")
    return Client("explorer", folder, environ=environ, wait_seconds=0.01, **settings)


@pytest.mark.parametrize("fault", [429, 500, 529, "cut", "html"])
def test_passing_faults_are_tried_again(endpoint, environ, tmp_path, fault):
    endpoint.faults = [fault]
    client = make(tmp_path, environ)
    answer = client.ask(MESSAGES, [0], 30)
    assert "looking" in answer.text
    assert (client.sent, endpoint.requests) == (2, 2)


def test_a_slow_answer_is_waited_for_and_asked_once(endpoint, environ, tmp_path):
    endpoint.faults = ["slow"]
    client = make(tmp_path, environ)
    assert "looking" in client.ask(MESSAGES, [0], 30).text
    assert (client.sent, client.lost) == (1, 0)
    # no limit below the documented one
    assert client.request_seconds == 600
    endpoint.faults = ["slow"]
    price = {"input": 1e-3, "output": 1e-3}
    hurried = make(tmp_path, environ, request_seconds=0.3, price=price, max_cost=9.0)
    with pytest.raises(LLMError, match="asked once"):
        hurried.ask(MESSAGES, [1], 30)
    # an endpoint bills what it was asked, and may answer at length
    assert (hurried.sent, hurried.lost) == (1, 1)
    assert hurried.spent > 1
    with pytest.raises(BudgetError, match="this process"):
        make(tmp_path, environ, price=price, max_cost=1.0).ask(MESSAGES, [2], 30)


def test_an_answer_without_end_is_left(endpoint, environ, tmp_path):
    endpoint.faults = ["endless"]
    client = make(tmp_path, environ, price={"input": 1e-6, "output": 1e-6})
    assert "looking" in client.ask(MESSAGES, [0], 30).text
    assert (client.sent, client.lost) == (2, 1)
    assert client.spent > client.cost


@pytest.mark.parametrize(
    "limit", ["nan", ".inf", float("nan"), float("inf"), -1, True, "2"]
)
def test_a_limit_that_is_none_sends_nothing(endpoint, environ, tmp_path, limit):
    price = {"input": 1e-6, "output": 1e-6}
    with pytest.raises(LLMError, match="max_cost is"):
        make(tmp_path, environ, price=price, max_cost=limit)
    for name in ("input", "output", "cached"):
        with pytest.raises(LLMError, match=f"price {name} is"):
            make(tmp_path, environ, price={**price, name: limit}, max_cost=1.0)
    assert endpoint.requests == 0


@pytest.mark.parametrize("fault", ["cut", "html", "gzip", "stream", "ollama"])
def test_answers_that_are_packed_or_streamed(endpoint, environ, tmp_path, fault):
    endpoint.faults = [fault]
    client = make(tmp_path, environ, price={"input": 1e-6, "output": 1e-6})
    assert "looking" in client.ask(MESSAGES, [0], 30).text
    is_lost = fault in ("cut", "html")
    assert (client.sent, client.lost) == (1 + is_lost, is_lost)
    assert (client.spent > client.cost) == is_lost


def test_a_server_without_a_system_role(endpoint, environ, tmp_path):
    endpoint.faults = ["no system"] * 2
    client = make(tmp_path, environ)
    assert "looking" in client.ask(MESSAGES, [0], 30).text
    assert [m["role"] for m in endpoint.asked[-1]["messages"]] == ["user"]
    assert endpoint.asked[-1]["messages"][0]["content"] == "rules\n\ntask"
    # the second answer is asked for in this way at once
    endpoint.faults = ["no system"]
    client.ask(MESSAGES, [1], 30)
    assert client.sent == 3


@pytest.mark.parametrize(
    "ending",
    ["/v1", "/v1/", "", "/", "/v1/chat/completions", "/v1?api-version=2024-06-01"],
)
def test_addresses_as_servers_have_them(endpoint, environ, tmp_path, ending):
    environ["HARDSYNTH_LLM_URL"] = endpoint.url.removesuffix("/v1") + ending
    client = make(tmp_path, environ)
    assert "looking" in client.ask(MESSAGES, [0], 30).text
    path, _, query = endpoint.paths[-1].partition("?")
    assert path == "/v1/chat/completions"
    # what Azure has in its addresses goes with its header
    assert (query == "api-version=2024-06-01") == ("?" in ending)
    names = {name.lower() for name in endpoint.headers[-1]}
    assert names & {"api-key", "authorization"} == {
        "api-key" if query else "authorization"
    }


def test_a_path_that_is_not_known_is_tried_with_the_version(
    endpoint, environ, tmp_path
):
    environ["HARDSYNTH_LLM_URL"] = endpoint.url.removesuffix("/v1") + "/proxy"
    client = make(tmp_path, environ, tries=1)
    assert "looking" in client.ask(MESSAGES, [0], 30).text
    assert endpoint.paths == ["/proxy/chat/completions", "/proxy/v1/chat/completions"]


def test_cached_tokens_have_their_own_price(endpoint, environ, tmp_path):
    endpoint.faults = ["cached tokens"]
    price = {"input": 1.0, "output": 0.0, "cached": 0.25}
    client = make(tmp_path, environ, price=price)
    answer = client.ask(MESSAGES, [0], 30)
    assert answer.tokens_cached == answer.tokens_in
    assert client.cost == client.spent == pytest.approx(0.25 * answer.tokens_in)


@pytest.mark.parametrize("fault", [401, 302])
def test_a_refusal_is_said_once_and_without_the_key(endpoint, environ, tmp_path, fault):
    # the server repeats the key in its error, and redirects to another address
    endpoint.faults = [fault] * 5
    client = make(tmp_path, environ)
    with pytest.raises(LLMError, match=f"HTTP {fault}") as caught:
        client.ask(MESSAGES, [0], 30)
    assert environ["HARDSYNTH_LLM_KEY"] not in str(caught.value)
    assert endpoint.requests == 1


def test_a_missing_endpoint_and_key_are_named(tmp_path):
    for environ, wanted in (
        ({}, "set HARDSYNTH_LLM_URL"),
        ({"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}, "set HARDSYNTH_LLM_KEY"),
    ):
        with pytest.raises(LLMError, match=wanted):
            make(tmp_path, environ).ask(MESSAGES, [0], 5)


def test_nobody_listening_is_one_line_without_the_address(environ, tmp_path):
    environ["HARDSYNTH_LLM_URL"] = "http://me:secret@127.0.0.1:9/v1"
    with pytest.raises(LLMError, match="no answer after 2 requests") as caught:
        make(tmp_path, environ, tries=2).ask(MESSAGES, [0], 5)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_cache_answers_with_the_server_off(endpoint, environ, tmp_path):
    first = make(tmp_path, environ).ask(MESSAGES, [1, "task", 0], 30)
    endpoint.faults = [401] * 5
    client = make(tmp_path, environ)
    again = client.ask(MESSAGES, [1, "task", 0], 30)
    assert again.text == first.text
    assert (client.sent, client.cached) == (0, 1)
    # another fold is another run, whatever the seed
    with pytest.raises(LLMError):
        client.ask(MESSAGES, [1, "task", 1], 30)
    for file in (tmp_path / "cache").rglob("*.json"):
        assert environ["HARDSYNTH_LLM_KEY"] not in file.read_text()
        assert "127.0.0.1" not in file.read_text()


def test_a_damaged_cache_file_is_asked_again(endpoint, environ, tmp_path):
    make(tmp_path, environ).ask(MESSAGES, [0], 30)
    [file] = (tmp_path / "cache").rglob("*.json")
    file.write_text('{"choices": [')
    make(tmp_path, environ).ask(MESSAGES, [0], 30)
    assert endpoint.requests == 2
    assert json.loads(file.read_text())["choices"]


def test_a_cache_that_cannot_be_written_costs_the_repetition_alone(
    endpoint, environ, tmp_path
):
    # no disk, or a folder of somebody else's
    (tmp_path / "cache").write_text("a file")
    client = make(tmp_path, environ)
    assert "looking" in client.ask(MESSAGES, [0], 30).text
    assert "cache" in client.cache_problem
    assert make(tmp_path, environ).ask(MESSAGES, [0], 30).text
    assert endpoint.requests == 2


def test_cost_is_what_it_is_worth_and_spent_what_was_sent(endpoint, environ, tmp_path):
    price = {"input": 1e-6, "output": 4e-6}
    first = make(tmp_path, environ, price=price)
    first.ask(MESSAGES, [0], 30)
    assert first.cost == first.spent > 0
    again = make(tmp_path, environ, price=price)
    again.ask(MESSAGES, [0], 30)
    assert (again.cost, again.spent) == (first.cost, 0.0)


def test_an_unknown_count_is_unknown_and_still_ends_the_run(
    endpoint, environ, tmp_path
):
    endpoint.faults = ["no usage"]
    client = make(
        tmp_path, environ, price={"input": 1e-3, "output": 1e-3}, max_cost=0.02
    )
    client.ask(MESSAGES, [0], 30)
    assert client.cost is client.spent is None
    with pytest.raises(BudgetError, match="was not sent"):
        client.ask(MESSAGES, [1], 30)
    # of the process, too: another job begins where this one ended
    other = make(
        tmp_path, environ, price={"input": 1e-3, "output": 1e-3}, max_cost=0.02
    )
    with pytest.raises(BudgetError, match="this process"):
        other.ask(MESSAGES, [2], 30)


def test_a_budget_of_nothing_sends_nothing(endpoint, environ, tmp_path):
    client = make(tmp_path, environ, price={"input": 0.0, "output": 0.0}, max_cost=0)
    with pytest.raises(BudgetError, match="max_cost is 0"):
        client.ask(MESSAGES, [0], 30)
    assert endpoint.requests == 0


def test_a_limit_without_a_price_is_refused(tmp_path, environ):
    with pytest.raises(LLMError, match="max_cost needs a price"):
        make(tmp_path, environ, max_cost=1.0)


def test_keys_are_taken_out_of_texts(tmp_path, environ):
    text = make(tmp_path, environ).redact(
        f"{environ['HARDSYNTH_LLM_KEY']} sk-abcdefghijk Authorization: Bearer abc123"
    )
    assert text == "*** *** Authorization: Bearer ***"
