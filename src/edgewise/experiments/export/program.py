"""A policy function as a program of `torch.export` or ONNX: written, opened again and called."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import torch
from torch.export import Dim, ExportedProgram

from edgewise.config.errors import ConfigError
from edgewise.envs.adapters.outside_view import needed
from edgewise.models.policy_function import PolicyFunction, Tensors

Format = Literal["onnx", "pt2"]
FORMATS: tuple[Format, ...] = ("onnx", "pt2")
Shape = tuple[int | str, ...]


def need_packages(format: Format) -> None:
    """Raise ConfigError if a package is missing that the format needs."""
    if format == "onnx":
        for package in ("onnx", "onnxscript", "onnxruntime"):
            needed(package, "export")


def trace(function: PolicyFunction, example: Tensors) -> ExportedProgram:
    """Trace a function on inputs whose named dimensions have a size of 2 or more.

    Raises:
        ConfigError: the function cannot be traced, or only for the sizes of the example.
    """
    shapes = {
        info.name: {
            axis: Dim.DYNAMIC if isinstance(size, str) else Dim.STATIC for axis, size in enumerate(info.shape)
        }
        for info in function.inputs
    }
    try:
        with torch.no_grad(), _quiet():
            return torch.export.export(function, (example,), dynamic_shapes=(shapes,), strict=False)
    except Exception as error:
        raise ConfigError(
            f"the policy cannot be traced by torch.export: {first_line(error)}",
            hint="modules of your own must not let shapes or Python branches depend on the values of tensors",
        ) from error


def output_shapes(function: PolicyFunction, program: ExportedProgram) -> dict[str, tuple[Shape, torch.dtype]]:
    """Return the dimensions, by name where they vary, and the type of every output."""
    names: dict[str, str] = {}
    by_name = {node.name: node.meta["val"] for node in program.graph.nodes if "val" in node.meta}
    inputs = [by_name[each] for each in program.graph_signature.user_inputs]
    for info, value in zip(function.inputs, inputs, strict=True):
        names |= {
            str(symbol): dim
            for dim, symbol in zip(info.shape, value.shape, strict=True)
            if isinstance(dim, str)
        }
    outputs = [by_name[each] for each in program.graph_signature.user_outputs]
    return {
        name: (tuple(_named(size, names) for size in value.shape), value.dtype)
        for name, value in zip(function.outputs, outputs, strict=True)
    }


def save(function: PolicyFunction, program: ExportedProgram, path: Path, *, example: Tensors) -> None:
    """Write a traced program; the ending of the file is its format.

    Raises:
        ConfigError: an operation of the policy has no ONNX counterpart.
    """
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # paths of this machine
    if path.suffix == ".pt2":
        torch.export.save(program, path)
        return
    try:
        with torch.no_grad(), _quiet():
            found = torch.onnx.export(
                program,
                (example,),
                input_names=[info.name for info in function.inputs],
                output_names=list(function.outputs),
                custom_translation_table={
                    torch.ops.aten.hypot.default: _hypot,
                    torch.ops.aten.sort.stable: _stable_sort,
                },
                dynamo=True,
                verbose=False,
            )
    except Exception as error:
        raise ConfigError(
            f"the policy cannot be written as ONNX: {first_line(error)}", hint="try --to pt2"
        ) from error
    assert found is not None
    outputs = output_shapes(function, program)
    shapes = [info.shape for info in function.inputs] + [shape for shape, _ in outputs.values()]
    graph = found.model.graph
    for value, shape in zip((*graph.inputs, *graph.outputs), shapes, strict=True):
        for axis, size in enumerate(shape):
            if isinstance(size, str) and value.shape is not None:
                value.shape[axis] = size
    for node in graph:
        node.metadata_props.clear()
    found.save(path, external_data=False)


def _hypot(first: Any, second: Any) -> Any:
    """Translate the length of a plane vector, which the exporter of torch cannot."""
    from onnxscript import opset18

    return opset18.Sqrt(opset18.Add(opset18.Mul(first, first), opset18.Mul(second, second)))


def _stable_sort(
    values: Any,
    *,
    stable: bool | None = None,  # noqa: ARG001 - TopK always is
    dim: int = -1,
    descending: bool = False,
) -> Any:
    """Translate a stable sort; of equal values, TopK of ONNX takes the one with the lower index first."""
    from onnxscript import opset18

    if dim != -1:
        raise NotImplementedError(f"a stable sort along dimension {dim}: only the last one can be written")
    count = opset18.Shape(values, start=-1)
    return opset18.TopK(values, count, axis=-1, largest=int(descending), sorted=1)


def load(path: Path, outputs: Sequence[str]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Open a written program, to call it: tensors in and out for pt2, numpy arrays for ONNX."""
    if path.suffix == ".pt2":
        module = torch.export.load(path).module()
        return lambda inputs: module(dict(inputs))
    runtime = needed("onnxruntime", "export")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda inputs: dict(zip(outputs, session.run(list(outputs), dict(inputs)), strict=True))


def _named(size: Any, names: Mapping[str, str]) -> int | str:
    """Return a size, or the expression of an unknown size in the names of dimensions."""
    if isinstance(size, int):
        return size
    text = str(size)
    return names.get(text, text)


def first_line(error: BaseException) -> str:
    """Return the line of an error that says most: what ONNX lacks, else the first one."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return next((line for line in lines if "No ONNX function found" in line), lines[0])[:300]


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep back what the exporters log and warn about themselves."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
