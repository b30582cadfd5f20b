"""Whose results may be used: the owner and mode of a folder, the digest or the signature of a bundle.

A result is code that runs on a device, so a folder that others can write to is not used, and a bundle is used as it is
only if the user named its digest or a key that signed it (``ASCENDOPT_TRUST``). Whatever isn't trusted can still be
imported: then it is rebuilt from source and checked again (importing.py).

Signatures are Ed25519 (RFC 8032) over the bytes of ``bundle.json``, made and checked by the package ``cryptography``.
"""

from __future__ import annotations

import base64
import json
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..errors import CacheError, need
from ..files import MALFORMED, parse_json, write_whole
from .bundle import MANIFEST, SIGNATURE, Bundle

_DIGEST = "sha256:"
_KEY_HELP = "Make one with: openssl genpkey -algorithm ed25519 -out key.pem"


def check_owner(folder: Path) -> None:
    """Raises CacheError if somebody else could have written what ``folder`` holds.

    Allowed owners: this user, root, and whoever owns this package's own code.
    """
    owners = {0, os.geteuid(), Path(__file__).stat().st_uid}
    for path in (folder, folder / "entries", folder / MANIFEST):
        try:
            found = path.lstat()
        except FileNotFoundError:
            continue
        if stat.S_ISLNK(found.st_mode) and path != folder:
            raise CacheError(f"{path} is a symbolic link.", "A cache folder holds plain files and folders only.")
        found = path.stat()
        if found.st_uid not in owners:
            raise CacheError(
                f"{path} belongs to user {found.st_uid}, not to user {os.geteuid()} or root.",
                "Import it (`ascendopt-tune cache import`), or have it owned by one of them.",
            )
        if found.st_mode & stat.S_IWOTH:
            raise CacheError(
                f"{path} can be written by everybody (mode {stat.S_IMODE(found.st_mode):04o}).", f"chmod o-w {path}"
            )


def why_untrusted(bundle: Bundle, trust: Iterable[str]) -> str | None:
    """None if ``trust`` vouches for the bundle, else the reason why not.

    Args:
        trust: ``sha256:<digest of bundle.json>`` items, and paths of Ed25519 public keys (PEM).

    Raises:
        CacheError: a key can't be read, or the bundle is signed and ``cryptography`` is missing.
    """
    items = list(trust)
    if f"{_DIGEST}{bundle.digest}" in items:
        return None
    keys = [Path(item).expanduser() for item in items if not item.startswith(_DIGEST)]
    if bundle.signature is None:
        return "it is not signed, and its digest is not among ASCENDOPT_TRUST"
    if not keys:
        return "it is signed, but ASCENDOPT_TRUST names no public key"
    if any(_signed_by(bundle, bundle.signature, key) for key in keys):
        return None
    return "no key of ASCENDOPT_TRUST made its signature"


def private_key(file: Path) -> Any:
    """The key in a file. Raises CacheError for one that is not Ed25519 in PEM."""
    serialization, ed25519 = _cryptography()
    try:
        key = serialization.load_pem_private_key(file.read_bytes(), password=None)
    except (OSError, ValueError, TypeError) as error:
        raise CacheError(f"the private key {file} can't be read: {error}.", _KEY_HELP) from error
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise CacheError(f"{file} is no Ed25519 key.", _KEY_HELP)
    return key


def sign(folder: Path, file: Path) -> None:
    """Writes ``bundle.sig`` beside ``bundle.json``. Raises as :func:`private_key`."""
    signature = private_key(file).sign((folder / MANIFEST).read_bytes())
    document = {"algorithm": "ed25519", "signature": base64.b64encode(signature).decode()}
    write_whole(folder / SIGNATURE, json.dumps(document) + "\n", durable=True)


def _signed_by(bundle: Bundle, signature: bytes, public_key: Path) -> bool:
    serialization, ed25519 = _cryptography()
    from cryptography.exceptions import InvalidSignature

    try:
        key = serialization.load_pem_public_key(public_key.read_bytes())
    except (OSError, ValueError) as error:
        raise CacheError(
            f"the public key {public_key} of ASCENDOPT_TRUST can't be read: {error}.",
            "openssl pkey -in key.pem -pubout -out key.pub.pem makes one from the private key.",
        ) from error
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise CacheError(f"{public_key} is no Ed25519 key.", _KEY_HELP)
    try:
        key.verify(_raw(signature), bundle.manifest_bytes)
    except InvalidSignature:
        return False
    return True


def _raw(signature: bytes) -> bytes:
    try:
        document = parse_json(signature)
        if document["algorithm"] != "ed25519":
            raise CacheError(f"{SIGNATURE} is of algorithm {document['algorithm']!r}, known is ed25519.")
        return base64.b64decode(document["signature"], validate=True)
    except MALFORMED as error:
        raise CacheError(f"{SIGNATURE} can't be read: {error}.", "Have the bundle signed again.") from error


def _cryptography() -> tuple[Any, Any]:
    need("cryptography", "sign", "A signature", or_else=", or trust by digest", kind=CacheError)
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519

    return serialization, ed25519
