"""Datasets in buckets, on a server that the test starts."""

from __future__ import annotations

import os
import pathlib
import shutil
import urllib.request
from collections.abc import Iterator

import numpy as np
import pytest
import runs

import dsload

pytestmark = pytest.mark.server


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> Iterator[str]:
    """The address of an empty bucket."""
    home = pathlib.Path(os.environ.get("GOPATH", pathlib.Path.home() / "go")) / "bin"
    program = shutil.which("fake-gcs-server") or shutil.which("fake-gcs-server", path=str(home))
    if program is None:
        pytest.skip("fake-gcs-server is not installed: go install github.com/fsouza/fake-gcs-server@v1.56.1")
    options = ["-scheme", "http", "-host", "127.0.0.1", "-backend", "memory", "-log-level", "error"]
    with runs.server(lambda port: [program, *options, "-port", str(port), "-public-host", f"127.0.0.1:{port}"]) as port:
        base = f"http://127.0.0.1:{port}"
        request = urllib.request.Request(
            f"{base}/storage/v1/b?project=p", data=b'{"name": "bucket"}', headers={"Content-Type": "application/json"}
        )
        urllib.request.urlopen(request, timeout=runs.HANGS).close()
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", base)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        yield "gs://bucket"


def test_a_bucket_is_loaded_as_a_folder_is(bucket: str, tmp_path: pathlib.Path) -> None:
    text = tmp_path / "corpus.txt"
    text.write_text("".join(f"a line and its number {i * i}\n" for i in range(300)))
    far, near = f"{bucket}/sub/data", str(tmp_path / "data")
    for out in (far, near):
        dsload.build(text, out=out, max_val_examples=20)
    for options in ({"seed": 3}, {"split": "val", "shuffle": False}, {"pack": "bfd", "max_length": 64}):
        with (
            dsload.Loader(far, batch_size=16, output="numpy", **options) as there,
            dsload.Loader(near, batch_size=16, output="numpy", **options) as here,
        ):
            got, want = list(there), list(here)
        assert len(got) == len(want) > 1
        for a, b in zip(got, want):
            assert a.keys() == b.keys()
            for name in a:
                np.testing.assert_array_equal(a[name], b[name])
    with dsload.Loader({"near": near, "far": far}, batch_size=16, output="numpy") as mixed:
        assert sum(len(batch["length"]) for batch in mixed) == mixed.num_examples == 560


def test_what_a_bucket_cannot_do_is_said(bucket: str) -> None:
    with pytest.raises(dsload.ServerFailed, match=r"no dataset here.*check the address") as missing:
        dsload.Loader(f"{bucket}/none")
    assert missing.value.returncode == 2
    with pytest.raises(dsload.ServerFailed, match="in_process=True was asked for; copy the dataset to a folder"):
        dsload.Loader(f"{bucket}/data", in_process=True)
    with pytest.raises(ValueError, match=r"gs://bucket/data: RandomAccess maps files of this machine; copy"):
        dsload.RandomAccess(f"{bucket}/data")
