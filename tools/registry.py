"""Packages of the npm registry, each named with the sum of its bytes. They are unpacked as they are: no script of theirs runs."""

import base64
import hashlib
import io
import os
import tarfile
import urllib.request

REGISTRY = os.environ.get("npm_config_registry", "https://registry.npmjs.org").rstrip("/")


def download(package, sha512):
    with urllib.request.urlopen(f"{REGISTRY}/{package}", timeout=60) as answer:
        archive = answer.read()
    if base64.b64encode(hashlib.sha512(archive).digest()).decode() != sha512:
        raise ValueError(f"{REGISTRY}/{package} is not what it was")
    return archive


def unpack(package, sha512, directory, only=""):
    """Puts the files whose names begin with `only` into the directory; all of them are below package/ there."""
    directory.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(download(package, sha512))) as archive:
        archive.extractall(directory, [member for member in archive if member.name.startswith(only)])
