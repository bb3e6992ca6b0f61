"""What was run, so that it can be repeated."""

from __future__ import annotations

import hashlib
import platform
from importlib.metadata import version
from typing import Any

import numpy as np

from blindmatch.io.files import file_digest
from blindmatch.proof.certificate import Certificate
from blindmatch.report.match import Match

PACKAGES = ("blindmatch", "numpy", "scipy")


def record(match: Match) -> dict[str, Any]:
    """Settings, versions, result and certificate, ready for JSON."""
    return {
        "title": match.title,
        "command": match.result.settings.get("command"),
        "settings": {key: text for key, text in match.result.settings.items() if key != "command"},
        "versions": {"python": platform.python_version(), **{package: version(package) for package in PACKAGES}},
        "platform": f"{platform.system()} {platform.machine()}",
        "certificate": _certificate(match),
        "result": match.result.to_dict(),
        **({} if match.trust is None else {"trust": match.trust.to_dict()}),
    }


def certificate_digest(certificate: Certificate) -> str:
    """SHA-256 of the contents of a certificate, whether it was saved or not."""
    digest = hashlib.sha256(repr((certificate.size, certificate.forced)).encode())
    for side, image in certificate.symmetries:
        digest.update(repr((side, image.tolist())).encode())
    for node in certificate.nodes:
        digest.update(repr((node.parent, node.pair, node.line, node.spectral, node.skipped)).encode())
        for stage in node.stages:
            for array in (stage.U, stage.V, stage.column_duals, stage.forbidden):
                digest.update(f"{array.dtype} {array.shape}".encode())
                digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _certificate(match: Match) -> dict[str, Any] | None:
    certificate, path = match.result.certificate, match.certificate_file
    if path is not None and path.exists():
        return {"file": path.name, "sha256_of_file": file_digest(path)}
    if certificate is None:
        return None
    return {"nodes": len(certificate.nodes), "sha256_of_contents": certificate_digest(certificate)}
