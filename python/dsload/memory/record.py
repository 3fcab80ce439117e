"""Records the memory of a training script that was not written for it:

    python -m dsload.memory.record [--out memory.jsonl] [--every N] script.py [arguments of the script]
    python -m dsload.memory.record [--out memory.jsonl] -m package.module [arguments]

The script runs as it would alone, as `__main__` and with its own arguments and exit code. Its phases follow from what
it calls: fetching from a DataLoader or a dsload Loader begins a step ("load"), the outermost call of a module with
parameters is "forward", which lasts until the loss's `backward()` and so counts the logits, and an optimizer's step is
"optimizer". The record is that of MemoryRecorder: `dsload doctor memory.jsonl` explains it. Where several processes
train (torchrun), each writes a record of its own: memory.rank1.jsonl and so on.
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Callable, Optional

from . import _device
from .recorder import MemoryRecorder, _safe_shape


class Watcher:
    """Turns what a script does with torch into the phases of a MemoryRecorder, which is made when the first model is
    called."""

    def __init__(
        self, path: str, *, every: int = 1, meter: Any = None, settings: Optional[dict[str, Any]] = None
    ) -> None:
        self.path, self.recorder = os.path.abspath(path), None
        self._options: dict[str, Any] = {"every": every, "meter": meter, "settings": settings}
        self._open: Any = None  # the running phase's context
        self._phase = ""
        self._busy = False  # inside a forward or backward pass, whose inner calls are not phases
        self._undo: list[Callable[[], None]] = []

    recorder: Optional[MemoryRecorder]

    def enter(self, phase: str, model: Any = None, batch: Optional[dict[str, Any]] = None) -> None:
        """Ends the running phase and begins this one; begins a step where one is due."""
        if self.recorder is None:
            if phase != "forward":
                return
            self.recorder = MemoryRecorder(self.path, model=model, **self._options)
        again = phase == self._phase
        if again and not (phase == "forward" and not _device.torch_if_loaded().is_grad_enabled()):
            return
        before = self._phase
        self.leave()
        if phase == "load" or (phase == "forward" and before != "load"):
            self.recorder.begin_step()
        if batch:
            self.recorder._batch = batch
        self._phase, self._open = phase, self.recorder.phase(phase)
        self._open.__enter__()

    def leave(self, error: Optional[BaseException] = None) -> None:
        """Ends the running phase; an out-of-memory error is recorded in it."""
        running, self._open, self._phase = self._open, None, ""
        if running is None:
            return
        if error is None:
            running.__exit__(None, None, None)
            return
        try:
            running.__exit__(type(error), error, error.__traceback__)
        except BaseException as same:
            if same is not error:
                raise

    def failed(self, error: BaseException) -> None:
        """Records the out-of-memory error that ended the script, unless that was done where it arose. Any other end is
        not recorded."""
        if not _device.is_out_of_memory(error):
            return
        if self.recorder is None:
            self.recorder = MemoryRecorder(self.path, **self._options)
            self._phase, self._open = "load", self.recorder.phase("load")
            self._open.__enter__()
        if self.recorder is not None and self.recorder.report_path is None:
            self.leave(error)

    def _during(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self._busy = True
        try:
            return call(*args, **kwargs)
        except BaseException as error:
            if _device.is_out_of_memory(error):
                self.leave(error)
            raise
        finally:
            self._busy = False

    def _replace(self, owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
        original = owner.__dict__[name]
        setattr(owner, name, wrap(original))
        self._undo.append(lambda: setattr(owner, name, original))

    def install(self) -> None:
        """Watches torch's modules, backward passes, optimizers and loaders, and dsload's Loader, until `close`."""
        import torch
        from torch.optim.optimizer import register_optimizer_step_pre_hook
        from torch.utils.data import dataloader

        module = torch.nn.Module
        plain_call = module.__dict__["__call__"]

        def call(owner: Any, *args: Any, **kwargs: Any) -> Any:
            if self._busy or next(owner.parameters(), None) is None:
                return plain_call(owner, *args, **kwargs)
            self.enter("forward", owner, _batch_of(args, kwargs))
            # Inner modules are called as torch made them: nothing is added to their cost, and a compiler sees what it
            # knows.
            module.__call__ = plain_call
            try:
                return self._during(plain_call, owner, *args, **kwargs)
            finally:
                module.__call__ = call

        def backward(original: Any) -> Any:
            def wrapped(*args: Any, **kwargs: Any) -> Any:
                if self._busy:
                    return original(*args, **kwargs)
                self.enter("backward")
                return self._during(original, *args, **kwargs)

            return wrapped

        def fetch(original: Any) -> Any:
            def wrapped(iterator: Any) -> Any:
                self.enter("load")
                return original(iterator)

            return wrapped

        self._replace(module, "__call__", lambda _: call)
        self._replace(torch.autograd, "backward", backward)
        self._replace(dataloader._BaseDataLoaderIter, "__next__", fetch)
        hook = register_optimizer_step_pre_hook(lambda *_: self.enter("optimizer"))
        self._undo.append(hook.remove)
        self._watch_loader()

    def _watch_loader(self) -> None:
        from dsload import Loader

        def iterate(original: Any) -> Any:
            def wrapped(loader: Any) -> Iterator[Any]:
                batches = original(loader)
                try:
                    while True:
                        self.enter("load")
                        try:
                            batch = next(batches)
                        except StopIteration:
                            return
                        yield batch
                finally:
                    close = getattr(batches, "close", None)
                    if close is not None:
                        close()

            return wrapped

        self._replace(Loader, "__iter__", iterate)

    def close(self) -> None:
        """Ends the last phase and the record, and leaves torch as it was."""
        while self._undo:
            self._undo.pop()()
        if self.recorder is not None:
            self.leave()
            self.recorder.close()


def _batch_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Rows and length of what a model is called with."""
    if getattr(kwargs.get("input_ids"), "ndim", 0) == 2:
        return _safe_shape(kwargs)
    for value in args:
        if isinstance(value, Mapping) and "input_ids" in value:
            return _safe_shape(value)
        if getattr(value, "ndim", 0) == 2 and not value.is_floating_point():
            return {"rows": int(value.shape[0]), "length": int(value.shape[1])}
        if getattr(value, "ndim", 0) > 0:
            return {"rows": int(value.shape[0])}
    return {}


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m dsload.memory.record",
        description="Runs a training script and records its memory step by step.",
        allow_abbrev=False,
    )
    parser.add_argument("--out", default="memory.jsonl", help="the record (memory.jsonl); appended to where it exists")
    parser.add_argument("--every", type=int, default=1, help="write the snapshots of every n-th step only (1)")
    parser.add_argument("-m", dest="module", metavar="MODULE", help="run a module in place of a script")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="script.py [arguments]")
    # What follows -m MODULE is the module's, as with python -m.
    cut = (
        argv.index("-m") + 2
        if "-m" in argv and not any(a.endswith(".py") for a in argv[: argv.index("-m")])
        else len(argv)
    )
    options = parser.parse_args(argv[:cut])
    options.command += argv[cut:]
    if not options.module and options.command[:1] == ["--"]:
        del options.command[0]
    if options.every < 1:
        parser.error(f"--every must be at least 1, got {options.every}")
    if not options.module and not options.command:
        parser.error("name the script to run, as in: python -m dsload.memory.record train.py --lr 1e-4")
    if not options.module and not os.path.isfile(options.command[0]):
        parser.error(f"there is no script {options.command[0]!r}")
    return options


