"""The command as a whole: fast, and helpful about mistakes."""

import subprocess
import sys

COMMAND = (sys.executable, "-m", "gbdgc")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=60)


def test_help_imports_nothing_heavy() -> None:
    probe = (
        "import sys\n"
        "sys.argv = ['gbdgc', '--help']\n"
        "from gbdgc.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print({'torch', 'numba', 'sklearn', 'scipy', 'matplotlib', 'numpy'} & set(sys.modules), file=sys.stderr)\n"
    )
    answer = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, timeout=60)
    assert "Usage: gbdgc" in answer.stdout
    assert answer.stderr.strip() == "set()"


def test_a_misspelt_command_is_met_with_the_right_one() -> None:
    answer = run("domians")
    assert answer.returncode == 2
    assert 'Did you mean "domains"?' in " ".join(answer.stderr.split())


def test_an_input_that_cannot_be_used_is_named_without_a_traceback() -> None:
    answer = run("domains", "nowhere[1].npy")
    assert answer.returncode == 1
    assert "nowhere[1].npy" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert answer.stdout == ""
