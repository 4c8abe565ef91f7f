"""What the source promises: its order, its walls, and what it does not hold."""

import ast
import functools
import re
import shutil
import subprocess
import tomllib
import types
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar, get_origin

import pytest

import commentd
from support import provenance
from support.sources import (
    ROOT,
    SOURCE,
    STATIC_FILES,
    Function,
    calls_of,
    functions,
    nodes_in,
    parsed,
    whole_tree,
)

pytestmark = pytest.mark.slow


def without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, Function | ast.ClassDef) and ast.get_docstring(node):
            node.body[0] = ast.Pass()
    return tree


PARTS = dict(re.findall(r"^# -- ([\w-]+) -+\n(.*?)(?=^# -- |\Z)", SOURCE, re.M | re.S))
TOP = "commentd.py commentd.example.ini pyproject.toml README.md LICENSE".split()  # noqa: SIM905
HIDDEN = [".gitignore", ".editorconfig", ".pre-commit-config.yaml"]
FILES = [ROOT / name for name in TOP + HIDDEN] + [
    path
    for folder in ("static", "tests", ".ci", ".github")
    for path in (ROOT / folder).rglob("*")
    if path.is_file() and path.suffix not in (".db", ".png", ".pyc")
]


@functools.cache
def part_trees() -> dict[str, ast.Module]:
    return {name: without_docstrings(parsed(text)) for name, text in PARTS.items()}


@functools.cache
def part_texts() -> dict[str, str]:
    """The code of each part, without comments and docstrings."""
    return {name: ast.unparse(tree) for name, tree in part_trees().items()}


def parts_with(pattern: str) -> set[str]:
    """The parts whose code matches, comments and docstrings aside."""
    return {name for name, text in part_texts().items() if re.search(pattern, text)}


# Order and walls


def test_the_contents_are_the_banners_in_order() -> None:
    about = ast.get_docstring(whole_tree(), clean=False) or ""
    contents = re.findall(r"^    ([\w-]+) {2,}\S", about, re.M)
    assert contents == list(PARTS)
    banners = re.findall("^# --.*", SOURCE, re.M)
    assert len(banners) == len(PARTS)
    assert {len(line) for line in banners} == {79}


def used_by(tree: ast.Module) -> set[str]:
    """The names that a part takes from outside of its own functions, arguments and variables."""
    nodes = nodes_in(tree)
    own = {name for node in nodes for name in [*defined(node), *bound(node)]}
    return {node.id for node in nodes if isinstance(node, ast.Name)} - own


