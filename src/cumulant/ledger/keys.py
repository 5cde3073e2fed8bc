"""Keys that sign entries.

HMAC-SHA256 comes from the standard library, Ed25519 from the package `cryptography`.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from cumulant.errors import InputError, LedgerError, shown
from cumulant.input_files import MEGABYTE, read_text

_LINE = re.compile(r"(hmac|ed25519|ed25519-public) ([A-Za-z0-9._-]{1,64}) ([0-9a-fA-F]{64,256})")

_LARGEST_FILE = MEGABYTE
"""Bytes of a file of keys; convention: thousands of keys."""


@dataclass(frozen=True, slots=True)
class Key:
    """One key: its kind, the name under which entries mention it, and its bytes."""

    kind: str
    name: str
    secret: bytes

    def sign(self, digest: str) -> str:
        """Return the signature of the hash of an entry, in hexadecimal."""
        if self.kind == "hmac":
            return hmac.new(self.secret, digest.encode("ascii"), sha256).hexdigest()
        return bytes(_ed25519().Ed25519PrivateKey.from_private_bytes(self.secret).sign(digest.encode("ascii"))).hex()

    def confirms(self, digest: str, signature: str) -> bool:
        """Check that this key made the signature."""
        if self.kind == "hmac":
            return hmac.compare_digest(self.sign(digest).encode(), signature.encode("utf-8", "replace"))
        curve, wrong = _ed25519(), _invalid_signature()
        public = (
            curve.Ed25519PublicKey.from_public_bytes(self.secret)
            if self.kind == "ed25519-public"
            else curve.Ed25519PrivateKey.from_private_bytes(self.secret).public_key()
        )
        try:
            public.verify(bytes.fromhex(signature), digest.encode("ascii"))
            return True
        except (ValueError, wrong):  # text that is not hexadecimal, or not the signature
            return False


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys by name; the first that can sign does, and all confirm.

    An old key stays when a new one is put before it.

    A file has one key on each line: its kind (hmac, ed25519 or ed25519-public), its name, its bytes in hexadecimal.

    >>> keys = Keys.read("hmac 2026 " + "07" * 32)
    >>> keys.confirms("2026", "ab", keys.signer.sign("ab"))
    True
    """

    keys: tuple[Key, ...] = ()

    @classmethod
    def read(cls, text: str) -> Keys:
        """Read the keys in the text of such a file."""
        found = []
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            parts = _LINE.fullmatch(line.strip())
            if parts is None or len(parts[3]) % 2 or (parts[1] != "hmac" and len(parts[3]) != 64):
                raise InputError(
                    f"line {number} of the keys is not 'hmac NAME HEX' or 'ed25519 NAME HEX' with 32 bytes or more"
                )
            found.append(Key(parts[1], parts[2], bytes.fromhex(parts[3])))
        if len({key.name for key in found}) < len(found):
            raise InputError("two keys have the same name; entries could not say which one signed them")
        return cls(tuple(found))

    @classmethod
    def load(cls, path: str | Path) -> Keys:
        """Read the keys in a file."""
        try:
            text = read_text(path, "ascii", _LARGEST_FILE)
        except InputError:
            raise
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise InputError(f"the keys in {shown(str(path))} cannot be read: {why}") from error
        return cls.read(text)

    @property
    def signer(self) -> Key | None:
        """Return the key that signs new entries."""
        return next((key for key in self.keys if key.kind != "ed25519-public"), None)

    def confirms(self, name: str, digest: str, signature: str) -> bool | None:
        """Check that the key of this name made the signature; None if it is not here."""
        key = next((key for key in self.keys if key.name == name), None)
        return None if key is None else key.confirms(digest, signature)


def _ed25519() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise LedgerError("Ed25519 signatures need the package cryptography: pip install 'cumulant[sign]'") from None
    return ed25519


def _invalid_signature() -> type[Exception]:
    from cryptography.exceptions import InvalidSignature

    return InvalidSignature
