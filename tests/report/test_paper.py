"""Figures and tables for papers: what they hold, names that LaTeX would read as commands, and refusals."""

import re
import shutil

import pytest
from tests.report.synthetic import make_run

from edgewise.cli.main import main
from edgewise.config.errors import ConfigError
from edgewise.evaluation.result import Evaluation
from edgewise.report.paper import _escaped, write_latex, write_pdf

pytest.importorskip("matplotlib", reason="figures need pip install 'edgewise[plot]'")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("runs") / "walk-0")


def test_a_table_has_the_means_of_the_evaluation(run, tmp_path):
    text = write_latex([run], tmp_path / "table.tex").read_text()
    newest = [Evaluation.load(path) for path in sorted((run / "evaluations").glob("*.json"))]
    newest = [one for one in newest if not one.baseline][-1]
    assert f"${newest.returns.mean():.4g}$" in text
    header, first = (line for line in text.splitlines() if line.startswith(("policy &", "this policy &")))
    assert header.count("&") == first.count("&")
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 1


def test_figures_are_two_pages_with_embedded_fonts_and_the_same_every_time(run, tmp_path):
    once, again = (write_pdf([run], tmp_path / name).read_bytes() for name in ("a.pdf", "b.pdf"))
    assert once.startswith(b"%PDF")
    assert len(re.findall(rb"/Type /Page\b", once)) == 2
    assert b"/FontFile2" in once
    assert once == again


def test_names_cannot_be_commands():
    assert _escaped(r"a_b & 5% \input{x}") == r"a\_b \& 5\% \textbackslash{}input\{x\}"


def test_a_run_without_evaluations_is_refused(run, tmp_path):
    bare = tmp_path / "bare"
    shutil.copytree(run, bare)
    shutil.rmtree(bare / "evaluations")
    with pytest.raises(ConfigError, match="has no evaluation"):
        write_pdf([bare], tmp_path / "none.pdf")


def test_the_verb_writes_both_and_refuses_a_third_name(run, tmp_path, capsys):
    words = ["report", str(run), "--pdf", str(tmp_path / "a.pdf"), "--latex", str(tmp_path / "a.tex")]
    assert main(words) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"pdf: {tmp_path / 'a.pdf'}",
        f"latex: {tmp_path / 'a.tex'}",
    ]
    assert main([*words, "--out", str(tmp_path / "b.html")]) == 2
