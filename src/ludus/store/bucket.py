"""Where mirrors are: the address of a bucket or a folder, how it is opened, and what it holds of a run."""

import os
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ludus.core import extras
from ludus.core.errors import Failure, Usage
from ludus.store.checkpoint import BEST, CHECKPOINTS, MILESTONES
from ludus.store.run import CONFIG, EVENTS, LOG, METRICS

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ObjectStore

FILES = (CONFIG, METRICS, EVENTS, LOG, f"{BEST}.safetensors", f"{BEST}.json")
"""What is copied of a run beside its checkpoints and milestones."""

URL = re.compile(r"(s3|gs)://[\w.-]+(/[^?#@]*)?|file:///[^?#]+")
CANT_OPEN = {
    "s3": "check the AWS_* variables",
    "gs": "check the file that GOOGLE_APPLICATION_CREDENTIALS names",
    "file": "there is no such folder",
}


def is_url(text: str) -> bool:
    return text.startswith(("s3://", "gs://", "file://"))


def address(flag: str, environ: Mapping[str, str]) -> str | None:
    """The --mirror flag; without one, what CLOUD_PROVIDER and its variables say; None for no mirror."""
    if flag:
        return checked_url(flag)
    provider = environ.get("CLOUD_PROVIDER", "").strip().lower()
    if provider in ("", "none", "local"):
        return None
    if provider == "gcs":
        return _from_variables("gs", "GCS", environ)
    if provider in ("s3", "aws"):
        return _from_variables("s3", "S3", environ)
    raise Usage(f"CLOUD_PROVIDER is {provider!r}, but must be one of gcs, s3, aws, local, none")


def _from_variables(scheme: str, name: str, environ: Mapping[str, str]) -> str:
    bucket = environ.get(f"{name}_BUCKET", "").strip()
    if not bucket:
        raise Usage(f"CLOUD_PROVIDER={environ['CLOUD_PROVIDER']} needs {name}_BUCKET, the name of the bucket")
    return checked_url(f"{scheme}://{bucket}/{environ.get(f'{name}_PREFIX', '').strip().strip('/')}")


def checked_url(url: str) -> str:
    if not URL.fullmatch(url):  # and is not shown: there may be a password in it
        raise Usage(
            "a mirror must be s3://bucket/prefix, gs://bucket/prefix or file:///path, without credentials:"
            " those come from environment variables"
        )
    return url.rstrip("/")


def open_store(url: str, *, make: bool = False) -> "ObjectStore":
    """The place behind a URL, which nothing is asked of yet. make: create the folder if it is one."""
    try:
        from obstore.exceptions import BaseError
        from obstore.store import from_url
    except ImportError:
        raise extras.missing("a mirror", "obstore") from None
    scheme = urlsplit(checked_url(url)).scheme
    try:
        if scheme == "file":
            return from_url(url, mkdir=make, automatic_cleanup=True)
        return from_url(
            url,
            client_options={
                "allow_http": http_allowed(os.environ),
                "connect_timeout": timedelta(seconds=5),
                "read_timeout": timedelta(seconds=60),
                "timeout": timedelta(hours=1),  # of a whole download, however large
            },
            retry_config={"max_retries": 2, "retry_timeout": timedelta(seconds=60)},
        )
    except (BaseError, OSError, ValueError):  # their texts may quote credentials
        raise Failure(f"can't open the mirror {url}: {CANT_OPEN[scheme]}") from None


def http_allowed(environ: Mapping[str, str]) -> bool:
    """Keys and weights cross a network by https only, unless AWS's own variable says otherwise."""
    endpoint = environ.get("AWS_ENDPOINT_URL_S3") or environ.get("AWS_ENDPOINT_URL") or ""
    on_this_machine = urlsplit(endpoint).hostname in ("localhost", "127.0.0.1", "::1")
    return on_this_machine or environ.get("AWS_ALLOW_HTTP", "").lower() in ("true", "1")


def list_checkpoints(store: "ObjectStore") -> dict[str, dict[str, datetime]]:
    """The checkpoints in a mirror, whole or not: when each of their files was copied."""
    found: dict[str, dict[str, datetime]] = {}
    for entries in store.list(CHECKPOINTS):
        for entry in entries:
            parts = entry["path"].split("/")
            if len(parts) == 3 and parts[1].isdigit():
                found.setdefault(parts[1], {})[parts[2]] = entry["last_modified"]
    return found


def list_milestones(store: "ObjectStore") -> list["ObjectMeta"]:
    name = re.compile(rf"{MILESTONES}/\d+\.safetensors")
    return [entry for entries in store.list(MILESTONES) for entry in entries if name.fullmatch(entry["path"])]


def reason(error: Exception) -> str:
    """Why it failed, in few words: the errors' own texts fill pages and may quote credentials."""
    from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError

    if isinstance(error, Failure):
        return str(error)
    if isinstance(error, PermissionDeniedError | UnauthenticatedError):
        return "access is refused: check the credentials"
    if status := re.search(r"status code: (\d{3}[A-Za-z ]*)", str(error)):
        return f"the server answers {status[1].strip()}"
    if code := re.search(r"(?:os error|code:) (\d+)", str(error)):
        return os.strerror(int(code[1]))
    if isinstance(error, OSError):
        return error.strerror or "not found"
    return "no connection" if isinstance(error, BaseError) else type(error).__name__
