"""Fetches and unpacks the source distribution of vllm-ascend that the tests are written for, and prints its folder.

    export ASCENDOPT_VLLM_ASCEND=$(python tests/fetch_vllm_ascend.py build)

Ends with exit code 1 and a line on stderr when the package index can't be reached. Nothing of it is run or installed.
"""

from __future__ import annotations

import hashlib
import io
import json
import sys
import tarfile
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urljoin

INDEX = "https://pypi.org/pypi/vllm-ascend/json"
VERSION = "0.23.0.post1"
SHA256 = "a3b9f4a5dd7aa50c37e03d1f35937c4ae5aeacc49b734cac74d59ce5757738e1"


def fetch(parent: Path) -> Path:
    """The unpacked folder below ``parent``. Raises OSError or ValueError when it can't be had."""
    folder = parent / f"vllm_ascend-{VERSION}"
    if not folder.is_dir():
        with urllib.request.urlopen(INDEX, timeout=60) as answer:
            files = json.load(answer)["releases"].get(VERSION, [])
        url = next((f["url"] for f in files if f["packagetype"] == "sdist"), None)
        if url is None:
            raise ValueError(f"the index has no source distribution of vllm-ascend {VERSION}")
        with urllib.request.urlopen(urljoin(INDEX, url), timeout=180) as answer:
            archive = answer.read()
        if hashlib.sha256(archive).hexdigest() != SHA256:
            raise ValueError(f"{url} is not the file the tests were written for")
        parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(parent, filter="data")
    return folder.resolve()


if __name__ == "__main__":
    try:
        print(fetch(Path(sys.argv[1])))
    except (OSError, ValueError) as error:
        sys.exit(f"vllm-ascend can't be fetched: {error}")
