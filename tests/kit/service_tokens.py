"""Service account tokens that we sign ourselves, as the API server would, with times that it would not give."""

import base64
import json
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

ISSUER = "https://kubernetes.default.svc"
_AGE_S = 3600
"""How long ago our tokens were issued, so that one may have expired since."""


@dataclass(frozen=True)
class SigningKey:
    """An RSA key pair in PEM files, for `--service-account-signing-key-file` and `--service-account-key-file`."""

    file: Path
    public_file: Path

    @classmethod
    def make(cls, folder: Path) -> "SigningKey":
        """A new key pair in `folder`; needs the openssl program."""
        key = cls(folder / "service-accounts.key", folder / "service-accounts.pub")
        _openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", key.file)
        _openssl("pkey", "-in", key.file, "-pubout", "-out", key.public_file)
        return key

    def token(self, namespace: str, name: str, uid: str, expires_in_s: int) -> str:
        """A JWT (RS256) with the claims that the API server checks. uid: of the service account as it exists now."""
        now = int(time.time())
        claims = {
            "iss": ISSUER,
            "aud": [ISSUER],
            "sub": f"system:serviceaccount:{namespace}:{name}",
            "iat": now - _AGE_S,
            "nbf": now - _AGE_S,
            "exp": now + expires_in_s,
            "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": name, "uid": uid}},
        }
        signed = f"{_part({'alg': 'RS256', 'typ': 'JWT'})}.{_part(claims)}"
        signature = _openssl("dgst", "-sha256", "-sign", self.file, text=signed.encode())
        return f"{signed}.{_url_safe(signature)}"


def _part(content: object) -> str:
    return _url_safe(json.dumps(content).encode())


def _url_safe(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _openssl(*words: object, text: bytes = b"") -> bytes:
    done = subprocess.run(["openssl", *map(str, words)], input=text, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout
