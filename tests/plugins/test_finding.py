"""What an address leads to must be allowed, of the declared kind, and defined where the address says."""

import sys

import pytest

import edgewise as ew
from edgewise import plugins
from edgewise.config.errors import ConfigError
from edgewise.plugins import allow, check_allowed, find, register, use_plugin
from edgewise.plugins.finding import find_function
from edgewise.plugins.kinds import KINDS

ENV = """
import edgewise as ew

class {name}Config(ew.Config):
    size: int = 3

class {name}Env(ew.GraphEnv[{name}Config]):
    '''Does nothing. At all.'''
    def setup(self): ...
    def spawn(self, count): ...
    def advance(self, state, action): ...
    def observe(self, state): ...
"""
KEYED = ("environment", "algorithm", "encoder", "convolution", "recipe", "logger", "head", "system")


def refused(kind, reference):
    with pytest.raises(ConfigError) as caught:
        find(kind, reference)
    assert caught.value.exit_code == 2
    return str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "reference", ["logging:os", "os:system", "json:JSONDecoder", "json:dumps", "os:path"]
)
def test_what_is_of_another_kind_is_refused(kind, reference):
    """Allowed, and still not an extension."""
    plugins.allow_typed([reference])
    assert f"is no {kind}" in refused(kind, reference)


def test_a_function_that_is_only_imported_is_no_baseline(write):
    file = write("borrows_function.py", "from json import dumps\ndef mine(env): ...\n")
    plugins.allow(str(file))
    with pytest.raises(ConfigError, match="only imported by"):
        find_function(f"{file}:dumps", of="env", what="baseline")
    assert find_function(f"{file}:mine", of="env", what="baseline").__name__ == "mine"
    with pytest.raises(ConfigError, match="is no baseline"):
        find_function(f"{file}:mine", of="policy", what="baseline")


@pytest.mark.parametrize(
    "reference", ["evil_thing.py", "evil_thing.py:Env", "evil_thing:Env", "/evil_thing.py:Env"]
)
@pytest.mark.parametrize("kind", KEYED)
def test_what_nobody_allowed_is_not_imported(write, folder, monkeypatch, kind, reference):
    write("evil_thing.py", "raise SystemError('imported')\n")
    monkeypatch.syspath_prepend(folder)
    if reference.startswith("/"):
        reference = f"{folder}{reference}"
    said = refused(kind, reference)
    assert f"--plugin {reference.partition(':')[0]}" in said
    assert "evil_thing" not in sys.modules


def test_a_class_that_is_only_imported_is_refused(write):
    write("home_of_env.py", ENV.format(name="Far"))
    sub = write(
        "elsewhere/borrows_env.py", "import sys\nsys.path.append('..')\nfrom home_of_env import FarEnv\n"
    )
    sys.path.append(str(sub.parent.parent))
    use_plugin(str(sub))
    assert "only imported by" in refused("environment", f"{sub}:FarEnv")


@pytest.mark.parametrize("beside", ["defines_near.py", "pack_of_near/__init__.py"])
def test_a_class_defined_beside_it_is_fine(write, beside):
    module = beside.partition("/")[0].removesuffix(".py")
    write(f"code/{beside}", ENV.format(name="Near"))
    file = write("code/borrows_near.py", f"from {module} import NearEnv\n")
    plugins.allow(str(file))
    assert find("environment", f"{file}:NearEnv").__module__ == module


def test_a_class_of_ours_that_is_only_imported_is_refused(write):
    file = write("borrows_ours.py", "from edgewise.systems.graphwalk.env import GraphwalkEnv\n")
    plugins.allow(str(file))
    assert "only imported by" in refused("environment", f"{file}:GraphwalkEnv")
    assert "defines no environment" in refused("environment", str(file))


def test_a_file_with_one_environment(write):
    file = write("one_env.py", ENV.format(name="One"))
    plugins.allow(str(file))
    found = plugins.environment(str(file))
    assert found.env.__name__ == "OneEnv"
    assert found.load("config").__name__ == "OneConfig"
    assert found.summary == "Does nothing. At all"


def test_a_file_with_several(write):
    file = write("two_envs.py", ENV.format(name="One") + ENV.format(name="Two"))
    plugins.allow(str(file))
    said = refused("environment", str(file))
    assert f"{file}:OneEnv, {file}:TwoEnv" in said


def test_a_name_that_is_not_in_the_file(write):
    file = write("misspelt.py", ENV.format(name="One"))
    plugins.allow(str(file))
    assert "did you mean OneEnv?" in refused("environment", f"{file}:OneEvn")


def test_a_moved_file_is_found_by_its_name(write):
    file = write("new/place/moved_env.py", ENV.format(name="Moved"))
    use_plugin(str(file))
    for old in ("moved_env.py:MovedEnv", "/old/place/moved_env.py:MovedEnv", "moved_env:MovedEnv"):
        assert plugins.environment(old).env.__name__ == "MovedEnv"


def test_a_renamed_file_is_found_by_what_it_defines(write):
    use_plugin(str(write("new_name.py", ENV.format(name="Kept"))))
    assert plugins.environment("old_name.py:KeptEnv").env.__name__ == "KeptEnv"
    assert plugins.environment("__main__:KeptEnv").env.__name__ == "KeptEnv"
    assert "--plugin old_name.py" in refused("environment", "old_name.py:OtherEnv")


def test_two_plug_ins_that_could_be_meant_are_none(write):
    for place in ("a", "b"):
        use_plugin(str(write(f"{place}/same_name.py", ENV.format(name="Same"))))
    assert "--plugin same_name.py" in refused("environment", "same_name.py:SameEnv")


def test_a_class_of_a_notebook(write):
    assert "ew.register(TSPEnv)" in refused("environment", "__main__:TSPEnv")


def test_a_class_inside_a_function_is_found_in_this_process_only():
    class InnerConfig(ew.Config):
        pass

    class InnerEnv(ew.GraphEnv[InnerConfig]):
        pass

    address = plugins.address_of(InnerEnv)
    assert "inside a function" in refused("environment", address)
    register(InnerEnv)
    assert plugins.environment(address).env is InnerEnv


def test_a_registered_relative_address_is_not_another_folders_file(write, folder, monkeypatch):
    first = write("a/local_env.py", ENV.format(name="Local"))
    second = write("b/local_env.py", ENV.format(name="Local"))
    monkeypatch.chdir(first.parent)
    register(use_plugin("local_env.py").LocalEnv)
    monkeypatch.chdir(second.parent)
    plugins.allow("local_env.py")
    found = plugins.environment("local_env.py:LocalEnv").env
    assert sys.modules[found.__module__].__file__ == str(second)


def test_the_address_of_a_class_of_ours_leads_to_its_declaration():
    from edgewise.systems.graphwalk.env import GraphwalkEnv

    assert plugins.environment(plugins.address_of(GraphwalkEnv)) is plugins.environment("graphwalk")


def test_a_name_that_is_nowhere():
    said = refused("environment", "graphwlak")
    assert "did you mean graphwalk?" in said
    assert "--plugin" in said


def test_code_is_refused_before_it_is_needed(write, folder):
    """A config is refused when it is loaded; a name may still be found later, and nothing is imported."""
    write("waiting.py", "raise SystemError\n")
    for reference in ("waiting.py:Thing", "waiting:Thing"):
        with pytest.raises(ConfigError, match="nothing on this command line allows"):
            check_allowed("encoder", reference)
    check_allowed("encoder", "some_name")
    allow("waiting.py")
    check_allowed("encoder", "waiting.py:Thing")
