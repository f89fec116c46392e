"""Runs the code cells of a notebook in this process, as Jupyter would show them, without Jupyter.

`python -m tests.examples.notebook FILE...` runs notebooks in a new folder and stores what they show in them.
"""

import ast
import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path


def read(path):
    """Return the notebook as nested dicts."""
    return json.loads(Path(path).read_text(encoding="utf-8"))


def code_cells(notebook):
    """Return the cells with code."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run(notebook, *, replace=()):
    """Run the code cells one after another and set their outputs; the names they leave are returned.

    Args:
        notebook: as `read` returns it; changed in place.
        replace: pairs of texts; the first is replaced by the second in what is run.
    """
    names = {"__name__": "__main__"}
    for count, cell in enumerate(code_cells(notebook), 1):
        text = "".join(cell["source"])
        for old, new in replace:
            text = text.replace(old, new)
        cell["execution_count"], cell["outputs"] = count, _outputs(text, names, f"cell {count}", count)
    return names


def _outputs(text, names, where, count):
    tree = ast.parse(text, where)
    shown = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, where, "exec"), names)
        value = None if shown is None else eval(compile(ast.Expression(shown.value), where, "eval"), names)
    found = []
    if printed.getvalue():
        lines = printed.getvalue().splitlines(keepends=True)
        found.append({"output_type": "stream", "name": "stdout", "text": lines})
    if value is not None:
        has_page = hasattr(value, "_repr_html_")
        data = {"text/plain": (str if has_page else repr)(value).splitlines(keepends=True)}
        if has_page:
            data["text/html"] = value._repr_html_().splitlines(keepends=True)
        found.append(
            {"output_type": "execute_result", "execution_count": count, "metadata": {}, "data": data}
        )
    return found


def main(files):
    """Run notebooks and write them back."""
    paths = [Path(file).resolve() for file in files]
    for path in paths:
        notebook = read(path)
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            run(notebook)
            os.chdir(path.parent)
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
