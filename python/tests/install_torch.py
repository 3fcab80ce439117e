"""Install a CPU-only PyTorch, and the trainers that the tests drive, from the package index alone, without CUDA's
gigabytes.

The index's Linux x86-64 wheel of torch is linked against CUDA's libraries, which together are a download of about 2 GB
and five on disk. The tests never touch a GPU, so this script installs torch itself (0.5 GB) with the few pure Python
packages it imports and, for each CUDA library that is missing, compiles a stand-in that exports the wanted symbols;
each of them returns an error code. The CUDA runtime, which registers kernels when torch is loaded, is small and is the
real one. `torch.cuda.is_available()` is then False, as on any machine without a GPU. On other platforms, and where
there is no C compiler, it is plain `pip install torch`.

    .venv/bin/python python/tests/install_torch.py

Running it again does nothing when torch is installed already. With --torch-only it installs no trainers, as the
benchmarks need it. The environment is for tests only.
"""

from __future__ import annotations

import pathlib
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile

TORCH = "torch==2.15.0"
PURE = ["filelock", "typing-extensions", "sympy", "networkx", "jinja2", "fsspec", "setuptools"]
TRAINERS = ["transformers==5.23.0", "tqdm", "psutil"]
# These name torch as a dependency, and pip would then bring what this script leaves out.
NO_DEPS = ["accelerate", "pytorch-lightning", "torchmetrics", "lightning-utilities", "torchdata", "trl"]
SYMBOL = re.compile(r"^(cu|nv|nccl|Nv)[A-Za-z0-9_]*$")


def pip(*args: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", *args], check=True)


def installed() -> bool:
    """Whether torch can be imported and pip came to the end of installing it: it writes INSTALLER after the programs,
    so that an interrupted installation lacks it, and torchrun."""
    check = "import torch, importlib.metadata as m; assert m.distribution('torch').read_text('INSTALLER')"
    return subprocess.run([sys.executable, "-c", check], capture_output=True).returncode == 0


def dynamic(path: pathlib.Path) -> tuple[list[str], list[tuple[str, str]]]:
    """The libraries that an ELF file needs, and its undefined symbols with their versions ("" where none)."""
    out = subprocess.run(["readelf", "-dW", str(path)], check=True, capture_output=True, text=True).stdout
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", out)
    out = subprocess.run(["nm", "-D", "--undefined-only", str(path)], check=True, capture_output=True, text=True).stdout
    symbols = []
    for line in out.splitlines():
        name, _, version = line.split()[-1].partition("@")
        symbols.append((name, version.lstrip("@")))
    return needed, symbols


def compile_stub(library: str, symbols: dict[str, str], folder: pathlib.Path) -> None:
    with tempfile.TemporaryDirectory() as tmp:
        source, script = pathlib.Path(tmp, "stub.c"), pathlib.Path(tmp, "stub.map")
        source.write_text(
            "".join(f"int {s}(void) {{ return 100; }}\n" for s in sorted(symbols)) or "int dsload_stub;\n"
        )
        versions: dict[str, list[str]] = {}
        for symbol, version in symbols.items():
            versions.setdefault(version, []).append(symbol)
        named = {v: s for v, s in versions.items() if v}
        script.write_text(
            "\n".join(f"{v} {{ global: {' '.join(x + ';' for x in s)} }};" for v, s in sorted(named.items()))
        )
        command = [
            "cc",
            "-shared",
            "-fPIC",
            "-O0",
            "-w",
            f"-Wl,-soname,{library}",
            "-o",
            str(folder / library),
            str(source),
        ]
        if named:
            command.append(f"-Wl,--version-script={script}")
        subprocess.run(command, check=True)


def stub_cuda() -> None:
    folder = pathlib.Path(sysconfig.get_paths()["platlib"], "torch", "lib")
    present = {p.name for p in folder.iterdir()} | {p.name for p in folder.glob("../../nvidia/*/lib/*")}
    wanted: dict[str, dict[str, str]] = {}
    unversioned: dict[str, str] = {}
    for path in sorted(folder.glob("*.so")):
        needed, symbols = dynamic(path)
        for library in needed:
            if re.match(r"lib(cu|nv|nccl)", library) and library not in present:
                wanted.setdefault(library, {})
        for symbol, version in symbols:
            if not SYMBOL.match(symbol):
                continue
            if version in wanted:
                wanted[version][symbol] = version
            elif version == "NVSHMEM":
                wanted.setdefault("libnvshmem_host.so.3", {})[symbol] = version
            elif not version:
                unversioned[symbol] = ""
    # Symbols without a version are looked up in every library, so that one of them may carry all of them.
    wanted.setdefault("libnccl.so.2", {}).update(unversioned)
    for library, found in sorted(wanted.items()):
        compile_stub(library, found, folder)


def trainers() -> None:
    pip(*TRAINERS)
    pip("--no-deps", *NO_DEPS)


def main() -> None:
    if not installed():
        install()
    if "--torch-only" not in sys.argv[1:]:
        trainers()


def install() -> None:
    light = (
        sys.platform == "linux" and platform.machine() == "x86_64" and all(map(shutil.which, ("cc", "nm", "readelf")))
    )
    if not light:
        pip(TORCH)
        return
    pip("--no-deps", "--force-reinstall", TORCH)  # also over what an interrupted installation left
    pip(*PURE)
    pip("--no-deps", "nvidia-cuda-runtime==13.*")
    stub_cuda()
    if not installed():
        pip(TORCH)


if __name__ == "__main__":
    main()
