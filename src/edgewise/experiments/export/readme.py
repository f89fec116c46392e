"""What goes beside an exported policy: its signature, and a README with a program that runs it."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch.export import ExportedProgram

from edgewise.experiments.export.program import output_shapes
from edgewise.models.policy_function import PolicyFunction


def describe(
    function: PolicyFunction,
    program: ExportedProgram,
    *,
    about: Mapping[str, Any],
    file: str,
    traced: Mapping[str, int],
) -> dict[str, Any]:
    """Return the content of `signature.json`."""
    inputs = [
        {
            "name": info.name,
            "dtype": _name(info.dtype),
            "shape": list(info.shape),
            "meaning": info.meaning,
            **({} if info.below is None else {"below": info.below}),
        }
        for info in function.inputs
    ]
    outputs = [
        {"name": name, "dtype": _name(dtype), "shape": list(shape), "meaning": function.outputs[name]}
        for name, (shape, dtype) in output_shapes(function, program).items()
    ]
    return {
        **about,
        "file": file,
        "inputs": inputs,
        "outputs": outputs,
        "decoding": function.decoding,
        "next_step": dict(function.recurrent),
        "traced_sizes": dict(traced),
    }


def write_readme(path: Path, function: PolicyFunction, described: Mapping[str, Any]) -> None:
    """Write the README: a program that runs the policy, its inputs and its outputs."""
    source = described.get("recipe") or described.get("environment") or "edgewise"
    needs = "numpy and onnxruntime" if described["file"].endswith(".onnx") else "numpy and torch"
    lines = [
        f"# A policy of {source}",
        "",
        f"`{described['file']}` maps observations to actions. This program needs {needs} alone. It reads one",
        "observation from `example.npz`, and prints its action beside that of the policy in edgewise:",
        "",
        "```python",
        program_text(function, described["file"]),
        "```",
        "",
        "## Inputs",
        "",
        *_table(described["inputs"]),
        "",
        "A dimension with a name may have any size, the same wherever the name occurs. Scaling of the inputs",
        "is part of the file: give them as the environment does. `signature.json` says all this to programs.",
        "",
        "## Outputs",
        "",
        *_table(described["outputs"]),
        "",
        function.decoding,
    ]
    for name, output in function.recurrent.items():
        lines += ["", f"Give `{output}` of a step as `{name}` of the next one, and zeros in the first."]
    if parts := described.get("parts"):
        files = [f"`{each['file']}`" for each in parts.values()]
        lines += [
            "",
            "## Encode once",
            "",
            f"{files[0]} and {files[1]} are the same policy in two programs. Where many steps of an instance",
            "follow, call the first once and give its `embeddings` to the second in every step.",
        ]
        for each in parts.values():
            names = (
                ", ".join(f"`{entry['name']}`" for entry in each[kind]) for kind in ("inputs", "outputs")
            )
            lines += ["", "`{}`: {} to {}.".format(each["file"], *names)]
    if settings := described.get("settings"):
        lines += ["", "## Trained with", "", "```json", json.dumps(settings, indent=2), "```"]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def program_text(function: PolicyFunction, file: str) -> str:
    """Return a program that runs an exported policy on `example.npz`."""
    decode = function.decode
    action = 'outputs["action"]' if decode is None else f"{decode.__name__}(inputs, outputs)"
    if file.endswith(".onnx"):
        lines = [
            "import numpy",
            "import onnxruntime",
            "",
            f'session = onnxruntime.InferenceSession("{file}")',
            'example = numpy.load("example.npz")',
            "inputs = {each.name: example[each.name] for each in session.get_inputs()}",
            "names = [each.name for each in session.get_outputs()]",
            "outputs = dict(zip(names, session.run(names, inputs)))",
        ]
    else:
        lines = [
            "import numpy",
            "import torch",
            "",
            f'program = torch.export.load("{file}").module()',
            'example = numpy.load("example.npz")',
            f"names = {json.dumps([info.name for info in function.inputs])}",
            "inputs = {name: torch.from_numpy(example[name]) for name in names}",
            "outputs = program(inputs)",
        ]
        if decode is not None:
            lines.append(
                "inputs, outputs = ({k: v.numpy() for k, v in each.items()} for each in (inputs, outputs))"
            )
    lines.append(f'print("action", {action}.tolist(), "expected", example["action"].tolist())')
    if decode is None:
        return "\n".join(lines)
    source = inspect.getsource(decode).replace("  # noqa: B905", "")
    return "\n".join(["from __future__ import annotations", "", *lines[:3], "", source, "", *lines[3:]])


def _table(entries: list[dict[str, Any]]) -> list[str]:
    rows = [
        f"| `{each['name']}` | {each['dtype']} | {' x '.join(map(str, each['shape'])) or 'one number'} "
        f"| {_meaning(each)} |"
        for each in entries
    ]
    return ["| name | type | shape | meaning |", "|---|---|---|---|", *rows]


def _meaning(entry: Mapping[str, Any]) -> str:
    below = entry.get("below")
    if below is None:
        return str(entry["meaning"])
    return f"{entry['meaning']}; from 0, below " + (
        f"the number of {below}" if isinstance(below, str) else str(below)
    )


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
