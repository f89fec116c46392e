"""`edgewise completion`: what the scripts offer, asked of the shells themselves."""

import shutil
import subprocess

import pytest

from edgewise.cli.main import main
from edgewise.cli.verbs import GENERIC


def script(capsys, shell):
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


def offered(text, *words):
    """What bash offers for a command line whose last word is incomplete."""
    line = " ".join(f"'{word}'" for word in ("edgewise", *words))
    asked = f"COMP_WORDS=({line}); COMP_CWORD={len(words)}; _edgewise; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-c", f"{text}\n{asked}"], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return set(done.stdout.split())


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_verbs_options_choices_and_names(capsys):
    text = script(capsys, "bash")
    assert set(GENERIC) | {"reasoning", "hive"} <= offered(text, "")
    assert offered(text, "rep") == {"report"}
    assert {"tsp20-pomo", "tsp"} <= offered(text, "train", "tsp")
    assert offered(text, "render", "zoo:x", "--th") == {"--theme"}
    assert offered(text, "render", "zoo:x", "--theme", "") == {"light", "dark"}
    assert offered(text, "export", "--to", "o") == {"onnx"}
    assert "prove" in offered(text, "reasoning", "")
    assert "--json" in offered(text, "reasoning", "prove", "--j")
    assert "graphwalk-ppo" in offered(text, "zoo", "graph")
    assert offered(text, "nonsense", "x") == set()


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_accept_the_script(shell, capsys):
    text = script(capsys, shell)
    for word in ("render", "tsp20-pomo", "prove", "theme"):
        assert word in text
    if shutil.which(shell) is not None:
        subprocess.run([shell, "-n"], input=text, text=True, check=True)


def test_another_shell_is_refused(capsys):
    assert main(["completion", "tcsh"]) == 2
    assert "bash" in capsys.readouterr().err