def bound(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg


def defined(node: ast.AST) -> Iterator[str]:
    if isinstance(node, Function | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            yield from (n.id for n in ast.walk(target) if isinstance(n, ast.Name))


@functools.cache
def uses() -> dict[str, set[str]]:
    """The parts that each part uses."""
    trees = part_trees()
    homes = {n: part for part, tree in trees.items() for node in tree.body for n in defined(node)}
    return {part: {homes[n] for n in used_by(tree) if n in homes} for part, tree in trees.items()}


def test_each_part_uses_only_what_stands_above_it() -> None:
    order = list(PARTS)
    for part, others in uses().items():
        assert [other for other in others if order.index(other) > order.index(part)] == [], part


SQL = r"(?s)\b(SELECT|INSERT|UPDATE|DELETE|CREATE|PRAGMA|BEGIN|DROP|ALTER)\s.*[A-Za-z_]"


def test_sql_is_only_in_the_parts_about_the_database() -> None:
    """And in Places, for its tables. Foreign reads the databases of others, and has one of its own
    that is gone when a file is read. Export writes one for Isso."""
    expected = {"Schema", "Database", "Wiping", "Store", "Places", "Foreign", "Export"}
    assert parts_with(r"\.execute\w*\(|sqlite3\.connect") == expected
    assert parts_with(r"self\.(run|one|all|value|values)\(") == {"Store"}
    texts = {
        name
        for name, tree in part_trees().items()
        for node in nodes_in(tree)
        if isinstance(node, ast.Constant) and re.match(r"\s*" + SQL[4:], str(node.value), re.S)
    }
    assert texts == expected


def test_bottle_is_only_in_templates_web_and_application() -> None:
    assert parts_with(r"\bbottle\.") == {"Templates", "Web", "Application"}


@pytest.mark.parametrize(
    ("pattern", "where"),
    [
        # Mail judges what World's exceptions mean, by their classes.
        (r"\bsmtplib\.(?!SMTP(\w*Exception|\w+Refused|\w+Error|ServerDisconnected)\b)", {"World"}),
        # Serving waits, and counts its work, whatever the clock says.
        (r"\btime\.(?!(monotonic|thread_time)\b)", {"World"}),
        (r"\bsecrets\.", {"World"}),
        (r"\brandom\.|urandom|uuid", set()),
        (r"\bdatetime\.(now|utcnow|today)\b", set()),
        (r"urllib\.request|http\.client|requests\.", {"World"}),
        (r"\bsubprocess\b|os\.(system|popen|exec)", set()),
        (r"os\.environ|sys\.argv", {"Commands"}),
    ],
)
def test_network_clock_and_processes_are_used_only_where_the_contents_say(
    pattern: str, where: set[str]
) -> None:
    assert parts_with(pattern) - where == set()


def callers_of(pattern: str) -> set[str]:
    """The functions that hold such calls."""
    return {each.name for each in functions(whole_tree()) if calls_of(pattern, each)}


def test_the_network_is_reached_by_one_function_for_the_web_and_one_for_mail() -> None:
    web = r"http\.client\.\w+|urllib\.request\..*|(.*\.)?urlopen|client\.request"
    assert len(callers_of(web)) == 1
    assert len(callers_of(r"smtplib\.SMTP(_SSL)?")) == 1
    # The one for the web has a part that looks at the address first. No other opens a connection: a
    # socket of our own is the file that the service listens on.
    assert callers_of(r"(.*\.)?create_connection") == {"connected_openly"}
    assert callers_of("connected_openly") == callers_of(web)
    opened = [ast.unparse(node) for node in calls_of(r"socket\.socket(pair)?")]
    assert [call for call in opened if "AF_UNIX" not in call] == []


def test_only_imports_use_recursion() -> None:
    """There the depth of a file has a bound. Replies stand as deep as readers like. But a thread
    that is shown has three levels."""
    called = {scope: set(provenance.called_by(scope)) for scope in provenance.scopes()}
    below = called
    for _ in called:  # those called by those called
        wider = {
            scope: names.union(*(below[name] for name in names)) for scope, names in below.items()
        }
        if wider == below:
            break
        below = wider
    parts = part_trees()
    importers = {each.name for part in ("Markup", "Foreign") for each in functions(parts[part])}
    three_levels = {"shown_data"}
    found = {scope.name for scope, names in below.items() if scope in names}
    assert found <= importers | three_levels


# State


def is_type_or_function(value: Any) -> bool:
    """Also another name of one, such as `Json`."""
    kinds = type | types.FunctionType | types.GenericAlias | types.UnionType | TypeVar
    return isinstance(value, kinds) or get_origin(value) is not None


def test_each_name_at_module_level_is_defined_once() -> None:
    names = Counter(name for node in whole_tree().body for name in defined(node))
    assert [name for name, times in names.items() if times > 1] == []


def test_nothing_at_module_level_changes_but_routes_and_rules_while_it_loads() -> None:
    names = {name for node in whole_tree().body for name in defined(node)}
    constants = {n for n in names if n.isupper() or n in ("log", "__version__")}
    made = {n.name for n in whole_tree().body if isinstance(n, Function | ast.ClassDef)}
    others = {name: getattr(commentd, name) for name in names - constants - made}
    assert [name for name, value in others.items() if not is_type_or_function(value)] == []
    assert not [node for node in nodes_in(whole_tree()) if isinstance(node, ast.Global)]
    changes = "append|extend|insert|add|update|setdefault|pop|clear|remove|discard"
    held = "|".join(sorted(n for n in constants if n.isupper()))
    changed = re.findall(rf"\b({held})(?:\.(?:{changes})\(|\[[^\]]*\] (?:[-+|]?=)(?!=))", SOURCE)
    assert {*changed} == {"ROUTES", "RULES"}
    # What is kept between calls is a constant that is made late, never an answer to someone. A
    # cached property goes with its object. There is one for each value of a few settings, and for
    # each script of the source.
    cached = [
        function
        for function in functions(whole_tree())
        if re.search(r"cache\b", str([ast.unparse(each) for each in function.decorator_list]))
    ]
    with_parameters = ["markdown_with", "served_files", "statements_of"]
    assert sorted(each.name for each in cached if ast.unparse(each.args)) == with_parameters


# Safety


@pytest.mark.parametrize(
    "text",
    [
        "name",
        "'SELECT ' + name",
        "f'SELECT {name}'",
        "'SELECT %s' % name",
        "'SELECT {}'.format(name)",
        "'SELECT x'.replace('x', name)",
        "', '.join(['a', name])",
        "', '.join(each for each in name)",
        "name if name else 'SELECT'",
        "TABLES[name] + name",
    ],
)
def test_the_check_of_sql_finds_a_value_in_a_text(text: str) -> None:
    def found(text: str) -> set[str]:
        (function,) = ast.parse(f"def read_sql(name: str): return {text}").body
        scope = provenance.Scope(
            function, provenance.Scope(ast.Module([], []), given={"TABLES": []})
        )
        provenance.fill(scope, function, [])
        return set(provenance.foreign(ast.parse(text, mode="eval").body, scope))

    assert found(text) == {"read_sql: name"}
    assert found(text.replace("name", "TABLES")) == set()


def test_sql_is_constants_with_placeholders() -> None:
    for scope in provenance.scopes():
        for call in scope.calls:
            if isinstance(call.func, ast.Attribute) and call.func.attr.startswith("execute"):
                assert provenance.foreign(call.args[0], scope) == [], ast.unparse(call)


@functools.cache
def source_without_comments() -> str:
    return ast.unparse(whole_tree())


@pytest.mark.parametrize(
    "pattern",
    [
        r"\b(pickle|marshal|shelve|ctypes)\b",
        r"(?<![.\w])(eval|exec|compile|__import__)\(",
        r"shell=True|\bdebug=True|mmap_size",
        r"_unverified_|CERT_NONE|check_hostname|verify_mode|PROTOCOL_|verify=False",
        r"starttls\((?!context=)|SMTP_SSL\((?!.*context=)",
        r"set_cookie|get_cookie|Allow-Credentials|merge\(|default_app",
        r"interpolation=(?!None)",
        r"(?<![\w.])assert\b",  # `python -O` drops them
    ],
)
def test_dangerous_functions_are_absent_from_the_module(pattern: str) -> None:
    assert re.findall(pattern, source_without_comments()) == []


SECRET = re.compile(r"(?i)password|passphrase|secret|token|signature|code\b|\bmac\b|stored")


def test_secrets_are_compared_in_constant_time() -> None:
    """What is compared with a word or number of the source is none."""
    known = re.compile(r"'.*'|-?\d+|([\w.]+\.)?[A-Z_]+")
    compared = [
        node
        for node in nodes_in(whole_tree())
        if isinstance(node, ast.Compare)
        and any(isinstance(op, ast.Eq | ast.NotEq) for op in node.ops)
        and not any(known.fullmatch(ast.unparse(s)) for s in [node.left, *node.comparators])
    ]
    assert [text for text in map(ast.unparse, compared) if SECRET.search(text)] == []
    assert calls_of(r"(.*\.)?compare_digest")


def test_logs_hold_no_secret_and_no_text_of_readers() -> None:
    logged = [
        ast.unparse(node)
        for node in nodes_in(whole_tree())
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("log.")
    ]
    assert logged
    assert [s for s in logged if re.search(r"\bf'|%[rs]?' %|\.format\(", s)] == []
    hidden = r"password|token|\bkey\b|\.recipient|\.message\b|\.content|\bip\b|nickname|\.email"
    assert [s for s in logged if re.search(hidden, s)] == []


# Tests


@functools.cache
def trees_of_tests() -> dict[Path, ast.Module]:
    return {path: parsed(path.read_text("utf-8")) for path in ROOT.glob("tests/**/*.py")}


def modules_imported_by(tree: ast.AST) -> set[str]:
    found: set[str] = set()
    for node in nodes_in(tree):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


def test_no_test_file_is_imported() -> None:
    """What several test files need stands in `tests/support/`."""
    for path, tree in trees_of_tests().items():
        modules = modules_imported_by(tree)
        tests = {name for name in modules if name.startswith(("test_", "conftest"))}
        assert tests == set(), f"{path.name} imports {tests}: move what it needs to tests/support"


def test_helpers_of_tests_stand_in_a_folder_of_their_own() -> None:
    beside = {path.name for path in ROOT.glob("tests/*.py") if not path.name.startswith("test_")}
    # Three are run by hand: language.py is for translators, release.py for a release, and wcag.md
    # says what wcag.py found.
    assert beside == {"conftest.py", "language.py", "release.py", "wcag.py"}


def test_every_function_that_asserts_is_a_test_or_is_used() -> None:
    nodes = {path: nodes_in(tree) for path, tree in trees_of_tests().items()}
    used = Counter(
        node.id if isinstance(node, ast.Name) else node.attr
        for node in chain.from_iterable(nodes.values())
        if isinstance(node, ast.Name | ast.Attribute)
    )
    for path, (module, *others) in nodes.items():
        methods = {f for node in others if isinstance(node, ast.ClassDef) for f in node.body}
        found = {node for node in others if isinstance(node, Function)} - methods
        tests = [f.name for f in found if f.name.startswith("test")]
        assert not tests or path.name.startswith("test_"), f"pytest does not look into {path.name}"
        assert len(tests) == len(set(tests)), f"{path.name}: a test hides another of its name"
        top = module.body if isinstance(module, ast.Module) else []
        nested = found - set(top)
        assert not [f.name for f in nested if f.name.startswith("test_")]
        for function in found:
            marks = " ".join(map(ast.unparse, function.decorator_list))
            # A decorator may put a function into a list of those that are run.
            if function.name.startswith(("test_", "pytest_")) or marks or used[function.name]:
                continue
            asserts = any(isinstance(node, ast.Assert) for node in ast.walk(function))
            assert not asserts, f"{function.name} never runs"


def test_every_test_is_named_for_the_feature_and_what_is_promised() -> None:
    """A red name that begins with "what", "who" or "it" does not say which feature broke."""
    words = "what|who|whom|whose|it|its|they|them|their|this|that|these|those"
    vague = rf"def (test_(?:{words})(?:ever)?_\w+)"
    wrong = [
        f"tests/{path.name}: name the feature first in {name}"
        for path in ROOT.glob("tests/test_*.py")
        for name in re.findall(vague, path.read_text("utf-8"))
    ]
    assert not wrong, "\n".join(wrong)


# What browsers are given


def test_no_script_makes_markup_of_texts() -> None:
    assert STATIC_FILES
    unsafe = (
        r"(?i)innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment"
        r"|setHTMLUnsafe|\beval\(|new Function|setTimeout\(\s*['\"`]|javascript:"
    )
    for path in STATIC_FILES:
        assert re.findall(unsafe, path.read_text("utf-8")) == [], path.name


def test_pages_hold_nothing_inline_and_nothing_of_others() -> None:
    for path in STATIC_FILES:
        text = path.read_text("utf-8")
        # Partials go into the sources of a blog, whose pages they stand in.
        if path.suffix == ".html" and path.parent.name != "partials":
            scripts = re.findall(r"<script\b([^>]*)>", text)
            data = re.compile('src=|type="(application/(ld[+])?json|importmap)"')
            assert all(map(data.search, scripts))
            inline = r"(?i)\son[a-z]+\s*=|<base|<iframe"
            if not path.name.startswith("email"):  # which loads nothing, and has no policy
                inline += r"|<style|\sstyle="
            assert re.findall(inline, text) == []
        linked = re.findall(
            r"""(?:src=|href=|url\(|@import|import\()\s*["']?(?:https?:)?//""", text
        )
        assert linked == [], path.name


def test_the_manual_names_what_a_page_may_style_and_say() -> None:
    files = ("embed.js", "writing.js", "widget.css", "writing.css")
    widget, more, *styles = ((ROOT / "static" / name).read_text("utf-8") for name in files)
    for folder in (ROOT / "static" / "help").iterdir():
        embed = (folder / "embed.md").read_text("utf-8")
        theme = (folder / "theme.md").read_text("utf-8")
        variable = r"--commentd-\w+"
        assert {*re.findall(variable, theme)} == {*re.findall(variable, "".join(styles))}
        attributes = {"lang", *re.findall(r"getAttribute\('(\w+)'\)", widget)}
        table = embed.partition("|---|---|---|\n")[2].partition("\n\n")[0]
        assert attributes == {*re.findall(r"^\| `(\w+)` \| ", table, re.M)}
        events = set(re.findall(r"emit\('(\w+)'", widget + more))
        assert {*re.findall(r"commentd:(\w+)", embed)} == events


# The project as a whole


def test_only_what_the_design_names_lies_at_the_top() -> None:
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("this is no git checkout, or there is no git to ask")
    command = ["git", "-c", "safe.directory=*", "ls-files"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    tops = {line.split("/")[0] for line in listed.stdout.splitlines()}
    assert {t for t in tops if t[0] != "."} == {*TOP, "static", "tests"}


def test_no_file_names_a_machine_it_was_made_on() -> None:
    foreign = [
        *(f"/{folder}/" for folder in ("work", "tmp", "root", "mnt")),
        *("pypi" + end for end in (".org", "thonhosted", "-mirror")),
        "python" + "hosted",
        "npm" + "js",
        "registry" + ".npm",
        "prox" + "y.golang",
    ]
    for path in FILES:
        text = path.read_text("utf-8")
        assert [word for word in foreign if word in text] == [], path.name


def test_editor_settings_agree_with_the_checks_of_the_project() -> None:
    sections: dict[str, dict[str, str]] = {"": {}}
    section = ""
    for line in (ROOT / ".editorconfig").read_text("utf-8").splitlines():
        if header := re.fullmatch(r"\[(.*)\]", line):
            section = header[1]
            sections[section] = {}
        elif pair := re.fullmatch(r"(\w+) = (.*)", line):
            sections[section][pair[1]] = pair[2]
    ruff = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["ruff"]
    assert sections["*.py"]["max_line_length"] == str(ruff["line-length"])
    assert sections["*"]["charset"] == "utf-8"
    for path in FILES:
        if path.is_relative_to(ROOT / "tests" / "moving"):
            continue  # as other programs wrote them
        text = path.read_bytes().decode()
        assert "\r" not in text, path
        assert text.endswith("\n"), path
        assert path.suffix == ".md" or not re.search(" $", text, re.M), path


def test_the_contributing_guide_names_only_what_exists() -> None:
    guide = (ROOT / ".github" / "CONTRIBUTING.md").read_text("utf-8")
    paths = re.findall(r"\b(?:tests|static)/[\w/.-]+\.\w+", guide)
    assert len(paths) > 10
    gone = [path for path in paths if not (ROOT / path).exists()]
    assert not gone, f".github/CONTRIBUTING.md names files that do not exist: {gone}"
    names = re.findall(r"`@?([A-Za-z_]{4,})(?:\([^`]*\))?`", guide)
    assert len(names) > 10
    sources = [path for path in FILES if path.suffix in (".py", ".js", ".json")]
    words = set(re.findall(r"\w+", " ".join(path.read_text("utf-8") for path in sources)))
    gone = [name for name in names if name not in words]
    assert not gone, f".github/CONTRIBUTING.md names what no file has: {gone}"
