"""No secret of an address survives, wherever it stands in it."""

import pytest

from amlb_ext.core.display import redact_text, redact_url


@pytest.mark.parametrize(
    "url",
    [
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
    ],
)
def test_an_address_is_shown_without_its_secrets(url):
    assert "secret" not in redact_url(url)
    assert "***" in redact_url(url)


def test_an_address_without_secrets_is_shown_as_it_is():
    assert (
        redact_url("https://host.org:8443/a%20b.csv")
        == "https://host.org:8443/a%20b.csv"
    )


@pytest.mark.parametrize(
    "text",
    [
        "GET https://host/x?api_key=secret&y=1",
        "GET https://host/x?next=%2Fy%3Fapi_key%3Dsecret",
        '{"apikey": "secret"}',
        "cannot clone https://me:secret@host.org/x.git",
        "two: https://a:secret@h/x and https://b:secret@h/y",
    ],
)
def test_a_text_is_shown_without_its_secrets(text):
    assert "secret" not in redact_text(text)


def test_what_is_no_secret_stays():
    text = "pip install 'x @ git+https://host.org/x@v1.0' for me@host.org"
    assert redact_text(text) == text
    assert redact_text("key 12345 refused", "12345", "") == "key *** refused"
