"""Archives and an OCI image whose bytes depend on what is in them alone: owners, orders and times are fixed."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import zipfile
from collections.abc import Iterable
from typing import NamedTuple, Optional


class Entry(NamedTuple):
    name: str
    data: Optional[bytes]  # None: a folder
    mode: int = 0o644
    owner: int = 0


def tar(entries: Iterable[Entry], time: int) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as file:
        for e in entries:
            info = tarfile.TarInfo(e.name)
            info.mode, info.mtime, info.uid, info.gid = e.mode, time, e.owner, e.owner
            info.type = tarfile.DIRTYPE if e.data is None else tarfile.REGTYPE
            info.size = len(e.data or b"")
            file.addfile(info, io.BytesIO(e.data or b""))
    return out.getvalue()


def tar_gz(entries: Iterable[Entry], time: int) -> bytes:
    return gzip.compress(tar(entries, time), 9, mtime=0)


def zip_file(entries: Iterable[Entry]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for e in entries:
            info = zipfile.ZipInfo(e.name)
            info.external_attr, info.compress_type = (0o100000 | e.mode) << 16, zipfile.ZIP_DEFLATED
            file.writestr(info, e.data or b"")
    return out.getvalue()


USER = 65532  # who runs the program in a container: nobody special
OCI = "application/vnd.oci.image."


def image(programs: dict[str, bytes], certificates: bytes, labels: dict[str, str], created: str, time: int) -> bytes:
    """An OCI image layout, as a tar file, with an image for each Linux architecture: the program, the certificates that
    https needs, and the folders that deploy/Dockerfile makes. programs are by GOARCH."""
    blobs: dict[str, bytes] = {}

    def blob(data: bytes, kind: str) -> dict[str, object]:
        digest = hashlib.sha256(data).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = data
        return {"mediaType": OCI + kind, "digest": f"sha256:{digest}", "size": len(data)}

    def blob_of_json(value: object, kind: str) -> dict[str, object]:
        return blob(json.dumps(value, sort_keys=True).encode(), kind)

    folders = [Entry(name, None, 0o755, USER) for name in ("data", "run/dsload", "tmp")]
    base = tar([*folders, Entry("etc/ssl/certs/ca-certificates.crt", certificates)], time)
    manifests = []
    for architecture, program in sorted(programs.items()):
        layers = [base, tar([Entry("dsload", program, 0o755)], time)]
        config = {
            "architecture": architecture,
            "os": "linux",
            "created": created,
            "config": {
                "User": f"{USER}:{USER}",
                "Env": ["PATH=/", "TMPDIR=/tmp"],
                "Entrypoint": ["/dsload"],
                "Cmd": ["--help"],
                "WorkingDir": "/data",
                "Labels": labels,
            },
            "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(x).hexdigest() for x in layers]},
            "history": [{"created": created, "created_by": "release/release.py"}] * len(layers),
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": OCI + "manifest.v1+json",
            "config": blob_of_json(config, "config.v1+json"),
            "layers": [blob(gzip.compress(x, 6, mtime=0), "layer.v1.tar+gzip") for x in layers],
        }
        platform = {"platform": {"architecture": architecture, "os": "linux"}}
        manifests.append({**blob_of_json(manifest, "manifest.v1+json"), **platform})
    index = {"schemaVersion": 2, "mediaType": OCI + "index.v1+json", "manifests": manifests}
    files = {**blobs, "index.json": json.dumps(index).encode(), "oci-layout": b'{"imageLayoutVersion": "1.0.0"}'}
    return tar([Entry(name, data) for name, data in sorted(files.items())], time)
