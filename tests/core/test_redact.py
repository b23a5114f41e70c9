"""No secret of an address survives, wherever it stands in it."""

import pytest

from amlb_ext.core.display import redact_text, redact_url

URLS = [
    "https://me:secret@host.org/a.csv",
    "https://secret@host.org/a.csv",
    "https://me:sec/secret@host.org",
    "https://me:x@secret@host.org",
    "https://host.org/a.csv?token=secret",
    "https://host.org/a.csv#secret",
    "https://host.org/a?b=me@secret",
    "s3://me:secret@bucket/key",
    "//me:secret@host.org",
    "https://me:a\nsecret@host.org",
    "https://[::1?secret",
]
TEXTS = [
    "GET https://host/x?api_key=secret&y=1",
    "GET https://host/x?next=%2Fy%3Fapi_key%3Dsecret",
    '{"apikey": "secret"}',
    "cannot clone https://me:secret@host.org/x.git",
    "two: https://a:secret@h/x and https://b:secret@h/y",
]


@pytest.mark.parametrize(
    ("redact", "told"),
    [*((redact_url, url) for url in URLS), *((redact_text, text) for text in TEXTS)],
)
def test_secrets_are_hidden(redact, told):
    assert "secret" not in redact(told)
    assert "***" in redact(told)


def test_what_is_no_secret_stays():
    url = "https://host.org:8443/a%20b.csv"
    assert redact_url(url) == url
    text = "pip install 'x @ git+https://host.org/x@v1.0' for me@host.org"
    assert redact_text(text) == text
    assert redact_text("key 12345 refused", "12345", "") == "key *** refused"