def _own_path(path: str) -> str:
    """A record for each process of a run of several."""
    rank = os.environ.get("RANK", "0")
    if int(os.environ.get("WORLD_SIZE", "1")) < 2 or rank == "0":
        return path
    stem, dot, ending = path.rpartition(".")
    return f"{stem}.rank{rank}.{ending}" if dot and os.sep not in ending else f"{path}.rank{rank}"


def _run(options: argparse.Namespace) -> None:
    if options.module:
        sys.argv = [options.module, *options.command]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(options.module, run_name="__main__", alter_sys=True)
        return
    sys.argv = list(options.command)
    sys.path.insert(0, os.path.dirname(os.path.abspath(options.command[0])))
    runpy.run_path(options.command[0], run_name="__main__")


def main(argv: Optional[list[str]] = None) -> None:
    """Runs the script. Its exit code and its exception are this program's."""
    options = _arguments(sys.argv[1:] if argv is None else argv)
    try:
        import torch  # noqa: F401
    except ImportError:
        sys.exit("record memory: PyTorch is not installed in this Python, and only PyTorch's memory is recorded")
    name, out = options.module or options.command[0], _own_path(options.out)
    watcher = Watcher(out, every=options.every, settings={"script": name, "arguments": list(options.command)})
    watcher.install()
    try:
        _run(options)
    except BaseException as error:
        watcher.failed(error)
        raise
    finally:
        watcher.close()
        _tell(watcher, out)


def _tell(watcher: Watcher, out: str) -> None:
    if watcher.recorder is None:
        print(
            "record memory: the script called no torch module with parameters, so nothing was recorded",
            file=sys.stderr,
        )
        return
    error = watcher.recorder.report_path
    report = f"; the report of the error is {out}{error.removeprefix(watcher.path)}" if error else ""
    print(
        f"record memory: {watcher.recorder.step} steps in {out}{report}; explain it with: dsload doctor {out}",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
