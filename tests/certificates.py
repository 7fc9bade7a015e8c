"""Certificates of a small authority, made anew for each run of the tests."""

import datetime as dt
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = dt.timedelta(days=1)


class Authority:
    """`ca` is the file of its own certificate."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._key, self._name = folder, ec.generate_private_key(ec.SECP256R1()), _name("tests")
        self.ca = folder / "ca.pem"
        own = self._signed(self._name, self._key, DAY).add_extension(x509.BasicConstraints(True, None), critical=True)
        self.ca.write_bytes(own.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, lasts: dt.timedelta = DAY) -> tuple[Path, Path, Path]:
        """Certificate and key of `name` at 127.0.0.1, each in a file, and both in one; below zero it has expired."""
        key = ec.generate_private_key(ec.SECP256R1())
        at = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        made = self._signed(_name(name), key, lasts).add_extension(at, critical=False)
        chain = made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        form, bare = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        secret = key.private_bytes(serialization.Encoding.PEM, form, bare)
        files = tuple(self._folder / f"{name}.{part}.pem" for part in ("certificate", "key", "both"))
        for file, text in zip(files, (chain, secret, secret + chain), strict=True):
            file.write_bytes(text)
        return files[0], files[1], files[2]

    def _signed(self, name: x509.Name, key: ec.EllipticCurvePrivateKey, lasts: dt.timedelta) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        made = x509.CertificateBuilder(self._name, name, key.public_key(), x509.random_serial_number())
        return made.not_valid_before(now - 10 * DAY).not_valid_after(now + lasts)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
