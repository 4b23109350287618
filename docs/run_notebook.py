"""Run the notebook here in an empty folder and keep what its cells show: `python docs/run_notebook.py`.

Jupyter is not needed for it, so that the tests can run the notebook wherever gbdgc itself runs.
"""

import ast
import json
import os
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

NOTEBOOK = Path(__file__).with_name("tour.ipynb")


def run(notebook: dict[str, Any]) -> None:
    """Run the cells in order, each as Jupyter would, and put what they print and show into them."""
    names: dict[str, Any] = {"__name__": "__main__"}
    number = 0
    with TemporaryDirectory() as folder, chdir(folder):
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                number += 1
                cell |= {"execution_count": number, "outputs": _run_cell("".join(cell["source"]), names, number)}


def _run_cell(source: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    body = ast.parse(source, f"cell {number}").body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed, shown = StringIO(), None
    with redirect_stdout(printed):
        exec(compile(ast.Module(body, []), f"cell {number}", "exec"), names)
        if isinstance(last, ast.Expr):
            shown = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        text = printed.getvalue().splitlines(keepends=True)
        outputs.append({"output_type": "stream", "name": "stdout", "text": text})
    if shown is not None:
        data = {"text/plain": [repr(shown)]}
        if hasattr(type(shown), "_repr_html_") and type(shown).__module__.startswith("gbdgc.counting"):
            data = {"text/html": [shown._repr_html_()]} | data
        result = {"output_type": "execute_result", "execution_count": number, "metadata": {}, "data": data}
        outputs.append(result)
    return outputs


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    content = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    run(content)
    NOTEBOOK.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
